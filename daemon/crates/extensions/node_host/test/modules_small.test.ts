/** Constants and small functions of all modules, compared with the reference. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Comparison } from "./support/compare.ts";
import { ourModule, pickFunction } from "./support/modules.ts";
import { needsReference, referenceModule } from "./support/reference.ts";

type Json = Record<string, unknown>;

/** Constants that are ours: nothing is measured, and descriptions of keys are in our words. */
const OWN_CONSTANTS = new Set(["AI_TELEMETRY_SCHEMA", "TUI_KEYBINDINGS"]);

test("constants are those of the reference", needsReference, () => {
  for (const name of ["pi-tui", "pi-ai", "pi-agent-core", "pi-coding-agent"]) {
    const ours = ourModule(name);
    for (const [key, value] of Object.entries(referenceModule(name))) {
      if (typeof value === "function" || key === "Type" || OWN_CONSTANTS.has(key)) continue;
      assert.equal(JSON.stringify(ours[key]), JSON.stringify(value), `${name} ${key}`);
    }
  }
  const [theirKey, ourKey] = [referenceModule("pi-tui"), ourModule("pi-tui")].map(({ Key }) => Key as Json);
  for (const [name, value] of Object.entries(theirKey as Json)) {
    if (typeof value !== "function") continue;
    assert.equal(pickFunction<(key: string) => string>(ourKey as Json, name)("x"), (value as (key: string) => string)("x"), name);
  }
});

const ERROR = { message: "bad", code: "E1" };
const ENTRY = { type: "message", id: "a", parentId: null, timestamp: "t", message: { role: "user", content: "x", timestamp: 1 } };

/** Calls by package and function. */
const CALLS: Record<string, Record<string, unknown[][]>> = {
  "pi-tui": {
    indexedColor: [[3], [300], [1.5]],
    rgbColor: [[1, 2, 3], [300, 0, 0], [0, -1, 0], [NaN, 0, 0]],
    oklchColor: [[0.5, 0.1, 20], [2, 0, 0], [0.5, -1, 0], [0.5, 0.1, 400], [0.5, 0.1, -30], [0.5, 0.1, NaN]],
    oklabToOkhslLightness: [[0], [0.5], [1]],
    styleTextWithAnsi: [["x", "\x1b[31m", "\x1b[41m", { bold: true, dim: true }], ["x", undefined, undefined, {}]],
    getCellDimensions: [[]],
    getCapabilities: [[]],
    getTerminalColorMode: [[], [{ trueColor: true }]],
    isFocusable: [[{ focused: false }], [null], [{}]],
    isViewportTUI: [[{}]],
    isKittyProtocolActive: [[]],
    isAppleTerminalSession: [[]],
    getPngDimensions: [["QUJD"], [""]],
    getJpegDimensions: [["QUJD"], [""]],
    getGifDimensions: [["QUJD"], [""]],
    getWebpDimensions: [["QUJD"], [""]],
  },
  "pi-ai": {
    contentText: [["s"], [[{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }]], [[{ type: "text", text: "a" }], "|"]],
    getModelType: [[{}], [{ type: "image" }]],
    isModelType: [[{}, "chat"], [{ type: "image" }, "chat"]],
    hasApi: [[{ api: "x" }, "x"], [{ api: "x" }, "y"]],
    modelsAreEqual: [[{ id: "a", provider: "p" }, { id: "a", provider: "p" }], [{ id: "a", provider: "p" }, { id: "a", provider: "q" }], [null, undefined]],
    formatThrownValue: [["s"], [{ a: 1 }], [undefined], [null], [5]],
    extractDiagnosticError: [["str"], [ERROR], [null]],
    formatUserAgent: [[], [{ userAgent: "short" }], [{ userAgent: { custom: "x" } }], [{ version: "9" }]],
    getClientVersion: [[], [{ version: "2" }]],
    getCacheWarmingRequestOptions: [[{ a: 1, maxTokens: 5, maxRetries: 3 }, undefined]],
    isRecoverableLength: [[{ stopReason: "length", usage: { output: 10 } }, 100], [{ stopReason: "length", usage: { output: 100 } }, 100], [{ stopReason: "stop", usage: { output: 10 } }, 100]],
    parseJsonWithRepair: [['{"a":"line\nbreak"}'], ["12"], ['{"a":"bad \\d"}']],
    fauxText: [["a"]],
    fauxThinking: [["b"]],
    fauxToolCall: [["n", { x: 1 }, { id: "i" }]],
    fauxAssistantMessage: [["hi", { timestamp: 5 }], [[{ type: "text", text: "q" }], { stopReason: "toolUse", timestamp: 5 }], [{ type: "text", text: "q" }, { stopReason: "error", errorMessage: "e", timestamp: 5 }]],
    getImagesApiProvider: [["none"]],
  },
  "pi-coding-agent": {
    calculateContextTokens: [[{ totalTokens: 5 }], [{ input: 1, output: 2, cacheRead: 3, cacheWrite: 4, totalTokens: 0 }]],
    defineTool: [[{ name: "a" }]],
    isToolCallEventType: [["bash", { toolName: "bash" }], ["bash", { toolName: "read" }]],
    stripFrontmatter: [["---\na: 1\n---\nbody"], ["none"]],
    parseSessionEntries: [[`${JSON.stringify(ENTRY)}\n\n{bad\n${JSON.stringify(ENTRY)}`], [""]],
    getShellConfig: [["/bin/sh"], [], ["/no/shell"]],
    getPowerShellConfig: [[]],
    ...Object.fromEntries(
      ["Bash", "PowerShell", "Read", "Edit", "Write", "Grep", "Find", "Ls"].map((name) => [
        `is${name}ToolResult`,
        [[{ toolName: name.toLowerCase() }], [{ toolName: "other" }]],
      ]),
    ),
  },
};

test("small functions give what the reference gives", needsReference, () => {
  for (const [name, functions] of Object.entries(CALLS)) {
    const comparison = new Comparison(referenceModule(name), ourModule(name));
    for (const [key, calls] of Object.entries(functions)) for (const args of calls) comparison.same(key, ...args);
  }
});

interface Keybindings {
  getKeys(name: string): string[];
  getConflicts(): unknown;
  getUserBindings(): unknown;
  getResolvedBindings(): Json;
  matches(data: string, name: string): boolean;
}

test("keys of the user replace the default ones, and conflicts are told", () => {
  const results = [ourModule("pi-tui")].concat(needsReference.skip === undefined ? [referenceModule("pi-tui")] : []).map((exports) => {
    const Manager = exports.KeybindingsManager as new (definitions: unknown, own: unknown) => Keybindings;
    const manager = new Manager(exports.TUI_KEYBINDINGS, { "tui.select.up": ["k", "up"], "tui.select.down": "k", "x.y": "z" });
    const defaults = pickFunction<() => Keybindings>(exports, "getKeybindings")();
    const page = pickFunction<(...args: unknown[]) => number | undefined>(exports, "getSelectPageIndex");
    return {
      keys: [manager.getKeys("tui.select.up"), manager.getKeys("tui.select.down"), manager.getKeys("nope"), defaults.getKeys("tui.select.cancel")],
      conflicts: manager.getConflicts(),
      own: manager.getUserBindings(),
      resolved: manager.getResolvedBindings(),
      matches: [manager.matches("k", "tui.select.up"), manager.matches("\x1b[B", "tui.select.down")],
      pages: ["\x1b[6~", "\x1b[5~", "x"].map((data) => page(defaults, data, 2, 10, 4)),
    };
  });
  assert.deepEqual(results[0]?.keys, [["k", "up"], ["k"], [], ["escape", "ctrl+c"]]);
  assert.deepEqual(results[0]?.pages, [6, 0, undefined]);
  if (results[1]) assert.deepEqual(results[0], results[1]);
});

test("errors of thrown values and of models keep their code", () => {
  const ai = ourModule("pi-ai");
  const extract = pickFunction<(error: unknown) => Json>(ai, "extractDiagnosticError");
  const error = extract(Object.assign(new TypeError("bad"), { code: "E1" }));
  assert.deepEqual([error.name, error.message, error.code], ["TypeError", "bad", "E1"]);
  const ModelsError = ai.ModelsError as new (code: string, message: string, options: object) => Error & { code: string };
  const failed = new ModelsError("auth", "msg", { cause: 1 });
  assert.deepEqual([failed.name, failed.code, failed.message, failed.cause], ["ModelsError", "auth", "msg", 1]);
  const message: { diagnostics?: Json[] } = {};
  const append = pickFunction<(target: object, diagnostic: Json) => void>(ai, "appendAssistantMessageDiagnostic");
  append(message, { type: "a" });
  append(message, { type: "b" });
  assert.deepEqual(message.diagnostics?.map(({ type }) => type), ["a", "b"]);
});

interface CredentialStore {
  read(id: string): Promise<unknown>;
  list(): Promise<unknown>;
  modify(id: string, change: (current: Json | undefined) => Promise<Json | undefined>): Promise<unknown>;
  delete(id: string): Promise<void>;
}

test("changes of a credential come one after the other", async () => {
  const store = new (ourModule("pi-ai").InMemoryCredentialStore as new () => CredentialStore)();
  const order: unknown[] = [];
  const change = (n: number) => async (current: Json | undefined) => {
    order.push([n, current?.key]);
    await new Promise((resolve) => setImmediate(resolve));
    return { type: "api_key", key: n };
  };
  const broken = store.modify("p", async () => Promise.reject(new Error("broken")));
  await Promise.all([assert.rejects(broken), store.modify("p", change(1)), store.modify("p", change(2))]);
  assert.deepEqual(order, [[1, undefined], [2, 1]]);
  assert.deepEqual(await store.list(), [{ providerId: "p", type: "api_key" }]);
  await store.delete("p");
  assert.equal(await store.read("p"), undefined);
});

test("a class that is loaded late can be constructed and extended", () => {
  const { Marked } = ourModule("pi-tui") as { Marked: new () => { parse(text: string): string } };
  assert.equal(new Marked().parse("**a**"), "<p><strong>a</strong></p>\n");
  class Own extends Marked {
    shout(text: string): string {
      return this.parse(text).toUpperCase();
    }
  }
  const own = new Own();
  assert.ok(own instanceof Marked);
  assert.equal(own.shout("a"), "<P>A</P>\n");
});

test("a slow api is loaded once, at its first request", async () => {
  const ai = ourModule("pi-ai");
  type Stream = { result(): Promise<Json> };
  type Api = { stream(...args: unknown[]): Stream };
  let loads = 0;
  const create = pickFunction<() => Stream & { push(event: Json): void }>(ai, "createAssistantMessageEventStream");
  const stream = (): Stream => {
    const made = create();
    made.push({ type: "done", reason: "stop", message: { role: "assistant", stopReason: "stop", timestamp: 1 } });
    return made;
  };
  const api = pickFunction<(load: () => Promise<unknown>) => Api>(ai, "lazyApi")(async () => ((loads += 1), { stream, streamSimple: stream }));
  assert.equal(loads, 0);
  assert.equal((await api.stream({}, { messages: [] }).result()).stopReason, "stop");
  await api.stream({}, { messages: [] }).result();
  assert.equal(loads, 1);
  const failing = pickFunction<(load: () => Promise<unknown>) => Api>(ai, "lazyApi")(async () => Promise.reject(new Error("no module")));
  assert.equal((await failing.stream({}, { messages: [] }).result()).errorMessage, "no module");
});
