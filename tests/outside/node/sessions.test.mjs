// Session files in both directions between agentd and pi's own SessionManager.

import assert from "node:assert/strict";
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { home, packages, repository } from "./support.mjs";
import { connect } from "./client.mjs";

const { SessionManager } = await import(
  join(packages, "pi-1.5/node_modules/@earendil-works/pi-coding-agent/dist/bundle/index.js")
);

/// As JSON carries it: without the fields that are undefined.
const plain = (value) => JSON.parse(JSON.stringify(value));

/// That pi, which opens the file, and agentd, which has it open, see the same.
async function agree(client, what) {
  const { sessionFile, sessionId, sessionName } = await client.done({ type: "get_state" });
  const { messages } = await client.done({ type: "get_messages" });
  const { entries, leafId } = await client.done({ type: "get_entries" });
  const { tree } = await client.done({ type: "get_tree" });
  const opened = SessionManager.open(sessionFile);
  assert.deepEqual(plain(opened.getEntries()), entries, `${what}: entries`);
  assert.equal(opened.getSessionId(), sessionId, `${what}: id`);
  assert.equal(opened.getSessionName(), sessionName, `${what}: name`);
  assert.equal(opened.getLeafId(), leafId, `${what}: leaf`);
  assert.deepEqual(plain(opened.getTree()), tree, `${what}: tree`);
  assert.deepEqual(plain(opened.buildSessionContext().messages), messages, `${what}: context`);
  return { opened, messages, entries, sessionFile };
}

const kinds = (entries) => new Set(entries.map((entry) => entry.type));
const message = (entries, text) =>
  entries.find((entry) => entry.message?.role === "user" && JSON.stringify(entry.message.content).includes(text));

test("what agentd wrote opens in SessionManager, which appends, and opens in agentd again", async (t) => {
  const place = home(t);
  const client = connect(place);
  await client.done({ type: "set_session_name", name: "all kinds" });
  await client.prompt("hello");
  await client.prompt("use a tool");
  await client.done({ type: "bash", command: "echo seen" });
  await client.done({ type: "bash", command: "echo hidden", excludeFromContext: true });
  await client.prompt("fail"); // its retry drops the failed answer by a context_edit
  await client.done({ type: "set_model", provider: "script", modelId: "two" });
  const first = await agree(client, "a branch");
  await client.done({ type: "set_label", entryId: message(first.entries, "use a tool").id, label: "here" });
  await client.done({ type: "navigate_tree", entryId: message(first.entries, "fail").id, summarize: true });
  await client.prompt("hello");
  await agree(client, "after a summary of a branch");
  await client.done({ type: "compact" });
  await client.prompt("hello");
  const whole = await agree(client, "after a compaction");
  assert.deepEqual(
    [...kinds(whole.entries)].sort(),
    ["branch_summary", "compaction", "context_edit", "label", "message", "model_change", "session_info", "thinking_level_change"],
  );
  assert.deepEqual(
    [...new Set(whole.entries.filter((entry) => entry.message).map((entry) => entry.message.role))].sort(),
    ["assistant", "bashExecution", "system", "toolResult", "user"],
  );

  const original = await client.done({ type: "get_state" });
  await client.done({ type: "fork", entryId: message(whole.entries, "use a tool").id });
  await client.prompt("hello");
  const fork = await agree(client, "a fork");
  assert.equal(fork.opened.getHeader().parentSession, original.sessionFile);
  await client.done({ type: "switch_session", sessionPath: original.sessionFile });
  await client.done({ type: "clone" });
  const clone = await agree(client, "a clone");
  assert.deepEqual(clone.messages, whole.messages);
  await client.end();

  // pi goes on with the file, and agentd after it.
  const opened = SessionManager.open(original.sessionFile);
  opened.appendMessage({ role: "user", content: [{ type: "text", text: "from over there" }], timestamp: 1 });
  opened.appendSessionInfo("renamed");
  // The branch from its end, since what came before the compaction is in no context.
  opened.appendContextEdit(message(opened.getBranch().reverse(), "hello").id, { content: "edited" });
  const again = connect(place, ["--session", original.sessionFile]);
  const back = await agree(again, "after pi appended");
  assert.ok(JSON.stringify(back.messages).includes("from over there"));
  assert.ok(JSON.stringify(back.messages).includes("edited"));
  await again.prompt("hello");
  await agree(again, "after agentd appended again");
});

test("what SessionManager wrote opens in agentd, which appends, and opens there again", async (t) => {
  const place = home(t);
  const written = SessionManager.create(place.project, place.at("sessions"));
  const usage = {
    input: 5, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 7,
    cost: { input: 0.1, output: 1e-7, cacheRead: 0, cacheWrite: 0, total: 0.1000001 },
  };
  let clock = 1;
  const user = (text) => ({ role: "user", content: [{ type: "text", text }], timestamp: clock++ });
  const answer = (content, stopReason = "stop", more = {}) => ({
    role: "assistant", content, api: "scripted", provider: "script", model: "one", usage, stopReason, timestamp: clock++, ...more,
  });
  const text = (text) => [{ type: "text", text }];
  written.appendSessionInfo("  of\npi ");
  written.appendModelChange("script", "two");
  written.appendThinkingLevelChange("off");
  written.appendMessage({ role: "system", content: "Be kind.", sections: { tone: "calm" }, toolsAdded: [], timestamp: clock++ });
  written.appendMessage(user("odd text: \u2028 \ud83d \u0000 \ud83d\ude00"));
  const asked = written.appendMessage(answer([
    { type: "thinking", thinking: "hm", thinkingSignature: "s" }, { type: "text", text: "I look." },
    { type: "toolCall", id: "t1", name: "bash", arguments: { command: "ls" } },
  ], "toolUse"));
  written.appendMessage({
    role: "toolResult", toolCallId: "t1", toolName: "bash", content: text("a\nb"), details: { more: [1.5, null] }, isError: false,
    timestamp: clock++,
  });
  const failed = written.appendMessage(answer([], "error", { errorMessage: "overloaded" }));
  written.appendContextEdit(failed, null);
  written.appendUsage("cache_warm", "script", "one", usage, "note");
  written.appendCustomEntry("theirs", { any: ["thing"] });
  written.appendCustomMessageEntry("notice", "shown", true, { n: 1 });
  written.appendMessage({ role: "bashExecution", command: "pwd", output: "/\n", exitCode: 0, cancelled: false, truncated: false, timestamp: clock++ });
  written.appendLabelChange(asked, "look");
  const left = written.appendMessage(user("a way that is left"));
  written.appendMessage(answer(text("Left.")));
  written.branchWithSummary(asked, "What was left.", { readFiles: ["a"], modifiedFiles: [] }, false, usage);
  written.appendMessage({
    role: "toolResult", toolCallId: "t1", toolName: "bash", content: text("again"), isError: true, timestamp: clock++,
  });
  const kept = written.appendMessage(user("kept"));
  written.appendMessage(answer(text("Yes.")));
  written.appendCompaction("What came before.", kept, 1234, { readFiles: [], modifiedFiles: ["b"] }, false, usage);
  written.appendMessage(user("after it"));
  const edited = written.appendMessage(answer(text("Sure.")));
  written.appendContextEdit(edited, { content: "Certainly." });

  const file = written.getSessionFile();
  const client = connect(place, ["--session", file]);
  const seen = await agree(client, "as written");
  assert.deepEqual(seen.messages, plain(written.buildSessionContext().messages));
  const state = await client.done({ type: "get_state" });
  assert.deepEqual([state.model.id, state.thinkingLevel, state.sessionName], ["one", "off", "of pi"]);
  await client.prompt("hello");
  await agree(client, "after agentd appended");
  await client.done({ type: "fork", entryId: left });
  await client.prompt("hello");
  await agree(client, "a fork of the branch that was left");
  await client.end();

  const reopened = SessionManager.open(file);
  const branched = reopened.createBranchedSession(kept);
  assert.ok(branched);
  await agree(connect(place, ["--session", branched]), "a branch that pi split off");
});

test("pi opens what a kill interrupted, and again what agentd made of it", async (t) => {
  // With and without an answer, with a call that may have run, with half of a line at the end.
  const places = [
    "run.model_asked", "run.delta@2", "run.tool_started", "session.stored@3", "store.append@3:torn", "recovery.appended",
  ];
  for (const at of places) {
    const place = home(t);
    const first = connect(place, [], at.startsWith("recovery") ? { AGENTD_FAIL_POINTS: "run.tool_started" } : { AGENTD_FAIL_POINTS: at });
    const { sessionFile } = await first.done({ type: "get_state" });
    await first.dieOf({ type: "prompt", message: "use a tool" });
    if (at.startsWith("recovery")) {
      // agentd dies once more while it makes the file whole.
      const second = connect(place, ["--session", sessionFile], { AGENTD_FAIL_POINTS: at });
      await second.dieOf({ type: "get_state" });
    }
    const theirs = place.at("tmp", "theirs.jsonl");
    copyFileSync(sessionFile, theirs);
    const opened = SessionManager.open(theirs);
    const before = opened.getEntries().length;
    assert.ok(before > 0, `${at}: pi reads what was stored`);
    opened.buildSessionContext();

    const client = connect(place, ["--session", sessionFile]);
    const made = await agree(client, `${at}: made whole`);
    assert.ok(made.entries.length >= before, `${at}: nothing was lost`);
    const calls = made.messages.flatMap((message) => message.role === "assistant" ? message.content : []).filter((block) => block.type === "toolCall");
    const results = made.messages.filter((message) => message.role === "toolResult");
    assert.deepEqual(results.map((result) => result.toolCallId), calls.map((call) => call.id), `${at}: every call has a result`);
    await client.prompt("hello");
    const { opened: after } = await agree(client, `${at}: after another prompt`);
    after.appendMessage({ role: "user", content: [{ type: "text", text: "from over there" }], timestamp: 1 });
    await client.end();
    const again = connect(place, ["--continue"]);
    const back = await agree(again, `${at}: after pi appended`);
    assert.ok(JSON.stringify(back.messages).includes("from over there"));
    await again.end();
  }
});

test("old and foreign files give both the same context", async (t) => {
  const place = home(t);
  const data = join(repository, "tests/data/sessions");
  const names = readdirSync(data).filter((name) => name.endsWith(".jsonl"));
  assert.ok(names.length >= 4);
  for (const name of names) {
    const [header, ...lines] = readFileSync(join(data, name), "utf8").split("\n");
    const moved = [JSON.stringify({ ...JSON.parse(header), cwd: place.project }), ...lines].join("\n");
    const [ours, theirs] = [place.at("tmp", `ours-${name}`), place.at("tmp", `theirs-${name}`)];
    writeFileSync(ours, moved);
    copyFileSync(ours, theirs);
    const expected = plain(SessionManager.open(theirs).buildSessionContext().messages);
    const client = connect(place, ["--session", ours]);
    const { messages } = await client.done({ type: "get_messages" });
    assert.deepEqual(messages, expected, name);
    await client.end();
    assert.deepEqual(plain(SessionManager.open(ours).buildSessionContext().messages), expected, `${name}, after agentd`);
  }
});
