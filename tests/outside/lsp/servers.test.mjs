// The story of a new user, with real language servers: an edit that breaks a call elsewhere comes back with the diagnostic, a rename changes
// every use, and undo takes it back.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";

import { connect } from "../node/client.mjs";
import { home, packages } from "../node/support.mjs";

const programs = [join(packages, "lsp/node_modules/.bin"), join(packages, "lsp-python/bin")].join(delimiter);

/// A session in a project with these files, and with no language servers but the one that is named.
async function session(t, server, files) {
  const place = home(t, { undo: { enabled: true }, lsp: { enabled: true, diagnosticsWaitMs: 10000 } });
  const others = ["pyright", "basedpyright", "ruff", "vtsls", "deno", "biome"].filter((name) => name !== server);
  const disabled = Object.fromEntries(others.map((name) => [name, { disabled: true }]));
  writeFileSync(place.at("agent/lsp.json"), JSON.stringify({ servers: disabled }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place.project, name)), { recursive: true });
    writeFileSync(join(place.project, name), text);
  }
  const client = connect(place, [], { PATH: `${programs}${delimiter}${process.env.PATH}` });
  await client.done({ type: "hello", protocol: 1, capabilities: { sessions: true } });
  return { place, client };
}

/// Has the model call a tool: the end of the call.
async function call({ place, client }, name, args) {
  const steps = [
    { when: { results: 1 }, emit: [{ text: "Done." }] },
    { when: { promptContains: "" }, emit: [{ toolCall: { id: "call_1", name, arguments: args } }] },
  ];
  writeFileSync(place.at("script.json"), JSON.stringify({ steps }));
  const ended = client.event("tool_execution_end");
  await client.prompt(`Call ${name}.`);
  const end = await ended;
  const text = end.result.content.map((block) => block.text ?? "").join("\n");
  assert.equal(end.isError, false, text);
  return { ...end, text };
}

const contents = ({ place }, files) => Object.fromEntries(
  Object.keys(files).map((name) => [name, readFileSync(join(place.project, name), "utf8")]));

/// The story; `broken` is what the result of the edit has to say of another file.
async function story(t, { server, files, edit, broken, rename, uses, defined }) {
  const it = await session(t, server, files);
  const looked = await call(it, "lsp", { action: "diagnostics", file: edit.path, timeout: 120 });
  assert.match(looked.text, /^No diagnostics|\n?\d+ error/, looked.text);
  const place = { file: rename.file, line: rename.line, symbol: rename.symbol, timeout: 60 };
  const found = await call(it, "lsp", { action: "references", ...place });
  for (const use of uses) assert.match(found.text, use);
  assert.match((await call(it, "lsp", { action: "definition", ...place })).text, uses[0]);
  assert.match((await call(it, "lsp", { action: "hover", ...place })).text, new RegExp(rename.symbol));
  assert.match((await call(it, "lsp", { action: "symbols", file: edit.path })).text, new RegExp(rename.symbol));

  const edited = await call(it, "edit", { path: edit.path, edits: [{ oldText: edit.old, newText: edit.new }] });
  assert.match(edited.text, broken, edited.text);
  const { waitedMs, complete } = edited.result.details.meta.diagnostics;
  t.diagnostic(`${server}: the edit that breaks a call waited ${waitedMs} ms (finished: ${complete})`);
  const undone = await call(it, "edit", { path: edit.path, edits: [{ oldText: edit.new, newText: edit.old }] });
  assert.doesNotMatch(undone.text, /New diagnostics/, undone.text);
  t.diagnostic(`${server}: the edit that mends it waited ${undone.result.details.meta.diagnostics.waitedMs} ms`);
  assert.deepEqual(contents(it, files), files);

  const renamed = await call(it, "lsp", { action: "rename", ...place, new_name: rename.to });
  assert.match(renamed.text, /^Renamed:/, renamed.text);
  const now = contents(it, files);
  for (const name of rename.files) {
    assert.match(now[name], new RegExp(`\\b${rename.to}\\b`), name);
    assert.doesNotMatch(now[name], new RegExp(`\\b${rename.symbol}\\b`), name);
  }
  const back = await it.client.done({ type: "restore_checkpoint", step: "undo" });
  assert.deepEqual(back.conflicts, []);
  assert.deepEqual(contents(it, files), files);
  if (defined) await renamedAtOnce(t, { server, files, defined, rename });
}

/// A rename that is the first thing a server is asked: it has to wait until it knows the project, or it would miss uses.
async function renamedAtOnce(t, { server, files, defined, rename }) {
  const it = await session(t, server, files);
  const place = { file: defined.file, line: defined.line, symbol: rename.symbol, timeout: 120 };
  const renamed = await call(it, "lsp", { action: "rename", ...place, new_name: rename.to });
  assert.deepEqual(renamed.result.details.files.map((file) => file.path).sort(), rename.files, renamed.text);
}

test("basedpyright", (t) => story(t, {
  server: "basedpyright",
  files: {
    "pyproject.toml": "[project]\nname = \"story\"\nversion = \"0\"\n",
    "lib.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
    "main.py": "from lib import add\n\nprint(add(1, 2))\n",
  },
  edit: { path: "lib.py", old: "b: int)", new: "b: int, c: int)" },
  broken: /New diagnostics of \w+:[^]*main\.py:3:7: error\[reportCallIssue\]: Argument missing/,
  rename: { file: "main.py", line: 3, symbol: "add", to: "total", files: ["lib.py", "main.py"] },
  uses: [/lib\.py:1:5: def add/, /main\.py:3:7: print/],
  defined: { file: "lib.py", line: 1 },
}));

test("typescript-language-server", (t) => story(t, {
  server: "typescript-language-server",
  files: {
    "tsconfig.json": JSON.stringify({ compilerOptions: { strict: true, module: "nodenext", target: "es2022", types: [] } }),
    "package.json": JSON.stringify({ name: "story", type: "module" }),
    "src/lib.ts": "export function add(a: number, b: number): number {\n  return a + b;\n}\n",
    "src/main.ts": "import { add } from \"./lib.js\";\n\nexport const three = add(1, 2);\n",
  },
  edit: { path: "src/lib.ts", old: "b: number)", new: "b: number, c: number)" },
  broken: /New diagnostics of typescript-language-server:[^]*src\/main\.ts:3:22: error\[2554\]: Expected 3 arguments, but got 2/,
  rename: { file: "src/main.ts", line: 3, symbol: "add", to: "total", files: ["src/lib.ts", "src/main.ts"] },
  uses: [/src\/lib\.ts:1:17: export function add/, /src\/main\.ts:3:22: export const three/],
  defined: { file: "src/lib.ts", line: 1 },
}));

test("clangd", (t) => story(t, {
  server: "clangd",
  files: {
    "compile_flags.txt": "-xc\n-I.\n",
    "lib.h": "int add(int a, int b);\n",
    "main.c": "#include \"lib.h\"\nint main(void) { return add(1, 2); }\n",
  },
  edit: { path: "lib.h", old: "int b)", new: "int b, int c)" },
  // It knows the uses in files that it has, and has this one since it was asked about it.
  broken: /New diagnostics of clangd:[^]*main\.c:2:\d+: error\[[\w-]+\]: Too few arguments/i,
  rename: { file: "main.c", line: 2, symbol: "add", to: "total", files: ["lib.h", "main.c"] },
  uses: [/lib\.h:1:5: int add/, /main\.c:2:25: int main/],
}));

test("rust-analyzer", (t) => story(t, {
  server: "rust-analyzer",
  files: {
    "Cargo.toml": "[package]\nname = \"story\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    "src/lib.rs": "pub mod sums;\n\npub fn three() -> i32 {\n    sums::add(1, 2)\n}\n",
    "src/sums.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n",
  },
  edit: { path: "src/sums.rs", old: "b: i32)", new: "b: i32, _c: i32)" },
  broken: /New diagnostics of rust-analyzer:[^]*src\/lib\.rs:4:\d+: error\[E0\d+\]/,
  rename: { file: "src/lib.rs", line: 4, symbol: "add", to: "total", files: ["src/lib.rs", "src/sums.rs"] },
  uses: [/src\/sums\.rs:1:8: pub fn add/, /src\/lib\.rs:4:11: sums::add/],
  defined: { file: "src/sums.rs", line: 1 },
}));

test("gopls", (t) => story(t, {
  server: "gopls",
  files: {
    "go.mod": "module story\n\ngo 1.20\n",
    "sums/sums.go": "package sums\n\nfunc Add(a, b int) int { return a + b }\n",
    "main.go": "package main\n\nimport \"story/sums\"\n\nfunc main() { println(sums.Add(1, 2)) }\n",
  },
  edit: { path: "sums/sums.go", old: "a, b int)", new: "a, b, c int)" },
  broken: /New diagnostics of gopls:[^]*main\.go:5:\d+: error\[\w+\]: not enough arguments/,
  rename: { file: "main.go", line: 5, symbol: "Add", to: "Total", files: ["main.go", "sums/sums.go"] },
  uses: [/sums\/sums\.go:3:6: func Add/, /main\.go:5:28: func main/],
  defined: { file: "sums/sums.go", line: 3 },
}));
