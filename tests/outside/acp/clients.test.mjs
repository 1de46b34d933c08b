// Clients that others wrote, unchanged, with agentd as their agent.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { agentd, home, packages } from "../node/support.mjs";

const acpx = join(packages, "acpx/node_modules/acpx/dist/cli.js");
const sdk = join(packages, "acpx/node_modules/@agentclientprotocol/sdk");
const python = join(packages, "acp-sdk/bin/python");
const source = join(packages, "acp-sdk-source");

/// A home whose sessions ask before commands that change something.
function asking(t) {
  return home(t, { permissions: { preset: "ask" } });
}

function environment(place, more = {}) {
  return { ...place.env, HOME: place.env.HOME, PATH: [dirname(process.execPath), "/usr/bin", "/bin"].join(":"), ...more };
}

/// Runs a program to its end; fails when it does not end by itself.
function run(place, program, args, { input = "", env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const options = { cwd: place.project, env: environment(place, env), timeout: 60_000, maxBuffer: 1 << 26 };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error?.killed) reject(new Error(`${program} did not end: ${stdout}${stderr}`));
      else resolve({ code: error ? error.code : 0, stdout, stderr });
    });
    child.stdin.end(input);
  });
}

const agent = `${agentd} acp`;
const client = (place, ...args) => run(place, process.execPath, [acpx, "--agent", agent, ...args]);
const lines = (text) => text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
const updates = (messages, kind) =>
  messages.map((message) => message.params?.update).filter((update) => update?.sessionUpdate === kind);

test("acpx has a prompt answered, with its tool call", async (t) => {
  const place = home(t);
  const { code, stdout } = await client(place, "--approve-all", "--format", "json", "exec", "use a tool");
  assert.equal(code, 0, stdout);
  const messages = lines(stdout);
  assert.equal(messages.at(-1).result?.stopReason ?? messages.at(-1).stopReason ?? "end_turn", "end_turn");
  assert.deepEqual(updates(messages, "tool_call").map((call) => [call.kind, call.status]), [["execute", "pending"]]);
  assert.equal(updates(messages, "tool_call_update").at(-1).status, "completed");
  const spoken = updates(messages, "agent_message_chunk").map((chunk) => chunk.content.text).join("");
  assert.equal(spoken, "Looking.It said hi.");
});

test("acpx shows thoughts and text", async (t) => {
  const place = home(t);
  const { stdout } = await client(place, "--format", "json", "exec", "hello");
  const messages = lines(stdout);
  assert.equal(updates(messages, "agent_thought_chunk").map((it) => it.content.text).join(""), "A greeting.");
  assert.equal(updates(messages, "agent_message_chunk").map((it) => it.content.text).join(""), "Hello back.");
});

test("acpx denies: the call does not run, and the turn goes on", async (t) => {
  const place = asking(t);
  const { stdout } = await client(place, "--deny-all", "--format", "json", "exec", "use a tool");
  const messages = lines(stdout);
  assert.ok(messages.some((message) => message.method === "session/request_permission"));
  assert.equal(updates(messages, "tool_call_update").at(-1).status, "failed");
  const spoken = updates(messages, "agent_message_chunk").map((chunk) => chunk.content.text).join("");
  assert.match(spoken, /It said hi\.$/);
});

test("acpx keeps a session over several of its processes", async (t) => {
  const place = home(t);
  t.after(() => client(place, "sessions", "close"));
  const made = await client(place, "sessions", "new");
  assert.equal(made.code, 0, made.stdout + made.stderr);
  for (const [asked, answer] of [["hello", "Hello back."], ["anything else", "Well."]]) {
    const said = await client(place, "--format", "quiet", asked);
    assert.ok(said.stdout.includes(answer), said.stdout + said.stderr);
  }
});

test("acpx cancels a turn of another of its processes", async (t) => {
  const place = home(t);
  t.after(() => client(place, "sessions", "close"));
  await client(place, "sessions", "new");
  const args = [acpx, "--agent", agent, "--format", "json", "hang"];
  const hanging = spawn(process.execPath, args, { cwd: place.project, env: environment(place), stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => hanging.kill());
  const seen = [];
  let begun;
  const began = new Promise((resolve) => (begun = resolve));
  createInterface({ input: hanging.stdout }).on("line", (line) => {
    seen.push(line);
    if (line.includes("Thinking about it")) begun();
  });
  const ended = new Promise((resolve) => hanging.once("exit", resolve));
  await began;
  const cancelled = await client(place, "cancel");
  assert.equal(cancelled.code, 0, cancelled.stdout + cancelled.stderr);
  await ended;
  assert.ok(seen.some((line) => line.includes('"stopReason":"cancelled"')), seen.join("\n"));
});

test("the example client of the TypeScript SDK", async (t) => {
  const place = home(t);
  // The example starts its agent by npx.
  const folder = join(place.project, "bin");
  const { mkdirSync, chmodSync } = await import("node:fs");
  mkdirSync(folder);
  writeFileSync(join(folder, "npx"), `#!/bin/sh\nexec ${agentd} acp\n`);
  chmodSync(join(folder, "npx"), 0o755);
  const path = [folder, dirname(process.execPath), "/usr/bin", "/bin"].join(":");
  const example = join(sdk, "dist/examples/client.js");
  const { stdout, stderr } = await run(place, process.execPath, [example], { env: { PATH: path } });
  assert.match(stdout, /Connected to agent \(protocol v1\)/, stderr);
  assert.match(stdout, /Well\./);
  assert.match(stdout, /Agent completed with: end_turn/);
});

test("the example client of the Python SDK", async (t) => {
  const place = home(t);
  const example = join(source, "examples/client.py");
  const { code, stdout, stderr } = await run(place, python, [example, agentd, "acp"], { input: "hello\nuse a tool\n" });
  assert.equal(code, 0, stderr);
  for (const words of ["Hello ", "back.", "Looking.", "It said hi."]) assert.ok(stdout.includes(`| Agent: ${words}`), stdout);
  assert.ok(!stderr.includes("Prompt failed"), stderr);
});

test("every line is what the models of the Python SDK read", async (t) => {
  const place = asking(t);
  const { stdout } = await client(place, "--approve-all", "--format", "json", "exec", "use a tool");
  const check = [
    "import json, sys, acp.schema as s",
    "for line in sys.stdin:",
    "    message = json.loads(line)",
    "    method, params = message.get('method'), message.get('params')",
    "    if method == 'session/update': s.SessionNotification.model_validate(params)",
    "    if method == 'session/request_permission': s.RequestPermissionRequest.model_validate(params)",
    "    result = message.get('result') or {}",
    "    if 'agentCapabilities' in result: s.InitializeResponse.model_validate(result)",
    "    if 'configOptions' in result: s.NewSessionResponse.model_validate(result)",
  ].join("\n");
  const input = lines(stdout).map((message) => JSON.stringify(message)).join("\n");
  const { code, stderr } = await run(place, python, ["-c", check], { input });
  assert.equal(code, 0, stderr);
});

/// The requests among the golden messages of the SDK, by their files.
const golden = {
  "initialize_request.json": "initialize",
  "new_session_request.json": "session/new",
  "prompt_request.json": "session/prompt",
  "set_session_config_option_request.json": "session/set_config_option",
};

test("the golden messages of the SDK are read", async (t) => {
  const place = home(t);
  const folder = join(source, "tests/golden");
  assert.ok(readdirSync(folder).length >= 36);
  const requests = Object.entries(golden).map(([file, method], id) => {
    const params = JSON.parse(readFileSync(join(folder, file), "utf8"));
    // Folders of another machine are not there.
    if (params.cwd && !existsSync(params.cwd)) params.cwd = place.project;
    return JSON.stringify({ jsonrpc: "2.0", id, method, params });
  });
  const cancel = { jsonrpc: "2.0", method: "session/cancel", params: JSON.parse(readFileSync(join(folder, "cancel_notification.json"), "utf8")) };
  const input = [...requests, JSON.stringify(cancel), ""].join("\n");
  const { stdout } = await run(place, agentd, ["acp"], { input });
  for (const answer of lines(stdout).filter((message) => "id" in message)) {
    // The session of the golden prompt is not there; that its parameters are wrong is never the answer.
    if (answer.error) assert.equal(answer.error.code, -32002, JSON.stringify(answer));
  }
  const contents = readdirSync(folder).filter((file) => file.startsWith("content_"));
  const blocks = contents.map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
  const prompt = { jsonrpc: "2.0", id: 1, method: "session/prompt", params: { sessionId: "none", prompt: blocks } };
  const said = await run(place, agentd, ["acp"], { input: `${JSON.stringify(prompt)}\n` });
  assert.equal(lines(said.stdout)[0].error.code, -32002, said.stdout);
});
