import assert from "node:assert/strict";
import { test } from "node:test";
import { extension, FakeDaemon, type Json } from "./fake_daemon.ts";

/** Runs the handlers of one extension for one event. */
async function returnsOf(body: string, event: Json): Promise<Json[]> {
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  const returns = await daemon.hook(event);
  await daemon.stop();
  return returns.map(({ h: _h, ...rest }) => rest);
}

/** Every event with a payload as the daemon sends it, and the keys that handlers must see. */
const EVENTS: [Json, string[]?][] = [
  [{ type: "session_start", reason: "startup" }],
  [{ type: "session_start", reason: "new", previousSessionFile: "/x" }],
  [{ type: "resources_discover", cwd: "/", reason: "startup" }],
  [{ type: "session_info_changed", name: "n" }],
  [{ type: "session_before_switch", reason: "resume", targetSessionFile: "/x" }],
  [{ type: "session_before_fork", entryId: "e", position: "before" }],
  [{ type: "session_before_compact", preparation: {}, branchEntries: [], reason: "manual", willRetry: false, signal: true }],
  [{ type: "session_compact", compactionEntry: {}, fromExtension: false, reason: "manual", willRetry: false }],
  [{ type: "session_compact_failed", reason: "manual", aborted: true, willRetry: false, fromExtension: false }],
  [{ type: "session_before_tree", preparation: { targetId: "e" }, signal: true }],
  [{ type: "session_tree", newLeafId: "a", oldLeafId: null }],
  [{ type: "session_shutdown", reason: "quit" }],
  [{ type: "mcp_servers_change", servers: [] }],
  [{ type: "input", text: "t", source: "rpc" }],
  [{ type: "before_agent_start", messageType: "user", prompt: "p", systemPrompt: "s", systemPromptOptions: {} }],
  [{ type: "agent_start" }],
  [{ type: "agent_end", messages: [] }],
  [{ type: "agent_before_settle", entries: [], continue: false, outcome: "completed", context: {} }],
  [{ type: "agent_settled", aborted: false }],
  [{ type: "turn_start", turnIndex: 0, timestamp: 1 }],
  [{ type: "turn_end", turnIndex: 0, message: {}, toolResults: [], messageEntryId: "m", toolResultEntryIds: [], entries: [], continue: false, outcome: "completed", context: {} }],
  [{ type: "message_start", message: { role: "user", content: "u" } }],
  [{ type: "message_update", assistantMessageEvent: { type: "text_start", contentIndex: 0 } }, ["type", "message", "assistantMessageEvent"]],
  [{ type: "message_end", message: { role: "user", content: "u" } }],
  [{ type: "context", messages: [] }],
  [{ type: "context_with_system", messages: [] }],
  [{ type: "before_provider_headers", headers: {} }],
  [{ type: "before_provider_request", payload: {} }],
  [{ type: "after_provider_response", status: 200, headers: {} }],
  [{ type: "provider_stream_event", provider: "p", api: "a", model: "m", data: {} }],
  [{ type: "tool_execution_start", toolCallId: "c", toolName: "t", args: {} }],
  [{ type: "tool_execution_update", toolCallId: "c", toolName: "t", args: {}, partialResult: {} }],
  [{ type: "tool_execution_end", toolCallId: "c", toolName: "t", result: {}, isError: false }],
  [{ type: "tool_call", toolName: "t", toolCallId: "c", input: {} }],
  [{ type: "tool_result", toolName: "t", toolCallId: "c", input: {}, content: [], details: {}, isError: false }],
  [{ type: "model_select", model: {}, previousModel: {}, source: "set" }],
  [{ type: "thinking_level_select", level: "low", previousLevel: "off" }],
  [{ type: "user_bash", command: "ls", excludeFromContext: false, cwd: "/" }],
  [{ type: "cache_warming_decision", warmCost: 1, missCost: 2, continuationProbability: 0.5, action: "warm" }],
  [{ type: "ui_prompt_start", reason: "ui_prompt", kind: "select" }],
  [{ type: "ui_prompt_end", reason: "ui_prompt", kind: "select" }],
  [{ type: "project_trust", cwd: "/" }],
  [{ type: "of_the_past", anything: 1 }],
];

test("handlers of every event see its payload", async () => {
  const names = [...new Set(EVENTS.map(([event]) => event["type"]))];
  const record = `for (const name of ${JSON.stringify(names)}) pi.on(name, (event) => { seen.push(Object.keys(event)); });`;
  const daemon = await FakeDaemon.bound(
    { one: extension(`const seen = []; ${record} pi.registerCommand('seen', { handler() { pi.appendEntry('seen', seen); } });`) },
    { calls: { "session.appendEntry": () => "e" } },
  );
  for (const [event] of EVENTS) {
    const [returned] = await daemon.hook(event);
    assert.equal(returned?.["error"], undefined, `${String(event["type"])}: ${JSON.stringify(returned)}`);
  }
  await daemon.command("seen", "", "one");
  const { data } = daemon.callsOf("session.appendEntry")[0]?.["params"] as { data: string[][] };
  const expected = EVENTS.map(([event, keys]) => keys ?? Object.keys(event));
  assert.deepEqual(
    data.map((keys) => keys.sort()),
    expected.map((keys) => [...keys].sort()),
  );
  await daemon.stop();
});

test("handlers of one request run one after the other and see the same event", async () => {
  const body = `
    const order = [];
    pi.on('agent_settled', async (event) => { order.push('a'); event.mark = 1; await new Promise((r) => setTimeout(r, 20)); order.push('b'); });
    pi.on('agent_settled', (event) => { order.push('c' + event.mark); return order; });`;
  assert.deepEqual((await returnsOf(body, { type: "agent_settled", aborted: false })).at(-1)?.["value"], ["a", "b", "c1"]);
});

test("a handler that throws is reported, and the next one runs", async () => {
  const [first, second] = await returnsOf("pi.on('agent_start', () => { throw new Error('broken'); }); pi.on('agent_start', () => 'ran');", { type: "agent_start" });
  assert.equal((first?.["error"] as Json)["message"], "broken");
  assert.equal(second?.["value"], "ran");
});

test("a handler that is taken back is not called again, but still in the event under way", async () => {
  const body = `
    let off;
    pi.on('agent_start', () => { off(); return 1; });
    off = pi.on('agent_start', () => 2);`;
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  const handlers = daemon.handlersOf("agent_start");
  assert.deepEqual((await daemon.hook({ type: "agent_start" }, handlers)).map((one) => one["value"]), [1, 2]);
  assert.deepEqual((await daemon.hook({ type: "agent_start" }, handlers)).map((one) => one["value"]), [1, undefined]);
  assert.equal(daemon.notes("unregister").length, 1);
  await daemon.stop();
});

const IN_PLACE: [string, Json, Json][] = [
  ["event.input.command = 'safe'", { type: "tool_call", toolName: "bash", toolCallId: "c", input: { command: "rm" } }, { input: { command: "safe" } }],
  ["event.headers['x'] = null", { type: "before_provider_headers", headers: { y: "1" } }, { headers: { y: "1", x: null } }],
  ["event.payload.messages.push(1)", { type: "before_provider_request", payload: { messages: [] } }, { payload: { messages: [1] } }],
  ["event.preparation.label = 'l'", { type: "session_before_tree", preparation: {}, signal: true }, { preparation: { label: "l" } }],
  ["event.content.push({ type: 'text', text: 'more' })", { type: "tool_result", toolName: "t", toolCallId: "c", input: {}, content: [], isError: false }, { content: [{ type: "text", text: "more" }] }],
  ["event.message.content = []", { type: "message_end", message: { role: "user", content: "u" } }, { message: { role: "user", content: [] } }],
  [
    "event.systemPromptOptions.sections.mine = 'text'",
    { type: "before_agent_start", messageType: "user", prompt: "p", systemPrompt: "s", systemPromptOptions: { sections: {} } },
    { systemPromptOptions: { sections: { mine: "text" } } },
  ],
];

for (const [edit, event, expected] of IN_PLACE) {
  test(`an edit in place is sent back: ${edit}`, async () => {
    const type = String(event["type"]);
    assert.deepEqual(await returnsOf(`pi.on('${type}', (event) => { ${edit}; });`, structuredClone(event)), [{ event: expected }]);
    assert.deepEqual(await returnsOf(`pi.on('${type}', () => {});`, structuredClone(event)), [{}]);
  });
}

test("an edit before a throw is sent back with the error", async () => {
  const [returned] = await returnsOf("pi.on('before_provider_headers', (event) => { event.headers.a = '1'; throw new Error('x'); });", { type: "before_provider_headers", headers: {} });
  assert.deepEqual(returned?.["event"], { headers: { a: "1" } });
  assert.equal((returned?.["error"] as Json)["message"], "x");
});

test("cancel aborts the signal of an event, and the result is still sent", async () => {
  const body = "pi.on('session_before_compact', async (event) => { pi.events.emit('x'); console.error('waiting'); await new Promise((r) => event.signal.addEventListener('abort', r)); return { cancel: true }; });";
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  const hook = daemon.startHook({ type: "session_before_compact", preparation: {}, branchEntries: [], reason: "manual", willRetry: false, signal: true });
  await daemon.whenPrinted("waiting");
  daemon.cancel(hook.id);
  assert.deepEqual(((await hook) as { returns: Json[] }).returns[0]?.["value"], { cancel: true });
  await daemon.stop();
});

test("the prompt in before_agent_start has the changes so far", async () => {
  const body = `
    pi.on('before_agent_start', (event, ctx) => {
      const before = event.systemPrompt;
      event.systemPromptOptions.sections.mine = 'x';
      const after = [event.systemPrompt, ctx.getSystemPrompt()];
      event.systemPromptOptions.forceSystemPrompt = 'forced';
      return { seen: [before, ...after, event.systemPrompt] };
    });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { "read.prompt": ({ systemPromptOptions }) => `rendered ${JSON.stringify(systemPromptOptions)}` } });
  const [returned] = await daemon.hook({ type: "before_agent_start", messageType: "user", prompt: "p", systemPrompt: "base", systemPromptOptions: { sections: {} } });
  const rendered = 'rendered {"sections":{"mine":"x"}}';
  assert.deepEqual(returned?.["value"], { seen: ["base", rendered, rendered, "forced"] });
  await daemon.stop();
});

const INVALID = "Invalid user_bash handler result: return undefined for local execution or exactly one valid { operations } or { result } object";

test("results of user_bash are checked", async () => {
  const event = { type: "user_bash", command: "ls", excludeFromContext: false, cwd: "/" };
  for (const value of ["null", "{}", "{ operations: {} }", "{ result: { output: 1 } }", "{ operations: { exec() {} }, result: {} }"]) {
    const [returned] = await returnsOf(`pi.on('user_bash', () => (${value}));`, event);
    assert.equal((returned?.["error"] as Json | undefined)?.["message"], INVALID, value);
  }
  const result = { output: "o", exitCode: 0, cancelled: false, truncated: false };
  assert.deepEqual(await returnsOf(`pi.on('user_bash', () => ({ result: ${JSON.stringify(result)} }));`, event), [{ value: { result } }]);
  assert.deepEqual(await returnsOf("pi.on('user_bash', () => {});", event), [{}]);
});

test("operations of user_bash run with output as notes, and cancel aborts them", async () => {
  const body = `
    class Operations {
      prefix = 'ran ';
      async exec(command, cwd, { onData, signal, timeout, env }) {
        onData(Buffer.from(this.prefix + command + ' in ' + cwd + ' ' + timeout + ' ' + env.A));
        if (command === 'wait') { console.error('waiting'); await new Promise((r) => signal.addEventListener('abort', r)); }
        return { exitCode: signal.aborted ? null : 3 };
      }
    }
    pi.on('user_bash', () => ({ operations: new Operations() }));`;
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  const operations = async () => {
    const [returned] = await daemon.hook({ type: "user_bash", command: "x", excludeFromContext: false, cwd: "/" });
    return (returned?.["value"] as { operations: { exec: { cb: number } } }).operations.exec.cb;
  };
  const run = daemon.request("ops.call", { cb: await operations(), args: ["ls", "/tmp", { timeout: 5, env: { A: "b" } }] });
  assert.deepEqual(await run, { exitCode: 3 });
  const data = daemon.notes("ops.data")[0];
  assert.equal(data?.["call"], run.id);
  assert.equal(Buffer.from(String(data?.["data"]), "base64").toString(), "ran ls in /tmp 5 b");
  const waiting = daemon.request("ops.call", { cb: await operations(), args: ["wait", "/tmp", { env: {} }] });
  await daemon.whenPrinted("waiting");
  daemon.cancel(waiting.id);
  assert.deepEqual(await waiting, { exitCode: null });
  await daemon.stop();
});

test("functions in returned values become callbacks, and can be forgotten", async () => {
  const daemon = await FakeDaemon.bound({ one: extension("pi.on('x', () => ({ deep: [{ twice: (n) => n * 2 }] }));") });
  const [returned] = await daemon.hook({ type: "x" });
  const { cb } = (returned?.["value"] as { deep: [{ twice: { cb: number } }] }).deep[0].twice;
  assert.equal(await daemon.request("ops.call", { cb, args: [21] }), 42);
  daemon.send({ type: "forget", cb: [cb] });
  await assert.rejects(daemon.request("ops.call", { cb, args: [1] }), /not known/);
  await daemon.stop();
});

test("project_trust has a context of its own, before bind", async () => {
  const daemon = await FakeDaemon.greeted({ hello: { hasUI: true } });
  const asks = "selected: (await ctx.ui.select('t', ['yes'])) ?? null, confirmed: await ctx.ui.confirm('t', 'm')";
  const shows = "keys: Object.keys(ctx), hasUI: ctx.hasUI, ui: Object.keys(ctx.ui)";
  await daemon.load({ one: extension(`pi.on('project_trust', async (event, ctx) => ({ trusted: 'yes', ${asks}, ${shows} }));`) });
  const [returned] = await daemon.hook({ type: "project_trust", cwd: "/" });
  const ui = ["select", "confirm", "input", "notify"];
  assert.deepEqual(returned?.["value"], { trusted: "yes", selected: null, confirmed: false, keys: ["cwd", "mode", "hasUI", "ui"], hasUI: false, ui });
  await daemon.stop();
});
