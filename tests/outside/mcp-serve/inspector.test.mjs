// The official inspector as a client, by its command line.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { agentd, home, packages } from "../node/support.mjs";

const inspector = join(packages, "mcp-serve/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");

/// Runs the inspector to its end: its exit code, and what it printed.
function inspect(place, ...args) {
  // Variables of the server are named one by one: the inspector passes on few of its own.
  const variables = ["PI_CODING_AGENT_DIR", "TMPDIR"].flatMap((name) => ["-e", `${name}=${place.env[name]}`]);
  const given = ["--cli", ...variables, ...args, "--", agentd, "mcp", "serve"];
  const env = { HOME: place.env.HOME, TMPDIR: place.env.TMPDIR, PATH: [dirname(process.execPath), "/usr/bin", "/bin"].join(":") };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [inspector, ...given], { cwd: place.project, env, timeout: 60_000, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error?.killed) reject(new Error(`the inspector did not end: ${stdout}${stderr}`));
      else resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

/// The result of a call that succeeds.
async function result(place, ...args) {
  const { code, stdout, stderr } = await inspect(place, ...args);
  assert.equal(code, 0, stdout + stderr);
  return JSON.parse(stdout);
}

const call = (tool, ...pairs) => ["--method", "tools/call", "--tool-name", tool, ...pairs.flatMap((pair) => ["--tool-arg", pair])];

test("the inspector lists the tools, and finds nothing wrong with their schemas", async (t) => {
  const { tools } = await result(home(t), "--method", "tools/list", "--strict");
  assert.deepEqual(tools.map((tool) => tool.name), ["prompt", "steer", "abort", "read_session", "list_sessions"]);
});

test("the inspector has a prompt worked on, goes on in its session, and reads it", async (t) => {
  const place = home(t);
  const first = await result(place, ...call("prompt", "prompt=use a tool"));
  assert.equal(first.content[0].text, "It said hi.");
  assert.equal(first.structuredContent.stopReason, "stop");
  assert.equal(first.structuredContent.toolCalls, 1);
  const session = first.structuredContent.sessionId;
  const second = await result(place, ...call("prompt", "prompt=hello", `sessionId=${session}`));
  assert.equal(second.structuredContent.answer, "Hello back.");
  const { messages } = (await result(place, ...call("read_session", `sessionId=${session}`))).structuredContent;
  assert.deepEqual(messages.map((message) => message.role), ["user", "assistant", "tool", "assistant", "user", "assistant"]);
  const { sessions } = (await result(place, ...call("list_sessions"))).structuredContent;
  assert.deepEqual(sessions.map((it) => it.sessionId), [session]);
});

test("the inspector shows what went wrong", async (t) => {
  const place = home(t);
  const { stdout } = await inspect(place, ...call("prompt", "prompt=refuse"));
  const failed = JSON.parse(stdout);
  assert.equal(failed.isError, true);
  assert.match(failed.content[0].text, /not that/);
  const unknown = await inspect(place, ...call("steer", "sessionId=none", "message=x"));
  assert.match(JSON.parse(unknown.stdout).content[0].text, /does not work on anything/);
});
