import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { extension, FakeDaemon } from "./fake_daemon.ts";

async function errorOf(source: string): Promise<string | undefined> {
  const daemon = await FakeDaemon.greeted();
  const { extensions } = await daemon.load({ one: source });
  const error = extensions[0]?.error?.replace(daemon.folder, "DIR");
  await daemon.stop();
  return error;
}

const NOT_INITIALIZED = "Failed to load extension: Extension runtime not initialized. Action methods cannot be called during extension loading.";

const REFUSED: [string, string, string][] = [
  ["an entry without a factory", "export const x = 1;", "Extension does not export a valid factory function: DIR/one.ts"],
  ["a factory that throws", extension("throw new Error('no luck');"), "Failed to load extension: no luck"],
  ["a module that throws", "throw new Error('at import'); export default () => {};", "Failed to load extension: at import"],
  ["an action in the factory", extension("pi.sendMessage({ customType: 'x', content: 'y', display: true });"), NOT_INITIALIZED],
  ["a read in the factory", extension("pi.getActiveTools();"), NOT_INITIALIZED],
  ["setModel in the factory", extension("await pi.setModel({ provider: 'a', id: 'b' });"), "Failed to load extension: Extension runtime not initialized"],
  [
    "a tool without a schema",
    extension("pi.registerTool({ name: 't', parameters: [] });"),
    'Failed to load extension: Tool "t" registered by extension "DIR/one.ts" must define an object parameter schema.',
  ],
  [
    "a command without a name",
    extension("pi.registerCommand('', { handler() {} });"),
    'Failed to load extension: Command registered by extension "DIR/one.ts" must have a non-empty string name. Use pi.registerCommand("name", { description, handler }).',
  ],
  [
    "a command without a handler",
    extension("pi.registerCommand('c', {});"),
    'Failed to load extension: Command "/c" registered by extension "DIR/one.ts" must define handler().',
  ],
  [
    "a flag with a default of another type",
    extension("pi.registerFlag('f', { type: 'boolean', default: 'yes' });"),
    'Failed to load extension: Invalid default for flag "f": expected boolean, got string',
  ],
  ["a provider without a config", extension("pi.registerProvider('p');"), "Failed to load extension: Provider config is required when registering by name"],
  [
    "an MCP server with a bad name",
    extension("pi.registerMcpServer('a b', { command: 'x' });"),
    'Failed to load extension: Invalid MCP server registered by extension "DIR/one.ts": invalid server name "a b" (use letters, digits, "_" and "-")',
  ],
  [
    "an MCP server without a transport",
    extension("pi.registerMcpServer('a', {});"),
    'Failed to load extension: Invalid MCP server registered by extension "DIR/one.ts": server "a" needs either "command" (stdio) or "url" (streamable HTTP)',
  ],
];

for (const [name, source, error] of REFUSED) {
  test(`${name} is refused with pi's text`, async () => {
    assert.equal(await errorOf(source), error);
  });
}

test("a file that is not there is named", async () => {
  const daemon = await FakeDaemon.greeted();
  const { extensions } = await daemon.loadFiles([{ ext: "x", path: "/nowhere/x.ts", entry: "/nowhere/x.ts" }]);
  assert.equal(extensions[0]?.error, "Extension path does not exist: /nowhere/x.ts");
  await daemon.stop();
});

test("extensions load in order, one after the other, and the notes of a load precede its result", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({
    slow: extension("await new Promise((resolve) => setTimeout(resolve, 50)); pi.on('agent_start', () => {});"),
    quick: extension("pi.on('agent_end', () => {});"),
  });
  assert.deepEqual(
    daemon.registered("handler").map((note) => [note["ext"], note["event"]]),
    [
      ["slow", "agent_start"],
      ["quick", "agent_end"],
    ],
  );
  assert.equal(daemon.received.at(-1)?.["type"], "result");
  await daemon.stop();
});

test("TypeScript, CommonJS and relative imports load; names are resolved from the extension", async () => {
  const daemon = await FakeDaemon.greeted();
  daemon.write("helper.ts", "export const name: string = 'from-helper';");
  const typed = "import { name } from './helper.ts';\nimport { readFileSync } from 'node:fs';\nexport default function (pi: { registerCommand(n: string, o: object): void }) { void readFileSync; pi.registerCommand(name, { handler() {} }); }";
  const { extensions } = await daemon.load({ typed, "common.js": "module.exports = (pi) => pi.registerCommand('common', { handler() {} });" });
  assert.deepEqual(extensions.map((one) => one.error), [undefined, undefined]);
  assert.deepEqual(daemon.registered("command").map((note) => note["name"]), ["from-helper", "common"]);
  await daemon.stop();
});

test("host modules are found by name, and by their old names", async () => {
  const source = "import { Type } from 'typebox'; import { Type as Old } from '@sinclair/typebox';\n" + extension("pi.registerTool({ name: 't', label: '', description: '', parameters: Type.Object({ a: Old.String() }), execute() {} });");
  const daemon = await FakeDaemon.greeted();
  const { extensions } = await daemon.load({ one: source });
  assert.equal(extensions[0]?.error, undefined);
  const def = daemon.registered("tool")[0]?.["def"] as { parameters: unknown };
  assert.deepEqual(def.parameters, { type: "object", required: ["a"], properties: { a: { type: "string" } } });
  await daemon.stop();
});

const COUNTER = "let loads = 0;\nglobalThis.imports = (globalThis.imports ?? 0) + 1;\n" + extension("loads++; pi.registerCommand(`loads-${loads}-imports-${globalThis.imports}`, { handler() {} });");

test("module instances live until clearCache; each load runs the factory", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ count: COUNTER });
  await daemon.request("unload", { epoch: 1, reason: "new" });
  daemon.epoch = 2;
  await daemon.load({ count: COUNTER });
  await daemon.request("unload", { epoch: 2, reason: "reload" });
  daemon.epoch = 3;
  await daemon.load({ count: COUNTER }, { clearCache: true });
  assert.deepEqual(
    daemon.registered("command").map((note) => note["name"]),
    ["loads-1-imports-1", "loads-2-imports-1", "loads-1-imports-2"],
  );
  await daemon.stop();
});

test("another cwd forgets module instances", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ count: COUNTER });
  await daemon.request("unload", { epoch: 1, reason: "resume" });
  daemon.epoch = 2;
  await daemon.load({ count: COUNTER }, { session: { sessionId: "s2", cwd: "/", trusted: true } });
  assert.equal(daemon.registered("command").at(-1)?.["name"], "loads-1-imports-2");
  await daemon.stop();
});

test("changed sources are seen after clearCache", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ one: extension("pi.registerCommand('before', { handler() {} });") });
  writeFileSync(daemon.write("one", ""), extension("pi.registerCommand('after', { handler() {} });"));
  await daemon.request("unload", { epoch: 1, reason: "reload" });
  daemon.epoch = 2;
  const file = `${daemon.folder}/one.ts`;
  await daemon.loadFiles([{ ext: "one", path: file, entry: file }], { clearCache: true });
  assert.equal(daemon.registered("command").at(-1)?.["name"], "after");
  await daemon.stop();
});

test("a failed extension loses its subscriptions, and its API says so", async () => {
  const daemon = await FakeDaemon.greeted();
  const failing = extension("globalThis.failed = pi; pi.events.on('channel', () => console.error('heard')); throw new Error('no');");
  const probe = extension("pi.events.emit('channel', 1); try { globalThis.failed.on('x', () => {}); } catch (error) { pi.registerCommand(error.message, { handler() {} }); }");
  await daemon.load({ failing, probe });
  assert.equal(daemon.registered("command")[0]?.["name"], `Extension "${daemon.folder}/failing.ts" failed to load and its API is no longer active.`);
  assert.equal(daemon.stderr.includes("heard"), false);
  await daemon.stop();
});

test("changes of the runtime wait for the factory, and are dropped when it fails", async () => {
  const daemon = await FakeDaemon.greeted();
  const late = "pi.registerProvider('p', { baseUrl: 'http://x' }); pi.registerMcpServer('m', { command: 'c' }); pi.registerFlag('last', { type: 'boolean' });";
  await daemon.load({ good: extension(late), bad: extension(`${late.replace("'m'", "'n'")} throw new Error('no');`) });
  const kinds = (ext: string) => daemon.notes("register").filter((note) => note["ext"] === ext).map((note) => note["kind"]);
  assert.deepEqual(kinds("good"), ["flag", "provider", "mcpServer"]);
  assert.deepEqual(kinds("bad"), ["flag"]);
  await daemon.stop();
});

test("what fails when postponed changes are applied is an error of the extension, not of the load", async () => {
  const daemon = await FakeDaemon.greeted();
  const { extensions } = await daemon.load({ one: extension("pi.registerProvider('p', { streamSimple() {} }); pi.registerVirtualModel({ provider: '', id: 'x', route() {} });") });
  assert.equal(extensions[0]?.ok, true);
  assert.deepEqual(
    daemon.notes("error").map((note) => [note["event"], note["message"]]),
    [
      ["register_provider", 'Provider p: "api" is required when registering streamSimple.'],
      ["register_virtual_model", "Virtual model provider and id must not be empty."],
    ],
  );
  await daemon.stop();
});

test("flags: the default in the factory, the given value after bind, undefined for others", async () => {
  const body = `
    pi.registerFlag('mine', { type: 'string', default: 'd' });
    const early = pi.getFlag('mine');
    pi.on('session_start', () => ({ early, late: pi.getFlag('mine'), other: String(pi.getFlag('other')) }));`;
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ flags: extension(body) });
  await daemon.bind({}, { mine: "given", other: true });
  const [returned] = await daemon.hook({ type: "session_start", reason: "startup" });
  assert.deepEqual(returned?.["value"], { early: "d", late: "given", other: "undefined" });
  await daemon.stop();
});

test("a second load of an epoch keeps the extensions of the first", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ first: extension("pi.on('agent_start', () => 1);") });
  await daemon.load({ second: extension("pi.on('agent_start', () => 2);") });
  await daemon.bind();
  assert.deepEqual((await daemon.hook({ type: "agent_start" })).map((one) => one["value"]), [1, 2]);
  await daemon.stop();
});

test("the environment of the greeting is set before extensions load", async () => {
  const daemon = await FakeDaemon.greeted({ hello: { env: { EXTRA: "yes", AGENTD_PI_SHIM: "/shim/cli.js" } } });
  const names = "[process.env.EXTRA, process.env.PI_CODING_AGENT, process.env.AI_AGENT, process.argv[1], String(process.env.AGENTD_HOST_FD)]";
  await daemon.load({ env: extension(`pi.registerCommand(${names}.join(' '), { handler() {} });`) });
  assert.equal(daemon.registered("command")[0]?.["name"], "yes true pi /shim/cli.js undefined");
  await daemon.stop();
});

test("a process that an extension ends has sent what it did before", async () => {
  const daemon = await FakeDaemon.greeted();
  daemon.load({ crash: extension("pi.registerCommand('before', { handler() {} }); process.exit(7);") }).catch(() => {});
  assert.equal(await daemon.exited, 7);
  await daemon.when((record) => record["type"] === "register" && record["name"] === "before");
});

test("uncaught errors and rejections are reported with their extension, and the process lives on", async () => {
  const daemon = await FakeDaemon.bound({ wild: extension("pi.on('agent_start', () => { setTimeout(() => { throw new Error('thrown'); }); Promise.reject(new Error('rejected')); });") });
  await daemon.hook({ type: "agent_start" });
  for (const message of ["thrown", "rejected"]) {
    const note = await daemon.when((record) => record["type"] === "error" && record["message"] === message);
    assert.equal(note["event"], "uncaught");
    assert.equal(note["ext"], "wild");
  }
  assert.equal(await daemon.request("ping"), null);
  await daemon.stop();
});

test("exports that are not available are named: at the load, or when they are used later", async () => {
  const source = `import { createAgentSessionServices, createAgentSessionRuntime } from "@mariozechner/pi-coding-agent";
    ${extension("void createAgentSessionServices; pi.registerCommand('later', { handler() { createAgentSessionRuntime(); } });")}`;
  const daemon = await FakeDaemon.greeted();
  const { extensions } = await daemon.load({ one: source });
  assert.deepEqual(extensions[0]?.missing, ["createAgentSessionServices of pi-coding-agent used but not available"]);
  await daemon.bind();
  await assert.rejects(daemon.command("later", "", "one"), /^Error: createAgentSessionRuntime is not available in agentd$/);
  assert.deepEqual(daemon.notes("log").map(({ level, text, ext }) => [level, text, ext]), [["warn", "createAgentSessionRuntime of pi-coding-agent used but not available", "one"]]);
  await daemon.stop();
});

test("packages that are read at their first use work in the built host", async () => {
  const source = `import { getMarkdownTheme, parseFrontmatter } from "@earendil-works/pi-coding-agent"; import { Markdown } from "@earendil-works/pi-tui";
    ${extension("pi.on('x', () => ({ front: parseFrontmatter('---\\nname: n\\nlist: [1, 2]\\n---\\nbody'), lines: new Markdown('# Head\\n\\n- one\\n- two', 0, 0, getMarkdownTheme()).render(40).join('|') }));")}`;
  const daemon = await FakeDaemon.bound({ one: source });
  const [returned] = await daemon.hook({ type: "x" });
  assert.equal(returned?.["error"], undefined);
  const { front, lines } = returned?.["value"] as { front: { frontmatter: unknown; body: string }; lines: string };
  assert.deepEqual(front, { frontmatter: { name: "n", list: [1, 2] }, body: "body" });
  assert.match(lines, /Head.*one.*two/);
  await daemon.stop();
});
