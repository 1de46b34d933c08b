import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallHandler, extension, FakeDaemon, type Json, RemoteError } from "./fake_daemon.ts";

/** What `expression` is inside a command handler with `pi` and `ctx`. */
async function evaluate(expression: string, calls: Record<string, CallHandler> = {}, core: Json = {}, hello: Json = {}): Promise<unknown> {
  const body = `pi.registerCommand('one', { async handler(args, ctx) { const value = await (${expression}); pi.appendEntry('value', value === undefined ? 'undefined' : value); } });`;
  const daemon = await FakeDaemon.greeted({ calls: { ...calls, "session.appendEntry": () => "e" }, hello });
  await daemon.load({ one: extension(body) });
  await daemon.bind(core);
  await daemon.command("one");
  const { data } = daemon.callsOf("session.appendEntry").at(-1)?.["params"] as { data: unknown };
  await daemon.stop();
  return data;
}

const entry = (id: string, parentId: string | null, fields: Json = {}): Json => ({ type: "message", id, parentId, timestamp: `2026-01-01T00:00:0${id.length}.000Z`, message: { role: "user", content: id }, ...fields });
const ENTRIES = [
  entry("a", null),
  entry("bb", "a"),
  entry("ccc", "a"),
  entry("dddd", "bb", { type: "label", targetId: "a", label: "L" }),
  entry("lost", "nowhere"),
];
const withEntries: Record<string, CallHandler> = {
  read: () => ({ etag: "1", value: { header: { type: "session", id: "s" }, entries: ENTRIES, leafId: "dddd" } }),
};

const VIEWS: [string, unknown][] = [
  ["ctx.sessionManager.getEntries().map((e) => e.id)", ["a", "bb", "ccc", "dddd", "lost"]],
  ["ctx.sessionManager.getBranch().map((e) => e.id)", ["a", "bb", "dddd"]],
  ["ctx.sessionManager.getBranch('ccc').map((e) => e.id)", ["a", "ccc"]],
  ["ctx.sessionManager.getLeafId()", "dddd"],
  ["ctx.sessionManager.getLeafEntry().id", "dddd"],
  ["ctx.sessionManager.getLabel('a')", "L"],
  ["ctx.sessionManager.getLabel('bb')", "undefined"],
  ["ctx.sessionManager.getEntry('ccc').parentId", "a"],
  ["ctx.sessionManager.getHeader().id", "s"],
  ["ctx.sessionManager.getTree().map((n) => [n.entry.id, n.label ?? null, n.children.map((c) => c.entry.id)])", [["a", "L", ["bb", "ccc"]], ["lost", null, []]]],
];

test("views of the session are computed from its entries", async () => {
  for (const [expression, value] of VIEWS) assert.deepEqual(await evaluate(expression, withEntries), value, expression);
});

test("context entries begin at the last compaction", async () => {
  const entries = [
    entry("a", null),
    entry("b1", "a", { message: { role: "system", content: "s" } }),
    entry("b", "b1"),
    entry("c", "b", { type: "compaction", firstKeptEntryId: "b1", summary: "s" }),
    entry("d", "c"),
  ];
  const calls: Record<string, CallHandler> = { read: () => ({ etag: "1", value: { header: null, entries, leafId: "d" } }) };
  assert.deepEqual(await evaluate("ctx.sessionManager.buildContextEntries().map((e) => e.id)", calls), ["c", "b", "d"]);
});

test("entries are read once and then follow patches; the first read is the only one", async () => {
  const body = `
    pi.on('turn_start', (event, ctx) => ctx.sessionManager.getBranch().map((e) => e.id));`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: withEntries });
  const value = async () => (await daemon.hook({ type: "turn_start" }))[0]?.["value"];
  assert.deepEqual(await value(), ["a", "bb", "dddd"]);
  daemon.send({ type: "state", seq: 1, topic: "entries", patch: { entries: [entry("e5", "dddd")], leafId: "e5" } });
  assert.deepEqual(await value(), ["a", "bb", "dddd", "e5"]);
  daemon.send({ type: "state", seq: 2, topic: "entries", patch: { reset: true, header: null, entries: [entry("r", null)], leafId: "r" } });
  assert.deepEqual(await value(), ["r"]);
  assert.equal(daemon.callsOf("read").length, 1);
  await daemon.stop();
});

const CORE_READS: [string, unknown, Json?][] = [
  ["[ctx.mode, ctx.hasUI, ctx.isProjectTrusted(), ctx.thinkingLevel]", ["rpc", true, true, "off"]],
  ["ctx.model.id", "m1"],
  ["ctx.model", "undefined", { model: null }],
  ["ctx.isIdle()", false, { idle: false }],
  ["ctx.hasPendingMessages()", true, { pendingCount: 2 }],
  ["ctx.getContextUsage().percent", 1],
  ["ctx.getContextUsage()", "undefined", { contextUsage: null }],
  ["ctx.signal", "undefined"],
  ["ctx.signal.aborted", false, { run: { id: 1 } }],
  ["pi.getActiveTools()", ["read", "bash"]],
  ["pi.getThinkingLevel()", "off"],
  ["pi.getSessionName()", "n", { sessionName: "n" }],
  ["[ctx.sessionManager.getSessionId(), ctx.sessionManager.getSessionFile()]", ["s9", "/f"], { sessionId: "s9", sessionFile: "/f" }],
];

test("the core mirror answers without traffic", async () => {
  for (const [expression, value, core] of CORE_READS) {
    assert.deepEqual(await evaluate(expression, { read: () => { throw new RemoteError("no read", "invalid"); } }, core), value, expression);
  }
});

test("the signal of a run is aborted by a patch, and gone after the run", async () => {
  const body = `
    pi.on('agent_start', async (event, ctx) => { const { signal } = ctx; console.error('running'); await new Promise((r) => signal.addEventListener('abort', r)); return signal.aborted; });
    pi.on('agent_settled', (event, ctx) => String(ctx.signal));`;
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  daemon.core({ run: { id: 1, aborted: false } });
  const running = daemon.hook({ type: "agent_start" });
  await daemon.whenPrinted("running");
  daemon.core({ run: { id: 1, aborted: true } });
  assert.equal((await running)[0]?.["value"], true);
  daemon.core({ run: null });
  assert.equal((await daemon.hook({ type: "agent_settled", aborted: true }))[0]?.["value"], "undefined");
  await daemon.stop();
});

const MODELS = {
  models: [
    { provider: "a", id: "1", name: "A1", api: "x" },
    { provider: "b", id: "2", name: "B2", api: "x" },
    { provider: "b", id: "3", name: "B3", api: "y", type: "image" },
  ],
  providers: { a: { name: "Aa", configured: true, source: "env", oauth: false }, b: { name: "Bb", configured: false, oauth: true } },
};
const withModels: Record<string, CallHandler> = { read: ({ etag }) => (etag === "m" ? { etag: "m" } : { etag: "m", value: MODELS }) };

const REGISTRY: [string, unknown][] = [
  ["ctx.modelRegistry.find('a', '1').name", "A1"],
  ["ctx.modelRegistry.find('a', '9')", "undefined"],
  ["ctx.modelRegistry.getAll().map((m) => m.id)", ["1", "2"]],
  ["ctx.modelRegistry.getAvailable().map((m) => m.id)", ["1"]],
  ["ctx.modelRegistry.getModelsOfType('image').map((m) => m.id)", ["3"]],
  ["ctx.modelRegistry.findOfType('image', 'b', '3').api", "y"],
  ["ctx.modelRegistry.hasConfiguredAuth({ provider: 'a', id: '1' })", true],
  ["ctx.modelRegistry.isUsingOAuth({ provider: 'b', id: '2' })", true],
  ["ctx.modelRegistry.getProviderAuthStatus('a')", { configured: true, source: "env" }],
  ["ctx.modelRegistry.getProviderDisplayName('b')", "Bb"],
  ["ctx.modelRegistry.getProviderDisplayName('zz')", "zz"],
  ["ctx.modelRegistry.getProvider('zz')", "undefined"],
  ["ctx.modelRegistry.getProvider('b').getModels().map((m) => m.id)", ["2"]],
  ["ctx.modelRegistry.getError()", "undefined"],
  ["ctx.modelRegistry.getRegisteredProviderIds()", []],
];

test("the model registry reads the catalogue", async () => {
  for (const [expression, value] of REGISTRY) assert.deepEqual(await evaluate(expression, withModels), value, expression);
});

test("an unchanged topic crosses once", async () => {
  const body = "pi.on('x', (event, ctx) => [1, 2, 3].map(() => ctx.modelRegistry.getAll().length));";
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: withModels });
  assert.deepEqual((await daemon.hook({ type: "x" }))[0]?.["value"], [2, 2, 2]);
  assert.deepEqual(daemon.callsOf("read").map((call) => (call["params"] as Json)["etag"]), [undefined, "m", "m"]);
  await daemon.stop();
});

test("credentials come on request, and refusals are values", async () => {
  const auth = "ctx.modelRegistry.getApiKeyAndHeaders({ provider: 'a', id: '1' })";
  assert.deepEqual(await evaluate(auth, { "model.auth": () => ({ ok: true, apiKey: "k", headers: { h: "1" } }) }), { ok: true, apiKey: "k", headers: { h: "1" } });
  const refuse: CallHandler = () => {
    throw new RemoteError("none", "invalid");
  };
  assert.deepEqual(await evaluate(auth, { "model.auth": refuse }), { ok: false, error: "none" });
  assert.equal(await evaluate("ctx.modelRegistry.getApiKeyForProvider('a')", { "model.auth": refuse }), "undefined");
  assert.deepEqual(await evaluate("ctx.modelRegistry.getProviderAuth('a')", { "model.auth": () => ({ ok: true, apiKey: "k", env: { E: "1" } }) }), { auth: { apiKey: "k" }, env: { E: "1" } });
});

const FINAL = { role: "assistant", content: [{ type: "text", text: "hi" }], stopReason: "stop" };
const stream: CallHandler = (_params, call, daemon) => {
  for (const event of [{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "hi" }]) {
    daemon.send({ type: "call.event", id: call["id"], event });
  }
  return FINAL;
};

test("model requests stream events with the message so far, and end with the final one", async () => {
  const events = "(async () => { const seen = []; const s = ctx.modelRegistry.streamSimple(ctx.model, { messages: [] }); for await (const e of s) seen.push([e.type, e.partial?.content?.[0]?.text ?? null]); return [seen, (await s.result()).stopReason]; })()";
  assert.deepEqual(await evaluate(events, { "model.stream": stream }), [
    [
      ["start", null],
      ["text_start", ""],
      ["text_delta", "hi"],
      ["done", null],
    ],
    "stop",
  ]);
  assert.deepEqual(await evaluate("ctx.modelRegistry.complete(ctx.model, { messages: [] })", { "model.stream": stream }), FINAL);
});

test("a model request that fails ends with an error message", async () => {
  const fail: CallHandler = () => {
    throw new RemoteError("overloaded", "invalid");
  };
  assert.deepEqual(await evaluate("ctx.modelRegistry.complete(ctx.model, {}).then((m) => [m.stopReason, m.errorMessage, m.model])", { "model.stream": fail }), ["error", "overloaded", "m1"]);
});

const DIALOGS: Record<string, CallHandler> = {
  "ui.select": (params) => JSON.stringify(params),
  "ui.confirm": () => true,
  "ui.input": () => null,
  "ui.editor": ({ prefill }) => `${String(prefill)}!`,
};

test("dialogs go to the daemon; null means undefined", async () => {
  assert.equal(await evaluate("ctx.ui.select('t', ['a', 'b'], { timeout: 5 })", DIALOGS), '{"title":"t","options":["a","b"],"timeout":5}');
  assert.equal(await evaluate("ctx.ui.confirm('t', 'm')", DIALOGS), true);
  assert.equal(await evaluate("ctx.ui.input('t')", DIALOGS), "undefined");
  assert.equal(await evaluate("ctx.ui.editor('t', 'text')", DIALOGS), "text!");
});

test("an aborted dialog is answered without a request, and withdrawn when it is open", async () => {
  assert.equal(await evaluate("ctx.ui.confirm('t', 'm', { signal: AbortSignal.abort() })", {}), false);
  const body = "pi.on('x', async (event, ctx) => { const c = new AbortController(); const open = ctx.ui.select('t', ['a'], { signal: c.signal }); c.abort(); return String(await open); });";
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { "ui.select": () => new Promise(() => {}) } });
  assert.equal((await daemon.hook({ type: "x" }))[0]?.["value"], "undefined");
  assert.equal(daemon.notes("cancel")[0]?.["id"], daemon.callsOf("ui.select")[0]?.["id"]);
  await daemon.stop();
});

test("notices have the fields of the RPC wire", async () => {
  const body = `pi.on('x', (event, ctx) => {
    ctx.ui.notify('m', 'warning'); ctx.ui.setStatus('k', 't'); ctx.ui.setStatus('k', undefined);
    ctx.ui.setWidget('w', ['l'], { placement: 'belowEditor' }); ctx.ui.setWidget('w', () => {}); ctx.ui.setWidget('w', undefined);
    ctx.ui.setTitle('t'); ctx.ui.setEditorText('e'); ctx.ui.pasteToEditor('p'); ctx.ui.custom(() => { throw new Error('called'); });
  });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  await daemon.hook({ type: "x" });
  assert.deepEqual(
    daemon.notes("ui").map(({ type: _t, epoch: _e, ext: _x, ...rest }) => rest),
    [
      { method: "notify", message: "m", notifyType: "warning" },
      { method: "setStatus", statusKey: "k", statusText: "t" },
      { method: "setStatus", statusKey: "k" },
      { method: "setWidget", widgetKey: "w", widgetLines: ["l"], widgetPlacement: "belowEditor" },
      { method: "setWidget", widgetKey: "w" },
      { method: "setTitle", title: "t" },
      { method: "setEditorText", text: "e" },
      { method: "setEditorText", text: "p" },
      { method: "custom" },
    ],
  );
  await daemon.stop();
});

test("without UI every dialog gives its default and no request", async () => {
  const all = "Promise.all([ctx.ui.select('t', []), ctx.ui.confirm('t', 'm'), ctx.ui.input('t'), ctx.ui.editor('t'), ctx.ui.custom(() => 1)]).then((v) => v.map(String))";
  assert.deepEqual(await evaluate(all, {}, { mode: "print", hasUI: false }, { mode: "print", hasUI: false }), ["undefined", "false", "undefined", "undefined", "undefined"]);
});

test("members of the UI that need a terminal are inert", async () => {
  const list = "[typeof ctx.ui.onTerminalInput(() => {}), ctx.ui.getEditorText(), ctx.ui.getToolsExpanded(), ctx.ui.getAllThemes(), ctx.ui.setTheme('x'), String(ctx.ui.getEditorComponent())]";
  assert.deepEqual(await evaluate(list), ["function", "", false, [], { success: false, error: "Theme switching not supported in RPC mode" }, "undefined"]);
  const calls = ["setWorkingMessage()", "setWorkingVisible(true)", "setWorkingIndicator()", "setHiddenThinkingLabel()", "setFooter()", "setHeader()", "addAutocompleteProvider()", "setEditorComponent()", "setToolsExpanded(true)"];
  for (const call of calls) assert.equal(await evaluate(`ctx.ui.${call}`), "undefined", call);
});
