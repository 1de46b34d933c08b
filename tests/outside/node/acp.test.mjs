// pi-acp, the adapter by which editors of the Agent Client Protocol use pi, drives agentd.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { agentd, awaited, home, packages } from "./support.mjs";

/// Starts the adapter as an editor does, and speaks JSON-RPC with it.
function adapter(place) {
  const child = spawn(process.execPath, [join(packages, "acp/node_modules/pi-acp/dist/index.js")], {
    cwd: place.project, stdio: ["pipe", "pipe", "inherit"],
    // No `pi` on PATH: the adapter would look for its newest version in the network.
    env: { ...place.env, PATH: [dirname(process.execPath), "/usr/bin", "/bin"].join(":"), PI_ACP_PI_COMMAND: agentd, npm_config_offline: "true" },
  });
  const listeners = new Set();
  const updates = [];
  const listen = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const record = JSON.parse(line);
    if (record.method === "session/update") updates.push(record.params.update);
    for (const listener of [...listeners]) listener({ type: record.method ?? "response", ...record });
  });
  async function end() {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = new Promise((resolve) => child.once("exit", resolve));
    child.stdin.end();
    await exit;
  }
  place.cleanups.push(end);
  const write = (record) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...record })}\n`);
  let next = 0;
  return {
    updates, end,
    update: (fits, what) =>
      awaited(listen, (record) => record.method === "session/update" && fits(record.params.update), what),
    async call(method, params) {
      const id = ++next;
      const response = awaited(listen, (record) => record.id === id && !record.method, method);
      write({ id, method, params });
      const { result, error } = await response;
      assert.equal(error, undefined, `${method}: ${JSON.stringify(error)}`);
      return result;
    },
    /// A request whose answer is not awaited.
    begin: (method, params) => write({ id: ++next, method, params }),
    notify: (method, params) => write({ method, params }),
  };
}

const hello = { protocolVersion: 1, clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } } };
const text = (text) => [{ type: "text", text }];
const spoken = (updates, kind = "agent_message_chunk") =>
  updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text);

test("pi-acp: a session, a prompt with its stream, a tool call, a cancel, and the session loaded again", async (t) => {
  // The adapter shows its own greeting as the first message, unless told not to.
  const place = home(t, { quietStartup: true });
  const editor = adapter(place);
  const { agentCapabilities } = await editor.call("initialize", hello);
  assert.equal(agentCapabilities.loadSession, true);
  const session = await editor.call("session/new", { cwd: place.project, mcpServers: [] });
  const { sessionId } = session;
  assert.deepEqual(session.models.availableModels.map((model) => model.modelId), ["script/one", "script/two"]);
  assert.equal(session.models.currentModelId, "script/one");

  assert.deepEqual(await editor.call("session/prompt", { sessionId, prompt: text("hello") }), { stopReason: "end_turn" });
  assert.deepEqual(spoken(editor.updates, "agent_thought_chunk"), ["A ", "greeting."]);
  assert.deepEqual(spoken(editor.updates), ["Hello ", "back."]);

  editor.updates.length = 0;
  await editor.call("session/prompt", { sessionId, prompt: text("use a tool") });
  const calls = editor.updates.filter((update) => update.toolCallId === "call_1");
  assert.equal(calls[0].sessionUpdate, "tool_call");
  assert.equal(calls.at(-1).status, "completed");
  // The adapter shows what a command's output grew by: each line once.
  const output = calls.map((update) => update._meta?.terminal_output?.data ?? "").join("");
  assert.equal(output.match(/one/g)?.length, 1, JSON.stringify(calls));
  assert.equal(output.match(/two/g)?.length, 1, JSON.stringify(calls));
  assert.deepEqual(spoken(editor.updates), ["Looking.", "It said hi."]);

  await editor.call("session/set_config_option", { sessionId, configId: "model", value: "script/two" });

  const begun = editor.update((update) => update.content?.text === "Thinking about it", "the beginning of an answer");
  const turn = editor.call("session/prompt", { sessionId, prompt: text("hang") });
  await begun;
  editor.notify("session/cancel", { sessionId });
  assert.deepEqual(await turn, { stopReason: "cancelled" });
  assert.deepEqual(await editor.call("session/prompt", { sessionId, prompt: text("hello") }), { stopReason: "end_turn" });

  const { sessions } = await editor.call("session/list", { cwd: place.project });
  assert.deepEqual(sessions.map((one) => one.sessionId), [sessionId]);

  // Loading a session that is open: the adapter ends its agentd and at once starts another one on the same file.
  editor.updates.length = 0;
  await reload(editor);

  // Another start of the editor, later.
  await editor.end();
  const later = adapter(place);
  await later.call("initialize", hello);
  await reload(later);

  async function reload(editor) {
    const loaded = await editor.call("session/load", { sessionId, cwd: place.project, mcpServers: [] });
    assert.equal(loaded.models.currentModelId, "script/two");
    const said = spoken(editor.updates, "user_message_chunk");
    assert.deepEqual(said.slice(0, 4), ["hello", "use a tool", "hang", "hello"]);
    editor.updates.length = 0;
    assert.deepEqual(await editor.call("session/prompt", { sessionId, prompt: text("use a tool") }), { stopReason: "end_turn" });
    assert.deepEqual(spoken(editor.updates), ["Looking.", "It said hi."]);
  }
});

test("pi-acp: a session is loaded again in the middle of a run", async (t) => {
  const place = home(t, { quietStartup: true });
  place.gate();
  const editor = adapter(place);
  await editor.call("initialize", hello);
  const { sessionId } = await editor.call("session/new", { cwd: place.project, mcpServers: [] });
  const called = editor.update((update) => update.toolCallId === "call_2" && update.status === "in_progress", "a tool call");
  // Nobody answers this prompt: its agentd is ended by the load.
  editor.begin("session/prompt", { sessionId, prompt: text("hold") });
  await called;
  await editor.call("session/load", { sessionId, cwd: place.project, mcpServers: [] });
  assert.deepEqual(await editor.call("session/prompt", { sessionId, prompt: text("hello") }), { stopReason: "end_turn" });
});

test("pi-acp: without a model the editor is asked to log in", async (t) => {
  const place = home(t);
  writeFileSync(place.at("agent/models.json"), "{}");
  const editor = adapter(place);
  await editor.call("initialize", hello);
  await assert.rejects(
    editor.call("session/new", { cwd: place.project, mcpServers: [] }),
    /Configure an API key or log in/,
  );
});
