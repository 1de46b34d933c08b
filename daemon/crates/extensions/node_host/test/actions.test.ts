import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallHandler, extension, FakeDaemon, type Json, RemoteError } from "./fake_daemon.ts";

const append: Record<string, CallHandler> = { "session.appendEntry": () => "e1" };

test("calls name their epoch, extension and the request within which they are made", async () => {
  const body = `
    pi.on('x', async () => { pi.appendEntry('inside'); await new Promise((r) => setTimeout(r, 1)); pi.appendEntry('after-await'); });
    pi.on('y', () => { setTimeout(() => pi.appendEntry('timer'), 5); });
    const timer = setInterval(() => { if (globalThis.go) { clearInterval(timer); pi.appendEntry('outside'); } }, 5);
    pi.on('go', () => { globalThis.go = true; });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: append });
  const hook = daemon.startHook({ type: "x" });
  await hook;
  await daemon.hook({ type: "go" });
  await daemon.when((record) => record["type"] === "call" && (record["params"] as Json)["customType"] === "outside");
  const calls = daemon.callsOf("session.appendEntry");
  assert.deepEqual(calls.map((call) => [call["epoch"], call["ext"], (call["params"] as Json)["customType"]]), [
    [1, "one", "inside"],
    [1, "one", "after-await"],
    [1, "one", "outside"],
  ]);
  assert.equal(calls[0]?.["within"], hook.id);
  assert.equal(calls[1]?.["within"], hook.id);
  await daemon.stop();
});

test("a synchronous call inside a pending hook sees the patches that it caused", async () => {
  const calls: Record<string, CallHandler> = {
    read: () => ({ etag: "1", value: { header: null, entries: [], leafId: null } }),
    "session.appendEntry": ({ customType, data }, _call, daemon) => {
      const entry = { type: "custom", customType, data, id: "e1", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
      daemon.send({ type: "state", seq: 1, topic: "entries", patch: { entries: [entry], leafId: "e1" } });
      return "e1";
    },
    "session.setName": ({ name }, _call, daemon) => void daemon.core({ sessionName: name }),
    "thinking.set": (_params, _call, daemon) => {
      daemon.core({ thinkingLevel: "high" });
      return "high";
    },
    "tools.setActive": ({ names }, _call, daemon) => {
      daemon.core({ activeTools: names });
      return names;
    },
    "session.setLabel": () => null,
  };
  const body = `pi.on('x', (event, ctx) => {
    const before = ctx.sessionManager.getEntries().length;
    pi.appendEntry('t', { a: 1 });
    pi.setSessionName('named');
    pi.setThinkingLevel('xhigh');
    pi.setActiveTools(['read']);
    pi.setLabel('e1', undefined);
    return [before, ctx.sessionManager.getEntries()[0].data, pi.getSessionName(), pi.getThinkingLevel(), ctx.thinkingLevel, pi.getActiveTools()];
  });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls });
  assert.deepEqual((await daemon.hook({ type: "x" }))[0]?.["value"], [0, { a: 1 }, "named", "high", "high", ["read"]]);
  assert.deepEqual(daemon.callsOf("session.setLabel")[0]?.["params"], { entryId: "e1", label: null });
  await daemon.stop();
});

test("hooks that come in during a synchronous call run after it, in order", async () => {
  const calls: Record<string, CallHandler> = {
    "session.appendEntry": (_params, _call, daemon) => {
      for (const n of [1, 2, 3]) void daemon.hook({ type: "turn_start", turnIndex: n });
      return "e1";
    },
  };
  const body = `
    const order = [];
    pi.on('x', async () => { pi.appendEntry('t'); order.push('appended'); await null; order.push('awaited'); });
    pi.on('turn_start', (event) => { order.push(event.turnIndex); });
    pi.on('order', () => order);`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls });
  await daemon.hook({ type: "x" });
  assert.deepEqual((await daemon.hook({ type: "order" }))[0]?.["value"], ["appended", "awaited", 1, 2, 3]);
  await daemon.stop();
});

test("a hook can be served inside of another, while a tool waits for its nested call", async () => {
  const body = `
    pi.registerTool({ name: 'outer', label: '', description: '', parameters: { type: 'object' }, async execute(id, params, signal, onUpdate, ctx) {
      const outcome = await ctx.executeTool('inner', { a: 1 }, { onUpdate: (p) => onUpdate(p) });
      return { content: [{ type: 'text', text: JSON.stringify(outcome) }] };
    } });
    pi.registerTool({ name: 'inner', label: '', description: '', parameters: { type: 'object' }, async execute(id, params, signal, onUpdate) { onUpdate({ content: [] }); return { content: [{ type: 'text', text: 'in ' + params.a }] }; } });
    pi.on('tool_call', (event) => { pi.appendEntry('gate', event.toolCallId); });`;
  const calls: Record<string, CallHandler> = {
    ...append,
    "tool.call": async ({ toolCallId, name, args }, call, daemon) => {
      await daemon.hook({ type: "tool_call", toolCallId: `${String(toolCallId)}/1`, toolName: name, input: args });
      daemon.send({ type: "call.update", id: call["id"], partial: { content: [{ type: "text", text: "half" }] } });
      const result = await daemon.tool(String(name), args, { toolCallId: `${String(toolCallId)}/1` });
      return { toolCall: { name }, result, isError: false };
    },
  };
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls });
  const run = daemon.tool("outer");
  const value = (await run) as { content: [{ text: string }] };
  assert.deepEqual(JSON.parse(value.content[0].text), { toolCall: { name: "inner" }, result: { content: [{ type: "text", text: "in 1" }] }, isError: false });
  assert.deepEqual(
    daemon.notes("tool.update").map((note) => [note["call"] === run.id, note["partial"]]),
    [
      [true, { content: [{ type: "text", text: "half" }] }],
      [false, { content: [] }],
    ],
  );
  assert.deepEqual(daemon.callsOf("session.appendEntry")[0]?.["params"], { customType: "gate", data: "call_1/1" });
  await daemon.stop();
});

test("a synchronous call has a limit, and its late answer is dropped", async () => {
  const body = "pi.on('x', () => { try { pi.appendEntry('t'); } catch (error) { return error.message; } });";
  let answer: (() => void) | undefined;
  const daemon = await FakeDaemon.bound(
    { one: extension(body) },
    { calls: { "session.appendEntry": () => new Promise((resolve) => (answer = () => resolve("late"))) }, hello: { limits: { maxLineBytes: 1 << 20, syncCallMs: 100 } } },
  );
  assert.equal((await daemon.hook({ type: "x" }))[0]?.["value"], 'agentd did not answer "session.appendEntry" within 100 ms');
  answer?.();
  assert.equal(await daemon.request("ping"), null);
  await daemon.stop();
});

test("a refused action throws; a refused message is reported instead", async () => {
  const refuse: CallHandler = () => {
    throw new RemoteError("not now", "invalid");
  };
  const body = `pi.on('x', () => {
    pi.sendMessage({ customType: 'c', content: null, display: true, extra: 1 }, { triggerTurn: true, deliverAs: 'steer' });
    pi.sendUserMessage('hello', { deliverAs: 'followUp' });
    try { pi.setLabel('a', 'b'); } catch (error) { return error.message; }
  });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { "session.sendMessage": refuse, "session.sendUserMessage": refuse, "session.setLabel": refuse } });
  assert.equal((await daemon.hook({ type: "x" }))[0]?.["value"], "not now");
  assert.deepEqual(daemon.callsOf("session.sendMessage")[0]?.["params"], { message: { customType: "c", content: [], display: true }, options: { triggerTurn: true, deliverAs: "steer" } });
  assert.deepEqual(
    daemon.notes("error").map((note) => [note["ext"], note["event"], note["message"]]),
    [
      ["<runtime>", "send_message", "not now"],
      ["<runtime>", "send_user_message", "not now"],
    ],
  );
  await daemon.stop();
});

test("setModel, abort, shutdown and compact reach the daemon; compact calls back", async () => {
  const body = `pi.on('x', async (event, ctx) => {
    ctx.abort(); ctx.shutdown(); ctx.compact({ customInstructions: 'short', onComplete: (r) => console.error('complete', r.summary), onError: (e) => console.error('error', e instanceof Error, e.message) });
    return pi.setModel({ provider: 'a', id: 'b', name: 'n' });
  });`;
  const accept: CallHandler = () => null;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { "agent.abort": accept, "agent.shutdown": accept, "agent.compact": accept, "model.set": () => true } });
  assert.equal((await daemon.hook({ type: "x" }))[0]?.["value"], true);
  assert.deepEqual(daemon.callsOf("model.set")[0]?.["params"], { provider: "a", id: "b" });
  const { cb, customInstructions } = daemon.callsOf("agent.compact")[0]?.["params"] as { cb: number; customInstructions: string };
  assert.equal(customInstructions, "short");
  await daemon.request("ops.call", { cb, method: "complete", args: [{ summary: "sum" }] });
  await daemon.whenPrinted("complete sum");
  await daemon.hook({ type: "x" });
  const again = daemon.callsOf("agent.compact")[1]?.["params"] as { cb: number };
  await daemon.request("ops.call", { cb: again.cb, method: "error", args: [{ message: "too short" }] });
  await daemon.whenPrinted("error true too short");
  await daemon.stop();
});

test("tools, commands and settings are listed; functions of tools are put back", async () => {
  const read: CallHandler = ({ topic }) => ({ etag: "1", value: { tools: [{ name: "t", exposure: "direct" }], commands: [{ name: "c" }], settings: { a: { b: 1 } } }[String(topic)] });
  const body = `
    pi.registerTool({ name: 't', label: '', description: '', parameters: {}, execute() {}, reachesTools: (input) => [input.word] });
    pi.on('x', () => { const settings = pi.getSettings(); settings.a.b = 2; return [pi.getAllTools()[0].reachesTools({ word: 'w' }), pi.getCommands(), pi.getSettings()]; });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { read } });
  assert.deepEqual((await daemon.hook({ type: "x" }))[0]?.["value"], [["w"], [{ name: "c" }], { a: { b: 1 } }]);
  await daemon.stop();
});

const EXEC: [string, Json][] = [
  ["pi.exec('sh', ['-c', 'echo out; echo err >&2; exit 3'])", { stdout: "out\n", stderr: "err\n", code: 3, killed: false, truncated: false }],
  ["pi.exec('/no/such/program', []).then((r) => ({ ...r, stderr: r.stderr.includes('ENOENT') }))", { stdout: "", stderr: true, code: 1, killed: false, truncated: false }],
  ["pi.exec('pwd', [], { cwd: '/' })", { stdout: "/\n", stderr: "", code: 0, killed: false, truncated: false }],
  ["pi.exec('sleep', ['60'], { timeout: 20 })", { stdout: "", stderr: "", code: 0, killed: true, truncated: false }],
  ["pi.exec('sleep', ['60'], { signal: AbortSignal.abort() })", { stdout: "", stderr: "", code: 0, killed: true, truncated: false }],
  ["pi.exec('printf', ['abcdef'], { maxBuffer: 4 }).then((r) => ({ ...r, code: r.code !== 0, killed: 0 }))", { stdout: "abcd", stderr: "", code: true, killed: 0, truncated: true }],
  ["pi.exec('sh', ['-c', 'sleep 60 & echo done'])", { stdout: "done\n", stderr: "", code: 0, killed: false, truncated: false }],
];

test("exec runs programs as pi does", async () => {
  const handlers = EXEC.map(([code], index) => `pi.on('exec${index}', () => ${code});`).join("\n");
  const daemon = await FakeDaemon.bound({ one: extension(handlers) });
  for (const [index, [code, expected]] of EXEC.entries()) {
    assert.deepEqual((await daemon.hook({ type: `exec${index}` }))[0]?.["value"], expected, code);
  }
  await daemon.stop();
});

test("the event bus passes values by reference between extensions, and reports errors to standard error alone", async () => {
  const listener = "pi.events.on('error', (data) => { data.fn(); throw new Error('in listener'); });";
  const emitter = "pi.on('x', () => { let called = 0; pi.events.emit('error', { fn: () => called++ }); pi.events.emit('nobody', 1); return called; });";
  const daemon = await FakeDaemon.bound({ listener: extension(listener), emitter: extension(emitter) });
  assert.equal((await daemon.hook({ type: "x" }))[0]?.["value"], 1);
  await daemon.whenPrinted("Event handler error (error):");
  assert.equal(daemon.notes("error").length, 0);
  await daemon.stop();
});
