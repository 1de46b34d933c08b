// Measures what language servers cost: milliseconds that diagnostics add to an edit with a server that runs, and the processes and the
// memory of ten sessions that share one. Prints a table; checks nothing.
//
//   . tests/outside/packages.sh; AGENTD_BIN_DIR=target/release AGENTD_OUTSIDE_PACKAGES=target/outside node tests/outside/lsp/measure.mjs

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

import { agentd, home, packages } from "../node/support.mjs";

const SESSIONS = 10;
const EDITS = 20;
const agentctl = join(dirname(agentd), "agentctl");
const programs = [join(packages, "lsp/node_modules/.bin"), join(packages, "lsp-python/bin")].join(delimiter);

const projects = {
  "basedpyright": {
    server: /langserver\.index|pyright-langserver/,
    files: { "pyproject.toml": "", "lib.py": "def add(a: int, b: int) -> int:\n    return a + b\n", "main.py": "from lib import add\n\nprint(add(1, 2))\n" },
    path: "lib.py", old: "b: int)", new: "b: int, c: int)",
  },
  "typescript-language-server": {
    server: /typescript-language-server|tsserver/,
    files: { "tsconfig.json": "{}", "lib.ts": "export function add(a: number, b: number) {\n  return a + b;\n}\n", "main.ts": "import { add } from \"./lib\";\nexport const three = add(1, 2);\n" },
    path: "lib.ts", old: "b: number)", new: "b: number, c: number)",
  },
  "clangd": {
    server: /clangd/,
    files: { "compile_flags.txt": "-xc\n", "main.c": "int add(int a, int b) { return a + b; }\nint main(void) { return add(1, 2); }\n" },
    path: "main.c", old: "int b)", new: "int b, int c)",
  },
  "rust-analyzer": {
    server: /rust-analyzer/,
    files: { "Cargo.toml": "[package]\nname = \"story\"\nedition = \"2021\"\n", "src/lib.rs": "pub mod sums;\n\npub fn three() -> i32 {\n    sums::add(1, 2)\n}\n", "src/sums.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n" },
    path: "src/sums.rs", old: "b: i32)", new: "b: i32, _c: i32)",
  },
  "gopls": {
    server: /gopls/,
    files: { "go.mod": "module story\n\ngo 1.20\n", "sums/sums.go": "package sums\n\nfunc Add(a, b int) int { return a + b }\n", "main.go": "package main\n\nimport \"story/sums\"\n\nfunc main() { println(sums.Add(1, 2)) }\n" },
    path: "sums/sums.go", old: "a, b int)", new: "a, b, c int)",
  },
};

/// All processes whose command line fits, with their memory in MB (what is shared is divided).
function processes(pattern) {
  return readdirSync("/proc").filter((id) => /^\d+$/.test(id)).flatMap((id) => {
    try {
      const command = readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ");
      if (!pattern.test(command)) return [];
      const pss = /Pss:\s+(\d+)/.exec(readFileSync(`/proc/${id}/smaps_rollup`, "utf8"));
      return [Number(pss[1]) / 1000];
    } catch {
      return []; // It ended meanwhile.
    }
  });
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function measure(name, { server, files, path, old, new: changed }, enabled) {
  const cleanups = [];
  const place = home({ after: (cleanup) => cleanups.push(cleanup) }, { lsp: { enabled, diagnosticsWaitMs: 10000 } });
  const env = { ...process.env, ...place.env, PATH: `${programs}${delimiter}${process.env.PATH}` };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place.project, file)), { recursive: true });
    writeFileSync(join(place.project, file), text);
  }
  const prompt = (calls) => {
    const steps = [
      ...calls.map((call, index) => ({ when: { results: index }, emit: [{ toolCall: { id: `c${index}`, ...call } }] })),
      { when: { promptContains: "" }, emit: [{ text: "Done." }] },
    ];
    writeFileSync(place.at("script.json"), JSON.stringify({ steps }));
    const out = execFileSync(agentctl, ["prompt", "--shared", "--json", "Go."], { cwd: place.project, env, encoding: "utf8" });
    return out.trim().split("\n").map((line) => JSON.parse(line)).filter((it) => it.type === "tool_execution_end");
  };
  const edit = (from, to) => ({ name: "edit", arguments: { path, edits: [{ oldText: from, newText: to }] } });
  const look = { name: "lsp", arguments: { action: "diagnostics", file: path, timeout: 120 } };
  try {
    if (enabled) prompt([look]);
    const calls = Array.from({ length: EDITS }, (_, index) => index % 2 ? edit(changed, old) : edit(old, changed));
    const ends = prompt(calls);
    const total = ends.map((end) => end.durationMs);
    const told = ends.filter((end) => JSON.stringify(end.result.content).includes("New diagnostics")).length;
    if (!enabled) return { total };
    for (let session = 0; session < SESSIONS - 2; session += 1) prompt([look]);
    const sessions = JSON.parse(execFileSync(agentctl, ["ls", "--json"], { cwd: place.project, env, encoding: "utf8" }));
    const list = processes(server);
    return { total, told, sessions: (sessions.sessions ?? sessions).length, processes: list.length, memory: list.reduce((a, b) => a + b, 0) };
  } finally {
    execFileSync(agentctl, ["down"], { cwd: place.project, env, stdio: "ignore" });
    for (const cleanup of cleanups) await cleanup();
  }
}

console.log("server | edit without (ms) | edit with, median (ms) | most | told of the error | sessions | processes | MB");
for (const [name, project] of Object.entries(projects)) {
  const without = await measure(name, project, false);
  const { total, told, sessions, processes, memory } = await measure(name, project, true);
  console.log([name, median(without.total), median(total), Math.max(...total), `${told} of ${EDITS / 2}`, sessions, processes, Math.round(memory)].join(" | "));
}
