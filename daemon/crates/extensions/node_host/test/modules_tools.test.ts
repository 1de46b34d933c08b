/** The built-in tools that extensions wrap: in the daemon, and over operations of the extension. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { ourModule, pickFunction } from "./support/modules.ts";
import { Random } from "./support/random.ts";
import { needsReference, referenceModule } from "./support/reference.ts";
import { FakeServices } from "./support/services.ts";

type Json = Record<string, unknown>;

interface Result {
  content: { type: string; text?: string }[];
  details?: Json;
  structuredContent?: unknown;
  isError?: boolean;
}

interface Tool extends Json {
  name: string;
  execute(id: string, params: Json, signal?: AbortSignal, onUpdate?: (partial: Result) => void, ctx?: unknown): Promise<Result>;
}

type Factory = (cwd: string, options?: Json) => Tool;

const CWD = "/project";

function withLocks(services: FakeServices = new FakeServices()): FakeServices {
  let token = 0;
  return services.on("lock.acquire", () => ({ token: (token += 1) })).on("lock.release", () => null);
}

function factory(name: string, services: FakeServices = withLocks()): Factory {
  return pickFunction<Factory>(ourModule("pi-coding-agent", services), name);
}

function textOf(result: Result): string {
  return result.content.map(({ text }) => text ?? "").join("");
}

test("a tool without operations runs in the daemon, with its updates", async () => {
  const partial = { content: [{ type: "text", text: "so far" }] };
  const result = { content: [{ type: "text", text: "done" }], details: {} };
  const services = new FakeServices().on("tool.builtin", (_params, { onEvent, signal }) => {
    assert.ok(signal instanceof AbortSignal);
    onEvent?.(partial);
    return result;
  });
  const tool = factory("createBashTool", services)(CWD, { commandPrefix: "set -e" });
  const updates: unknown[] = [];
  const { signal } = new AbortController();
  assert.equal(await tool.execute("1", { command: "ls" }, signal, (update) => updates.push(update)), result);
  assert.deepEqual(updates, [partial]);
  assert.deepEqual(services.calls, [
    { method: "tool.builtin", params: { name: "bash", cwd: CWD, params: { command: "ls" }, toolCallId: "1", options: { commandPrefix: "set -e" } } },
  ]);
});

test("tools can be spread into definitions of an extension", () => {
  for (const name of ["Read", "Bash", "Edit", "Write", "Grep", "Find", "Ls"]) {
    const tool = factory(`create${name}Tool`)(CWD);
    const own: Tool = { ...tool, label: "own", execute: () => Promise.resolve({ content: [] }) };
    assert.equal(own.name, name.toLowerCase());
    assert.equal((own.parameters as Json).type, "object");
    assert.equal(typeof own.description, "string");
    assert.equal(typeof factory(`create${name}ToolDefinition`)(CWD).renderCall, "function");
  }
  const names = (tools: unknown): string[] => (tools as Tool[]).map(({ name }) => name);
  const exports = ourModule("pi-coding-agent");
  assert.deepEqual(names(pickFunction<Factory>(exports, "createReadOnlyTools")(CWD)), ["read", "grep", "find", "ls"]);
  assert.deepEqual(names(pickFunction<Factory>(exports, "createCodingTools")(CWD)), ["read", "bash", "edit", "write"]);
});

test("parameters have the names and types of the reference", needsReference, () => {
  const shape = (schema: unknown): unknown => {
    if (typeof schema !== "object" || schema === null) return schema;
    const { type, properties, required, items } = schema as Json;
    const members = Object.fromEntries(Object.entries((properties ?? {}) as Json).map(([name, part]) => [name, shape(part)]).sort());
    return { type, members, required: [...((required as string[] | undefined) ?? [])].sort(), items: items === undefined ? null : shape(items) };
  };
  for (const name of ["Read", "Bash", "Edit", "Write", "Grep", "Find", "Ls"]) {
    const theirs = pickFunction<Factory>(referenceModule("pi-coding-agent"), `create${name}ToolDefinition`)(CWD);
    const own = factory(`create${name}ToolDefinition`)(CWD);
    assert.deepEqual(shape(own.parameters), shape(theirs.parameters), name);
    assert.deepEqual(own.constrainedSampling, theirs.constrainedSampling, name);
    assert.equal(own.prepareArguments !== undefined, theirs.prepareArguments !== undefined, name);
  }
});

/** A file system in memory. */
class Files {
  readonly contents = new Map<string, string>();

  operations(): Json {
    const missing = (path: string): Error => Object.assign(new Error(`ENOENT: no such file or directory, access '${path}'`), { code: "ENOENT" });
    const children = (folder: string): string[] => [...new Set([...this.contents.keys()].filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1).split("/")[0] as string))];
    const isFolder = (path: string): boolean => children(path).length > 0;
    return {
      access: async (path: string) => {
        if (!this.contents.has(path)) throw missing(path);
      },
      readFile: async (path: string) => Buffer.from(this.contents.get(path) ?? ""),
      writeFile: async (path: string, content: string) => void this.contents.set(path, content),
      mkdir: async () => undefined,
      exists: (path: string) => this.contents.has(path) || isFolder(path),
      stat: (path: string) => {
        if (path.endsWith("broken")) throw missing(path);
        return { isDirectory: () => isFolder(path) };
      },
      readdir: (path: string) => children(path),
      glob: (pattern: string, cwd: string) => [...this.contents.keys()].filter((path) => path.startsWith(cwd) && path.includes(pattern)),
    };
  }
}

async function outcome(tool: Tool, params: Json): Promise<unknown> {
  const prepare = tool.prepareArguments as ((args: unknown) => unknown) | undefined;
  try {
    const result = await tool.execute("1", (prepare?.(structuredClone(params)) ?? params) as Json);
    return JSON.parse(JSON.stringify(result)) as unknown;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Runs the same calls of a tool on both sides, each with files of its own. */
class Both {
  readonly #tools: [Tool, Tool];
  readonly #files: [Files, Files] = [new Files(), new Files()];

  constructor(name: string, contents: Record<string, string>) {
    for (const files of this.#files) for (const [path, content] of Object.entries(contents)) files.contents.set(path, content);
    const factories = [pickFunction<Factory>(referenceModule("pi-coding-agent"), name), factory(name)];
    this.#tools = factories.map((make, side) => make(CWD, { operations: (this.#files[side] as Files).operations() })) as [Tool, Tool];
  }

  async same(params: Json): Promise<void> {
    const [theirs, own] = await Promise.all(this.#tools.map((tool) => outcome(tool, params)));
    assert.deepEqual(own, theirs, JSON.stringify(params));
    assert.deepEqual(this.#files[1].contents, this.#files[0].contents, JSON.stringify(params));
  }
}

test("files are read and listed over operations", async () => {
  const files = new Files();
  for (const [path, content] of [["/project/a.txt", "one\ntwo\nthree"], ["/project/Dir/x", ""], ["/project/.b", ""]] as const) files.contents.set(path, content);
  const options = { operations: files.operations() };
  const read = factory("createReadTool")(CWD, options);
  assert.equal(textOf(await read.execute("1", { path: "a.txt", offset: 2, limit: 1 })), "two\n\n[1 more lines in file. Use offset=3 to continue.]");
  await assert.rejects(read.execute("1", { path: "a.txt", offset: 9 }), { message: "Offset 9 is beyond end of file (3 lines total)" });
  await assert.rejects(read.execute("1", { path: "none" }), /^Error: ENOENT/);
  assert.equal(textOf(await factory("createLsTool")(CWD, options).execute("1", {})), ".b\na.txt\nDir/");
  assert.equal(textOf(await factory("createFindTool")(CWD, options).execute("1", { pattern: "zzz" })), "No files found matching pattern");
});

test("an image over operations comes with its type", async () => {
  const operations = { ...new Files().operations(), access: async () => undefined, readFile: async () => Buffer.from("img"), detectImageMimeType: async () => "image/png" };
  const result = await factory("createReadTool")(CWD, { operations }).execute("1", { path: "p" });
  assert.deepEqual(result.content, [{ type: "text", text: "Read image file [image/png]" }, { type: "image", data: "aW1n", mimeType: "image/png" }]);
});

test("an aborted call changes nothing", async () => {
  const files = new Files();
  const tool = factory("createWriteTool")(CWD, { operations: files.operations() });
  await assert.rejects(tool.execute("1", { path: "f", content: "x" }, AbortSignal.abort()), { message: "Operation aborted" });
  assert.equal(files.contents.size, 0);
});

test("read over operations gives what the reference gives", needsReference, async () => {
  const many = Array.from({ length: 2500 }, (_, index) => `line ${index}`).join("\n");
  const both = new Both("createReadTool", {
    "/project/a.txt": "one\ntwo\nthree\n", "/project/empty": "", "/project/many": many, "/project/wide": `${"x".repeat(60000)}\nnext`,
    "/project/fat": Array.from({ length: 900 }, () => "y".repeat(99)).join("\n"), "/abs.txt": "\ufeffa\r\nb",
  });
  for (const path of ["a.txt", "@a.txt", "empty", "many", "wide", "fat", "/abs.txt", "none"]) {
    for (const range of [{}, { offset: 1 }, { offset: 2 }, { limit: 1 }, { offset: 2, limit: 1 }, { offset: 9999 }, { offset: 0 }, { offset: 2000, limit: 100 }, { offset: -3 }]) {
      await both.same({ path, ...range });
    }
  }
});

test("write over operations gives what the reference gives", needsReference, async () => {
  const both = new Both("createWriteTool", {});
  await both.same({ path: "a/b.txt", content: "x\r\ny" });
  await both.same({ path: "/c", content: "" });
});

test("ls and find over operations give what the reference gives", needsReference, async () => {
  const files = { "/project/b.txt": "", "/project/A.txt": "", "/project/.hidden": "", "/project/dir/x": "", "/project/dir/broken": "", "/project/Zed/y": "" };
  const ls = new Both("createLsTool", files);
  for (const params of [{}, { path: "dir" }, { path: "none" }, { path: "b.txt" }, { limit: 2 }, { limit: 0 }]) await ls.same(params);
  const find = new Both("createFindTool", files);
  for (const params of [{ pattern: "txt" }, { pattern: "none" }, { pattern: "x", path: "dir" }, { pattern: "", limit: 2 }, { pattern: "x", path: "nowhere" }]) await find.same(params);
});

test("edit over operations gives what the reference gives", needsReference, async () => {
  const random = new Random(41);
  const words = ["a", "b", "foo", "bar ", "\u201cq\u201d", "it\u2019s", "x\u2014y", "  tail  ", "", "same"];
  for (let round = 0; round < 200; round += 1) {
    const end = random.pick(["\n", "\n", "\r\n"]);
    const lines = random.list(12, () => random.pick(words));
    const content = (random.chance(8) ? "\ufeff" : "") + lines.join(end) + random.pick(["", end]);
    const both = new Both("createEditTool", { "/project/f": content });
    const piece = (): string => {
      const from = random.below(lines.length + 1);
      const part = lines.slice(from, from + 1 + random.below(2)).join(random.pick(["\n", end]));
      return random.chance(3) ? part.replaceAll("\u201c", '"').replaceAll("\u201d", '"').replaceAll("\u2019", "'").replaceAll("\u2014", "-").trimEnd() : part;
    };
    const edits = Array.from({ length: 1 + random.below(2) }, () => ({ oldText: piece(), newText: random.pick(["new", "n1\nn2", "", "n\r\nm", "foo"]) }));
    await both.same({ path: "f", edits });
  }
  const both = new Both("createEditTool", { "/project/f": "one two\nthree\n" });
  await both.same({ path: "none", edits: [{ oldText: "a", newText: "b" }] });
  await both.same({ path: "f", edits: [] });
  await both.same({ path: "f", edits: '[{"oldText":"one","newText":"1"}]' });
  await both.same({ path: "f", oldText: "two", newText: "2" });
  await both.same({ path: "f", edits: { oldText: "three", newText: "3" } });
});

test("edits replace exact text and keep the line ends of the file", async () => {
  const files = new Files();
  files.contents.set("/project/f", "\ufeffone\r\ntwo\r\nthree\r\n");
  const tool = factory("createEditTool")(CWD, { operations: files.operations() });
  const result = await tool.execute("1", { path: "f", edits: [{ oldText: "two\n", newText: "2\n2b\n" }] });
  assert.equal(files.contents.get("/project/f"), "\ufeffone\r\n2\r\n2b\r\nthree\r\n");
  assert.equal(textOf(result), "Successfully replaced 1 block(s) in f.");
  assert.equal(result.details?.firstChangedLine, 2);
  await assert.rejects(tool.execute("1", { path: "f", edits: [{ oldText: "gone", newText: "x" }] }), /Could not find the exact text in f/);
});

test("changes over operations wait in the daemon's queue", async () => {
  const services = withLocks();
  const files = new Files();
  files.contents.set("/project/f", "a");
  await factory("createEditTool", services)(CWD, { operations: files.operations() }).execute("1", { path: "f", edits: [{ oldText: "a", newText: "b" }] });
  await factory("createWriteTool", services)(CWD, { operations: files.operations() }).execute("1", { path: "f", content: "c" });
  assert.deepEqual(services.methods(), ["lock.acquire", "lock.release", "lock.acquire", "lock.release"]);
  assert.deepEqual(services.calls[0]?.params, { path: "/project/f" });
  assert.deepEqual(services.calls[1]?.params, { token: 1 });
});

test("the queue gives its place up when a change fails", async () => {
  const services = withLocks();
  const queue = pickFunction<(path: string, change: () => Promise<unknown>) => Promise<unknown>>(ourModule("pi-coding-agent", services), "withFileMutationQueue");
  assert.equal(await queue("/f", async () => 5), 5);
  await assert.rejects(queue("/f", async () => Promise.reject(new Error("broken"))), { message: "broken" });
  assert.deepEqual(services.methods(), ["lock.acquire", "lock.release", "lock.acquire", "lock.release"]);
});

interface ExecOptions {
  onData: (data: Buffer) => void;
  signal?: AbortSignal;
  timeout?: number;
  env?: NodeJS.ProcessEnv;
}

interface BashOperations {
  exec(command: string, cwd: string, options: ExecOptions): Promise<{ exitCode: number | null }>;
}

function scripted(run: (options: ExecOptions) => number | null | Promise<number | null>): Json {
  return { operations: { exec: async (_command: string, _cwd: string, options: ExecOptions) => ({ exitCode: await run(options) }) } };
}

/** What the reference's bash asks of its context. */
const TOOL_CONTEXT = { sessionManager: { getSessionId: () => "s", getSessionFile: () => undefined } };

/** Paths of output files and times differ. */
function maskBash(result: unknown): unknown {
  const text = JSON.stringify(result, (key, value: unknown) => (key === "wall_time_seconds" ? 0 : value));
  return JSON.parse(text.replace(/\/[^"\s\]]*pi-bash-[0-9a-f]{16}\.log/g, "LOG")) as unknown;
}

function removeLog(context: TestContext, result: Result): void {
  const path = result.details?.fullOutputPath;
  if (typeof path === "string") context.after(() => rmSync(path, { force: true }));
}

test("bash over operations gives what the reference gives", needsReference, async (context) => {
  const cases: [string, (options: ExecOptions) => number | null][] = [
    ["no output", () => 0],
    ["output", ({ onData }) => (onData(Buffer.from("hi\n")), 0)],
    ["failure", ({ onData }) => (onData(Buffer.from("hi\n")), 3)],
    ["no exit code", () => null],
    ["split character", ({ onData }) => (onData(Buffer.from([0xc3])), onData(Buffer.from([0xa9])), 0)],
    ["many lines", ({ onData }) => (onData(Buffer.from(Array.from({ length: 2500 }, (_, index) => `line ${index}\n`).join(""))), 0)],
    ["many lines, failed", ({ onData }) => (onData(Buffer.from(Array.from({ length: 2500 }, (_, index) => `line ${index}`).join("\n"))), 1)],
    ["one long line", ({ onData }) => (onData(Buffer.from("x".repeat(70000))), 0)],
    ["many bytes", ({ onData }) => (onData(Buffer.from(Array.from({ length: 900 }, () => "y".repeat(99)).join("\n"))), 0)],
    ["more than a mebibyte", ({ onData }) => (onData(Buffer.from("z".repeat(99).concat("\n").repeat(12000))), 0)],
    ["aborted", ({ onData }) => {
      onData(Buffer.from("part"));
      throw new Error("aborted");
    }],
    ["timed out", ({ onData }) => {
      onData(Buffer.from("part"));
      throw new Error("timeout:5");
    }],
    ["broken", () => {
      throw new Error("no connection");
    }],
  ];
  const make = [pickFunction<Factory>(referenceModule("pi-coding-agent"), "createBashTool"), factory("createBashTool")];
  for (const [name, run] of cases) {
    const results = await Promise.all(
      make.map(async (create) => {
        const updates: Result[] = [];
        try {
          const result = await create(CWD, scripted(run)).execute("1", { command: "c", timeout: 5 }, undefined, (update) => updates.push(update), TOOL_CONTEXT);
          removeLog(context, result);
          return maskBash({ result, last: updates.at(-1), first: updates[0] });
        } catch (error) {
          return maskBash({ error: (error as Error).message });
        }
      }),
    );
    assert.deepEqual(results[1], results[0], name);
  }
});

test("a hook changes what bash runs, and the command knows its session", async () => {
  const services = withLocks(new FakeServices({ sessionId: "s1" }));
  services.topics.core = { sessionId: "s1", sessionFile: "/s.jsonl", model: { provider: "p", id: "m" }, thinkingLevel: "high" };
  const tool = factory("createBashTool", services)(tmpdir(), {
    commandPrefix: "A=1",
    spawnHook: (spawned: { command: string; cwd: string; env: NodeJS.ProcessEnv }) => ({ ...spawned, command: `${spawned.command}; echo $A $PI_SESSION_ID $PI_MODEL $OWN`, env: { ...spawned.env, OWN: "own" } }),
  });
  assert.equal(textOf(await tool.execute("1", { command: "true" })), "1 s1 m own\n");
  assert.deepEqual(services.calls, []);
});

test("commands run in the local shell, and end with everything that they started", async () => {
  const operations = pickFunction<() => BashOperations>(ourModule("pi-coding-agent"), "createLocalBashOperations")();
  const run = async (command: string, options: Partial<ExecOptions> = {}): Promise<{ output: string; exitCode: number | null }> => {
    let output = "";
    const { exitCode } = await operations.exec(command, tmpdir(), { onData: (data) => void (output += data.toString()), ...options });
    return { output, exitCode };
  };
  assert.deepEqual(await run("echo out; echo err >&2; exit 3"), { output: "out\nerr\n", exitCode: 3 });
  assert.equal((await run("kill -9 $$")).exitCode, 137);
  assert.equal((await run("echo $X", { env: { ...process.env, X: "y" } })).output, "y\n");
  // The pipes that the background process holds are given up once they are quiet.
  assert.equal((await run("sleep 60 & echo $!")).exitCode, 0);
  const controller = new AbortController();
  const aborted = run("echo started; sleep 60", { signal: controller.signal, onData: () => controller.abort() });
  await assert.rejects(aborted, { message: "aborted" });
  await assert.rejects(run("sleep 60", { timeout: 0.05 }), { message: "timeout:0.05" });
  await assert.rejects(run("true", { timeout: 0 }), /Invalid timeout/);
  await assert.rejects(operations.exec("true", "/no/such/folder", { onData: () => undefined }), /Working directory does not exist/);
});

test("long output of a command is kept in a private file", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-tools-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const tool = factory("createBashTool")(folder, { spawnHook: (spawned: Json) => spawned });
  const result = await tool.execute("1", { command: "seq 1 3000" });
  removeLog(context, result);
  const path = result.details?.fullOutputPath as string;
  assert.ok(existsSync(path));
  assert.equal(readFileSync(path, "utf8").split("\n").length, 3001);
  assert.match(textOf(result), /\n\n\[Showing lines 1001-3000 of 3000\. Full output: /);
});

test("shells are found, and a missing one is named", () => {
  const exports = ourModule("pi-coding-agent");
  const shell = pickFunction<(path?: string) => { shell: string; args: string[] }>(exports, "getShellConfig");
  assert.deepEqual(shell("/bin/sh"), { shell: "/bin/sh", args: ["-c"] });
  assert.throws(() => shell("/no/shell"), { message: "Custom shell path not found: /no/shell" });
  assert.throws(() => pickFunction<() => void>(exports, "getPowerShellConfig")(), /only available on Windows/);
});
