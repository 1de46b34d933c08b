// The tools beside pi's: the same calls in the same folder give the same results for model and client.
//
// One model server for each program answers every request with the next call of a list. What differs on purpose is marked with
// `ours`: a part of what agentd says.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { deflateSync, crc32 } from "node:zlib";

import { agentd, home, packages } from "./support.mjs";

const pi = join(packages, "pi-1.5/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js");

const call = (name) => (args, ours) => ({ name, args, ours });
const [bash, read, write, edit, ls, grep] = ["bash", "read", "write", "edit", "ls", "grep"].map(call);
const run = (command, more = {}, ours) => bash({ command, ...more }, ours);
/// The bytes of a file, as the tool before left it.
const bytes = (path) => run(`od -An -c -v '${path}' | head -50`);
const replace = (path, ...edits) => edit({ path, edits: edits.map(([oldText, newText]) => ({ oldText, newText })) });

function png(width, height) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, 0x40)]);
  const rows = Buffer.concat(Array.from({ length: height }, () => row));
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0)),
  ]);
}

const lines = (count, line) => Array.from({ length: count }, (_, index) => line(index + 1)).join("");

const files = {
  "a.txt": "one\ntwo\nthree\n", "nolf.txt": "one\ntwo", "empty.txt": "", "crlf.txt": "one\r\ntwo\r\nthree\r\n",
  "mixed.txt": "one\r\ntwo\nthree\rfour\n", "bom.txt": "\ufeffone\ntwo\n", "bomcrlf.txt": "\ufeffone\r\ntwo\r\n",
  "bad.txt": Buffer.from("ok\n\xff\xfe bad\nlast\xc3", "latin1"), "nul.txt": "a\0b\nc\n",
  "long.txt": lines(2500, (number) => `line ${number}\n`), "wide.txt": lines(100, () => `${"x".repeat(999)}\n`),
  "huge.txt": `${"y".repeat(60000)}\nsecond\n`,
  "uni.txt": "caf\u00e9 \u201cquoted\u201d \u2018x\u2019 a\u2014b\u2013c\u00a0d\n\ufb01 ligature \uff21\uff22\ntrail   \nend\n",
  "dup.txt": "same\nother\nsame\n", "fuzzydup.txt": 'say "x"\nsay \u201cx\u201d\n',
  "code.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\ndef h():\n    return 3\n",
  "dir/inner.txt": "in\n", "dir/.hidden": "h\n", "dir/B.md": "b", "dir/a b.txt": "sp",
  "img.txt": png(10, 10), "fake.png": "text\n",
  "x.gif": Buffer.from("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;", "latin1"),
  "src/main.rs": 'fn main() {\n    let needle = 1;\n    // Needle two\n    println!("{needle}");\n}\n',
  "src/long.rs": `needle ${"z".repeat(600)}\n`, "src/emoji.txt": `needle ${"\u{1f600}".repeat(300)}\n`,
  "many.txt": lines(300, (number) => `needle ${number}\n`), "bin.dat": "needle\0\u0001\u0002\n", "cr.txt": "needle cr\r\nother\r\n",
  ...Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`lots/f${String(index).padStart(2, "0")}.txt`, "x\n"])),
  ...Object.fromEntries(["Zeta", "alpha", "Beta", "_u", ".dot", "1", "10", "2", "\u00e9t\u00e9", "etf", "a-b", "a_b", "aB"].map((name) => [`names/${name}`, ""])),
};

const groups = {
  read: [
    ...["a.txt", "nolf.txt", "empty.txt", "crlf.txt", "bom.txt", "bad.txt", "nul.txt", "long.txt", "wide.txt", "huge.txt", "dir",
      "missing.txt", "link.txt", "dangling", "@a.txt", "./dir/../a.txt", "dir/inner.txt/x", "", "img.txt", "fake.png", "x.gif",
      "dir/a\u00a0b.txt", "file:///nonexistent/x"].map((path) => read({ path })),
    ...[[1, 1], [2, 1], [3, 1], [4, 1], [5, 1], [0, 2], [-3, 1], [2, 100], [1, 0], [4, null]].map(([offset, limit]) => read({ path: "a.txt", offset, limit })),
    ...[{ offset: 2000 }, { offset: 2501 }, { offset: 2502 }, { limit: 2100 }, { offset: 100, limit: 10 }].map((more) => read({ path: "long.txt", ...more })),
    read({ path: "huge.txt", offset: 2 }), read({ path: "empty.txt", offset: 2 }), read({ path: "wide.txt", offset: 40, limit: 60 }),
    read({ path: "a.txt", offset: "2" }), read({ path: "a.txt", offset: "x" }), read({ path: 5 }), read({}), read({ path: "a.txt", extra: 1 }),
    read({ path: ["a.txt"] }), read({ path: null }, "path: expected string, got null"),
  ],
  write: [
    write({ path: "new.txt", content: "hi\n" }), bytes("new.txt"), write({ path: "p/q/r.txt", content: "\u00e9\u{1f600}" }), bytes("p/q/r.txt"),
    write({ path: "a.txt", content: "" }), bytes("a.txt"), write({ path: "dir", content: "x" }), write({ path: "link.txt", content: "through" }),
    bytes("a.txt"), write({ path: "dangling", content: "made" }), bytes("missing"), write({ path: "x" }), write({ content: "x" }),
    write({ path: "n.txt", content: 5 }), bytes("n.txt"), write({ path: "n.txt", content: { a: 1 } }), write({ path: "@at.txt", content: "x" }), run("ls at.txt"),
    write({ path: "a.txt/x", content: "x" }, "ENOTDIR: not a directory"),
  ],
  edit: [
    replace("a.txt", ["two", "TWO"]), bytes("a.txt"), replace("a.txt", ["nope", "x"]), replace("a.txt", ["one", "1"], ["nope", "x"]),
    replace("a.txt", ["one", "1"], ["three", "3"]), replace("dup.txt", ["same", "x"]), replace("dup.txt", ["other", "o"], ["same", "x"]),
    replace("dup.txt", ["", "x"]), replace("dup.txt", ["other", "o"], ["", "x"]), replace("dup.txt"), replace("missing.txt", ["a", "b"]),
    replace("dup.txt", ["other", "other"]), replace("dup.txt", ["other\nsame", "q"], ["same\nother", "r"]),
    replace("crlf.txt", ["one\ntwo", "1\n1b\n2"]), bytes("crlf.txt"), replace("mixed.txt", ["two", "2\n2b"], ["four", "4\n4b"]), bytes("mixed.txt"),
    replace("bom.txt", ["one", "ONE"]), bytes("bom.txt"), replace("uni.txt", ["caf\u00e9 \"quoted\" 'x' a-b-c d", "plain"]), bytes("uni.txt"),
    replace("uni.txt", ["trail\nend", "T"]), replace("uni.txt", ["fi ligature AB", "lig"]), bytes("uni.txt"), replace("fuzzydup.txt", ['say "x"', "y"]),
    replace("nolf.txt", ["two", "two\n"]), bytes("nolf.txt"), replace("code.py", ["    return 1", "    return 10"], ["    return 3", "    return 30\n    # more"]),
    replace("code.py", ["def f():\n    return 10\n\n\n", ""]), bytes("code.py"), replace("empty.txt", ["a", "b"]), replace("nul.txt", ["c", "d"]), bytes("nul.txt"),
    edit({ path: "dup.txt", edits: '[{"oldText":"other","newText":"o2"}]' }), edit({ path: "dup.txt", edits: { oldText: "o2", newText: "o3" } }),
    edit({ path: "dup.txt", oldText: "o3", newText: "o4" }), edit({ path: "dup.txt", edits: [{ oldText: "x" }] }), edit({ path: "dup.txt", edits: [5] }),
    edit({ edits: [] }), edit({ path: "dup.txt" }), edit({ path: "dup.txt", edits: [], oldText: "o4", newText: "o6" }),
    replace("link.txt", ["1", "one"]), run("ls -l link.txt | cut -c1; chmod +x code.py"), replace("code.py", ["return 2", "return 22"]), run("stat -c %a code.py"),
    replace("long.txt", ["line 1000\n", "x\n"], ["line 2000\n", "y\nz\n"]), replace("long.txt", ["line 1\n", "line 1\nline 1b\n"]),
    replace("long.txt", ["line 2500\n", ""]), replace("crlf.txt", ["three\r\n", "3\r\n4\r\n"]), bytes("crlf.txt"),
    { ...replace("dir", ["a", "b"]), ours: "Could not edit file: dir. Error code: EISDIR." },
    { ...replace("bomcrlf.txt", ["\ufeffone", "x"]), ours: "Successfully replaced 1 block(s)" },
  ],
  bash: [
    ...["echo hi", "printf hi", "true", "false", "echo hi; exit 3", "printf hi; exit 3", "echo out; echo err >&2", "cat", "exit 255", "kill -9 $$",
      "kill -TERM $$", 'printf "a\\rb\\n"', 'printf "\\033[31mred\\033[0m\\n"', 'printf "\\377\\376\\n"', "seq 1 3000", "seq 1 2000", "seq 1 2001",
      "yes x | head -c 51200", "yes x | head -c 51201", "head -c 60000 /dev/zero | tr '\\0' a", "seq 1 3000; exit 2", "seq 1 400000", "pwd",
      "echo $PI_CODING_AGENT $PI_MODEL $PI_PROVIDER $PI_REASONING_LEVEL", "nonexistentcommand", "echo a\necho b", "", "   ",
      "sleep 0.3 >/dev/null 2>&1 & echo bg", "[ -t 0 ] && echo tty || echo notty", 'ps -o pgid=,pid= -p $$ | awk "{print \\$1==\\$2}"',
      'printf "one\\n\\n\\n"', 'printf "\\n"', "echo $# $-"].map((command) => run(command)),
    run("sleep 5", { timeout: 0.3 }), run("echo x; sleep 5", { timeout: 0.3 }), run("true", { timeout: 0 }), run("true", { timeout: -1 }),
    run("true", { timeout: 1e10 }), run("true", { timeout: "2" }), run("true", { timeout: null }), run("true", { timeout: "x" }), bash({}), bash({ command: 5 }),
    run("(sleep 1; echo late; sleep 5) & exit 4", { timeout: 0.5 }), run("true", { timeout: "" }, "(no output)"),
  ],
  ls: [
    ls({}), ...["names", "dir", "a.txt", "missing", "linkdir", "dangling", "", "/nonexistent/x"].map((path) => ls({ path })),
    ...[30, 29, 0, "2", 1.5].map((limit) => ls({ path: "lots", limit })),
  ],
  grep: [
    ...["needle", "Needle", "{needle}", "(", "[", "*", "needle|main", "\\bneedle\\b", "(?i)NEEDLE", "absent"].map((pattern) => grep({ pattern, path: "src/main.rs" })),
    grep({ pattern: "NEEDLE", path: "src/main.rs", ignoreCase: true }), grep({ pattern: "{needle}", path: "src/main.rs", literal: true }),
    ...[1, 2, 100].map((context) => grep({ pattern: "needle", path: "src/main.rs", context })), grep({ pattern: "needle", path: "missing" }),
    ...[undefined, 5, 300, 299, 0, -5, 2.9].map((limit) => grep({ pattern: "needle", path: "many.txt", limit })),
    grep({ pattern: "needle 1", path: "many.txt", limit: 3, context: 2 }), grep({ pattern: "needle", path: "bin.dat" }), grep({ pattern: "needle", path: "cr.txt" }),
    grep({ pattern: "needle", path: "src/long.rs" }), grep({ pattern: "needle", path: "src/emoji.txt" }), grep({ pattern: "x", path: "wide.txt", limit: 1000 }), grep({}),
    grep({ pattern: "needle", path: "src", glob: "main.*" }), grep({ pattern: "^two$", path: "crlf.txt" }),
  ],
};

/// Answers each request with the next call, then with a word.
function model(t, calls) {
  let next = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const id = next++;
      const chunk = (delta, finish_reason = null) =>
        `data: ${JSON.stringify({ id: "r", object: "chat.completion.chunk", created: 1, model: "fake", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
      const wanted = calls[id];
      const body = wanted
        ? chunk({ role: "assistant", tool_calls: [{ index: 0, id: `c${id}`, type: "function", function: { name: wanted.name, arguments: JSON.stringify(wanted.args) } }] }) + chunk({}, "tool_calls")
        : chunk({ role: "assistant", content: "Done." }) + chunk({}, "stop");
      response.writeHead(200, { "content-type": "text/event-stream" }).end(`${body}data: [DONE]\n\n`);
    });
  });
  t.after(() => server.close());
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}/v1`)));
}

/// The results of the calls in a fresh folder, by their ids.
async function results(t, program, calls) {
  const place = home(t);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(place.at("project", name)), { recursive: true });
    writeFileSync(place.at("project", name), content);
  }
  for (const [target, name] of [["a.txt", "link.txt"], ["missing", "dangling"], ["dir", "linkdir"]]) symlinkSync(target, place.at("project", name));
  const baseUrl = await model(t, calls);
  writeFileSync(place.at("agent/models.json"), JSON.stringify({
    providers: { fake: { baseUrl, api: "openai-completions", apiKey: "k", models: [{ id: "fake", input: ["text", "image"] }] } },
  }));
  const [command, ...args] = program;
  const child = spawn(command, [...args, "--mode", "rpc", "--no-session", "--model", "fake/fake", "--tools", "read,bash,edit,write,grep,ls"], {
    cwd: place.project, env: { ...process.env, ...place.env, PI_OFFLINE: "1", LC_ALL: "C.UTF-8" }, stdio: ["pipe", "pipe", "inherit"],
  });
  const exit = new Promise((resolve) => child.once("exit", resolve));
  place.cleanups.push(() => (child.stdin.end(), exit));
  const plain = (value) => JSON.parse(
    JSON.stringify(value).replaceAll(place.at(), "$ROOT").replaceAll(/pi-bash-[0-9a-f]{16}/g, "pi-bash-ID").replaceAll(/"wall_time_seconds":[\d.e-]+/g, '"wall_time_seconds":0'),
  );
  const ended = new Map();
  child.stdin.write(`${JSON.stringify({ id: "p", type: "prompt", message: "go" })}\n`);
  for await (const line of createInterface({ input: child.stdout })) {
    const { type, toolCallId, result, isError } = JSON.parse(line);
    if (type === "tool_execution_end") ended.set(toolCallId, plain({ ...result, isError }));
    if (type === "agent_settled") break;
  }
  return ended;
}

/// The fields in which two values differ, each with the value of pi and of agentd.
function parting(expected, result, path = "") {
  if (typeof expected === "object" && typeof result === "object" && expected && result) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(result)]);
    return [...keys].flatMap((key) => (isDeepStrictEqual(expected[key], result[key]) ? [] : parting(expected[key], result[key], `${path}.${key}`)));
  }
  const [one, other] = [expected, result].map((value) => JSON.stringify(value) ?? "nothing");
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  const part = (text) => text.slice(Math.max(0, start - 40), start + 160);
  return [`  ${path}`, `    pi:        ${part(one)}`, `    agentd:    ${part(other)}`];
}

for (const [name, calls] of Object.entries(groups)) {
  test(`${name}: ${calls.length} calls`, { timeout: 120_000 }, async (t) => {
    const theirs = await results(t, [process.execPath, pi], calls);
    const ours = await results(t, [agentd, "--compat", "pi"], calls);
    calls.forEach(({ name, args, ours: purpose }, index) => {
      const [expected, result] = [theirs, ours].map((all) => all.get(`c${index}`));
      const what = `${name} ${JSON.stringify(args)}`;
      assert.ok(result, `${what} has no result`);
      if (purpose) {
        assert.ok(result.content[0].text.includes(purpose), `${what}: ${result.content[0].text}`);
        assert.notDeepEqual(result, expected, `${what} is the same as in pi`);
      } else {
        // The results can be long: only where they part is shown.
        assert.ok(isDeepStrictEqual(result, expected), `${what}\n${parting(expected, result).join("\n")}`);
      }
    });
  });
}
