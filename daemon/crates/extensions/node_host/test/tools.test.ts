import assert from "node:assert/strict";
import { test } from "node:test";
import { extension, FakeDaemon, type Json, type RemoteError } from "./fake_daemon.ts";

const tool = (name: string, members: string) => `pi.registerTool({ name: '${name}', label: 'L', description: 'D', parameters: { type: 'object' }, ${members} });`;

test("a tool is registered with its data, and the names of its functions", async () => {
  const daemon = await FakeDaemon.greeted();
  const members = "promptSnippet: 's', promptGuidelines: ['g'], executionMode: 'sequential', exposure: 'deferred', defaultActive: false, annotations: { readOnlyHint: true }, namespace: { name: 'n' }, outputSchema: {}, constrainedSampling: false, unknown: 1, execute() {}, prepareArguments: (a) => a, reachesTools: () => 'all', prepareLoadout() {}, renderCall() {}, renderResult() {}";
  await daemon.load({ one: extension(tool("t", members)) });
  const [note] = daemon.registered("tool");
  assert.deepEqual(note?.["def"], {
    name: "t",
    label: "L",
    description: "D",
    parameters: { type: "object" },
    promptSnippet: "s",
    promptGuidelines: ["g"],
    executionMode: "sequential",
    outputSchema: {},
    constrainedSampling: false,
    annotations: { readOnlyHint: true },
    namespace: { name: "n" },
    exposure: "deferred",
    defaultActive: false,
  });
  assert.deepEqual(note?.["has"], ["prepareArguments", "prepareLoadout", "reachesTools", "renderCall", "renderResult"]);
  await daemon.stop();
});

test("a tool gets its id, parameters, signal and context; its result passes as it is", async () => {
  const members = "async execute(id, params, signal, onUpdate, ctx) { return { content: [], details: { id, params, aborted: signal.aborted, cwd: ctx.cwd === process.cwd() || ctx.cwd.length > 0 }, structuredContent: { a: 1 }, terminate: true, isError: false }; }";
  const daemon = await FakeDaemon.bound({ one: extension(tool("t", members)) });
  assert.deepEqual(await daemon.tool("t", { p: 1 }), { content: [], details: { id: "call_1", params: { p: 1 }, aborted: false, cwd: true }, structuredContent: { a: 1 }, terminate: true, isError: false });
  await daemon.stop();
});

test("a throw of a tool is the error of its request", async () => {
  const daemon = await FakeDaemon.bound({ one: extension(tool("t", "async execute() { throw new TypeError('wrong'); }")) });
  await assert.rejects(daemon.tool("t"), /^Error: wrong$/);
  await assert.rejects(daemon.tool("absent"), /Tool "absent" is not registered/);
  await daemon.stop();
});

test("cancel aborts the signal of a tool", async () => {
  const daemon = await FakeDaemon.bound({ one: extension(tool("t", "async execute(id, params, signal) { console.error('started'); await new Promise((r) => signal.addEventListener('abort', r)); throw new Error('aborted'); }")) });
  const run = daemon.tool("t");
  await daemon.whenPrinted("started");
  daemon.cancel(run.id);
  await assert.rejects(run, /aborted/);
  await daemon.stop();
});

test("10,000 partials arrive in order, and none after the result", async () => {
  const members = "async execute(id, params, signal, onUpdate) { for (let i = 0; i < 10000; i++) onUpdate({ content: [{ type: 'text', text: String(i) }] }); setImmediate(() => onUpdate({ content: 'late' })); return { content: [] }; }";
  const daemon = await FakeDaemon.bound({ one: extension(tool("t", members)) });
  await daemon.tool("t");
  await daemon.request("ping");
  const updates = daemon.notes("tool.update");
  assert.equal(updates.length, 10_000);
  updates.forEach((note, index) => {
    assert.equal((note["partial"] as { content: [{ text: string }] }).content[0].text, String(index));
  });
  await daemon.stop();
});

test("the first registration of a name wins, unless the request names the extension; a later one of the same extension replaces", async () => {
  const named = (text: string) => extension(tool("t", `execute: async () => ({ content: '${text}' })`));
  const daemon = await FakeDaemon.bound({ first: named("first"), second: named("second") });
  assert.deepEqual(await daemon.tool("t"), { content: "first" });
  assert.deepEqual(await daemon.tool("t", {}, { ext: "second" }), { content: "second" });
  await daemon.stop();
  const again = await FakeDaemon.bound({ one: `${named("old").slice(0, -2)}${tool("t", "execute: async () => ({ content: 'new' })")}\n}` });
  assert.deepEqual(await again.tool("t"), { content: "new" });
  await again.stop();
});

test("synchronous functions of tools are served as requests", async () => {
  const members = `execute() {},
    prepareArguments: (args) => ({ ...args, prepared: true }),
    reachesTools: (input) => [input.word],
    prepareLoadout: (loadout) => ({ descriptions: { t: loadout.callable.map((c) => c.name + ':' + loadout.getExposure(c.name)).join() } })`;
  const daemon = await FakeDaemon.bound({ one: extension(tool("t", members)) });
  const request = (type: string, fields: Json) => daemon.request(type, { epoch: 1, tool: "t", ...fields });
  assert.deepEqual(await request("tool.prepare", { args: { a: 1 } }), { a: 1, prepared: true });
  assert.deepEqual(await request("tool.reaches", { input: { word: "w" } }), ["w"]);
  const c = { name: "c", exposure: "codemode" };
  assert.deepEqual(await request("tool.loadout", { loadout: { declared: [], callable: [c], registered: [c] } }), { descriptions: { t: "c:codemode" } });
  await daemon.stop();
});

test("tools that executeTool can call are listed by exposure", async () => {
  const tools = ["direct", "model-only", "codemode", "deferred", "hidden"].map((exposure) => ({ name: exposure, exposure }));
  const inactive = { name: "asleep", exposure: "direct" };
  const daemon = await FakeDaemon.bound(
    { one: extension(tool("t", "execute: async (id, params, signal, onUpdate, ctx) => ({ content: ctx.tools.map((t) => t.name) })")) },
    { calls: { read: () => ({ etag: "1", value: [...tools, inactive] }) } },
  );
  daemon.core({ activeTools: ["direct", "model-only"] });
  assert.deepEqual(await daemon.tool("t"), { content: ["direct", "codemode", "deferred"] });
  await daemon.stop();
});

test("commands get their arguments verbatim, and their throw is the error of the request", async () => {
  const body = "pi.registerCommand('c', { description: 'does', handler(args) { throw new Error('<' + args + '>'); }, getArgumentCompletions: (prefix) => prefix === 'n' ? null : [{ value: prefix + 'x', label: 'X' }] });";
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  assert.deepEqual(daemon.registered("command").map(({ name, description, completes }) => ({ name, description, completes })), [{ name: "c", description: "does", completes: true }]);
  await assert.rejects(daemon.command("c", "a  b ", "one"), /<a {2}b >/);
  const complete = (prefix: string) => daemon.request("command.complete", { epoch: 1, name: "c", ext: "one", prefix });
  assert.deepEqual(await complete("a"), [{ value: "ax", label: "X" }]);
  assert.equal(await complete("n"), null);
  await daemon.stop();
});

test("shortcuts, renderers and transformers are listed; shortcuts run", async () => {
  const body = "pi.registerShortcut('ctrl+x', { description: 'd', handler: (ctx) => ctx.ui.notify('pressed') }); pi.registerMessageRenderer('m', () => {}); pi.registerEntryRenderer('e', () => {}); pi.registerToolRenderer(() => {}); pi.registerMarkdownTransformer((t) => t);";
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  await daemon.request("shortcut.run", { epoch: 1, key: "ctrl+x" });
  assert.equal(daemon.notes("ui")[0]?.["message"], "pressed");
  assert.deepEqual(daemon.registered("renderer").map(({ what, customType }) => [what, customType]), [["message", "m"], ["entry", "e"], ["tool", undefined], ["markdown", undefined]]);
  await daemon.stop();
});

test("a result without a JSON form is refused as invalid", async () => {
  const daemon = await FakeDaemon.bound({ one: extension(tool("t", "async execute() { const loop = {}; loop.loop = loop; return loop; }")) });
  await assert.rejects(daemon.tool("t"), (error: RemoteError) => error.code === "invalid" && /has no JSON form/.test(error.message));
  await daemon.stop();
});

test("absent methods are undefined, so that extensions can look for them", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ one: extension("pi.registerCommand(String(pi.unregisterTool), { handler() {} });") });
  assert.equal(daemon.registered("command")[0]?.["name"], "undefined");
  await daemon.stop();
});
