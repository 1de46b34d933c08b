// pi's own client class, in both generations of its protocol, drives agentd: every public method.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { awaited, documented, home, packages, running } from "./support.mjs";

const generations = [
  {
    name: "0.73", folder: join(packages, "pi-0.73/node_modules/@mariozechner/pi-coding-agent"), entry: "dist/index.js",
    args: ["--cumulative-updates"], end: "agent_end",
  },
  {
    name: "1.5", folder: join(packages, "pi-1.5/node_modules/@earendil-works/pi-coding-agent"), entry: "dist/bundle/index.js",
    args: [], end: "agent_settled",
  },
];

/// The names of the public methods that the class declares.
function declared(generation) {
  const text = readFileSync(join(generation.folder, "dist/modes/rpc/rpc-client.d.ts"), "utf8");
  const body = text.slice(text.indexOf("export declare class RpcClient {"));
  const names = [...body.matchAll(/^ {4}(\w+)\(/gm)].map((match) => match[1]).filter((name) => name !== "constructor");
  assert.ok(names.length > 30, `only ${names.length} methods found in the declarations`);
  return new Set(names);
}

/// A started client in a home of its own, and the names of its methods that were called and did not fail.
async function started(t, generation, options = {}) {
  const { RpcClient } = await import(join(generation.folder, generation.entry));
  const place = options.home ?? home(t, options.settings);
  const cliPath = place.at("agentd.mjs");
  writeFileSync(cliPath, documented("agentd.mjs"));
  const inner = new RpcClient({
    cliPath, cwd: place.project, env: { ...place.env, ...options.env }, provider: "script", model: "one",
    args: [...generation.args, ...(options.args ?? [])],
  });
  const called = new Set();
  const client = new Proxy(inner, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== "function") return member;
      return (...args) => {
        const result = member.apply(target, args);
        if (!(result instanceof Promise)) {
          called.add(name);
          return result;
        }
        return result.then((value) => {
          called.add(name);
          return value;
        });
      };
    },
  });
  place.cleanups.push(() => client.stop());
  await client.start();
  const listen = (listener) => client.onEvent(listener);
  return {
    client, called, place,
    event: (type) => awaited(listen, (event) => event.type === type, type),
    settled: () => awaited(listen, (event) => event.type === generation.end, generation.end),
  };
}

const text = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
const disposition = (generation, value) => (generation.name === "0.73" ? undefined : value);

for (const generation of generations) {
  const modern = generation.name !== "0.73";

  test(`RpcClient ${generation.name}: every public method`, async (t) => {
    const { client, called, place, event, settled } = await started(t, generation);

    // State and models.
    const first = await client.getState();
    assert.equal(first.model.id, "one");
    assert.equal(first.isStreaming, false);
    assert.ok(first.sessionFile.endsWith(`${first.sessionId}.jsonl`));
    assert.equal("sessionName" in first, false);
    assert.deepEqual((await client.getAvailableModels()).map((model) => model.id), ["one", "two"]);
    assert.equal((await client.setModel("script", "two")).id, "two");
    assert.equal((await client.cycleModel()).model.id, "one");
    await assert.rejects(client.setModel("script", "three"), /Model not found: script\/three/);
    await client.setThinkingLevel("low");
    assert.equal((await client.cycleThinkingLevel()).level, "medium");
    assert.equal((await client.getState()).thinkingLevel, "medium");
    if (modern) {
      assert.deepEqual(await client.getAvailableThinkingLevels(), ["off", "minimal", "low", "medium", "high"]);
    }

    // A prompt, its events, and the three ways to wait for its end.
    const events = await client.promptAndWait("hello");
    const types = events.map((item) => item.type);
    assert.equal(types[0], "agent_start");
    assert.equal(types.at(-1), generation.end);
    const updates = events.filter((item) => item.type === "message_update");
    const deltas = updates.map((item) => item.assistantMessageEvent).filter((item) => item.type === "text_delta");
    assert.equal(deltas.map((item) => item.delta).join(""), "Hello back.");
    if (modern) {
      assert.ok(updates.every((item) => !("message" in item) && !("partial" in item.assistantMessageEvent)));
    } else {
      assert.equal(text(updates.at(-1).message), "Hello back.");
      assert.equal(text(updates.at(-1).assistantMessageEvent.partial), "Hello back.");
      assert.ok(events.every((item) => item.message?.role !== "system"));
    }
    assert.equal(await client.getLastAssistantText(), "Hello back.");

    const collected = client.collectEvents();
    const prompted = await client.prompt("see", [{ type: "image", data: pixel, mimeType: "image/png" }]);
    assert.equal(prompted, disposition(generation, "started"));
    assert.ok((await collected).some((item) => item.type === "message_end" && text(item.message) === "An image."));

    // A tool call.
    const worked = await client.promptAndWait("use a tool", []);
    const call = worked.find((item) => item.type === "tool_execution_end");
    assert.equal(call.isError, false);
    assert.match(call.result.content[0].text, /one\ntwo/);

    // Messages for a run that is held in its tool.
    const gate = place.gate();
    const tool = event("tool_execution_start");
    const idle = client.waitForIdle();
    await client.prompt("hold");
    await tool;
    if (modern) await assert.rejects(client.prompt("more"), /Agent is already processing/);
    assert.equal(await client.steer("turn left"), disposition(generation, "queued"));
    assert.equal(await client.followUp("and then"), disposition(generation, "queued"));
    if (modern) {
      assert.equal(await client.prompt("at the end", undefined, "followUp"), "queued");
      assert.equal((await client.getState()).pendingMessageCount, 3);
      assert.deepEqual(await client.clearQueue(), { steering: ["turn left"], followUp: ["and then", "at the end"] });
      assert.equal(await client.steer("turn left"), "queued");
      assert.equal(await client.followUp("and then"), "queued");
    }
    assert.equal((await client.getState()).pendingMessageCount, 2);
    gate.open();
    await idle;
    const messages = await client.getMessages();
    const said = messages.filter((message) => message.role === "user").map(text);
    assert.deepEqual(said.slice(-3), ["hold", "turn left", "and then"]);
    assert.equal(messages.some((message) => message.role === "system"), modern);

    // Abort of a streaming answer.
    const update = event("message_update");
    await client.prompt("hang");
    await update;
    await client.abort();
    assert.equal((await client.getState()).isStreaming, false);
    assert.equal((await client.getMessages()).at(-1).stopReason, "aborted");

    // Modes and switches.
    await client.setSteeringMode("all");
    await client.setFollowUpMode("all");
    await client.setAutoCompaction(false);
    const modes = await client.getState();
    assert.deepEqual([modes.steeringMode, modes.followUpMode, modes.autoCompactionEnabled], ["all", "all", false]);

    // Retries: one that is used up, none when switched off, and a pause that is ended.
    const retried = (await (modern ? client.promptAndWait("fail") : untilRetryEnd(client, "fail"))).map((item) => item.type);
    assert.ok(retried.includes("auto_retry_start") && retried.includes("auto_retry_end"), retried.join(" "));
    await client.setAutoRetry(false);
    assert.ok(!(await client.promptAndWait("fail")).some((item) => item.type === "auto_retry_start"));
    await client.setAutoRetry(true);
    await client.abortRetry();

    // Shell commands.
    const ran = await client.bash("echo hi; exit 3");
    assert.deepEqual([ran.output, ran.exitCode, ran.cancelled, ran.truncated], ["hi\n", 3, false, false]);
    const endless = client.bash("echo begun > begun; cat gate");
    await appears(place.at("project/begun"));
    await client.abortBash();
    assert.equal((await endless).cancelled, true);

    // The session: counts, name, entries, tree.
    await client.setSessionName("talk");
    assert.equal((await client.getState()).sessionName, "talk");
    const stats = await client.getSessionStats();
    assert.equal(stats.toolCalls, 2);
    assert.equal(stats.toolResults, 2);
    assert.ok(stats.tokens.total > 0);
    const points = await client.getForkMessages();
    assert.equal(points[0].text, "hello");
    if (modern) {
      const all = await client.getEntries();
      assert.deepEqual((await client.getEntries(all.entries.at(-2).id)).entries, [all.entries.at(-1)]);
      assert.equal(all.leafId, all.entries.at(-1).id);
      const { tree, leafId } = await client.getTree();
      assert.equal(tree.length, 1);
      assert.equal(leafId, all.leafId);
    }

    const page = await client.exportHtml(place.at("talk.html"));
    assert.equal(page.path, place.at("talk.html"));
    assert.match(readFileSync(page.path, "utf8"), /^<!DOCTYPE html>/i);
    assert.ok(Array.isArray(await client.getCommands()));

    // Compaction.
    const start = event("compaction_start");
    const compacted = await client.compact("Be brief.");
    assert.equal((await start).reason, "manual");
    assert.equal(compacted.summary.startsWith("Well."), true);
    assert.ok(compacted.tokensBefore > 0);

    // Other sessions.
    const before = await client.getState();
    const forked = await client.fork(points[1].entryId);
    assert.deepEqual(forked, { text: "see", cancelled: false });
    const afterFork = await client.getState();
    assert.notEqual(afterFork.sessionId, before.sessionId);
    assert.equal(await client.getLastAssistantText(), "Hello back.");
    assert.deepEqual(await client.clone(), { cancelled: false });
    assert.notEqual((await client.getState()).sessionId, afterFork.sessionId);
    assert.deepEqual(await client.newSession(before.sessionFile), { cancelled: false });
    assert.ok([undefined, null].includes(await client.getLastAssistantText()));
    assert.deepEqual(await client.switchSession(before.sessionFile), { cancelled: false });
    assert.equal((await client.getState()).sessionId, before.sessionId);
    await assert.rejects(client.fork("nonsense"), /Invalid entry ID for forking/);

    assert.equal(client.getStderr(), "");
    await client.stop();
    const missing = [...declared(generation)].filter((name) => !called.has(name));
    assert.deepEqual(missing, [], "public methods that this test does not call");
  });

  for (const way of ["execve", "a child process"]) {
    test(`RpcClient ${generation.name}: stop ends agentd and its commands in time (${way})`, async (t) => {
      const place = home(t);
      const env = {};
      if (way !== "execve") {
        writeFileSync(place.at("old-node.mjs"), "process.execve = undefined;\n");
        env.NODE_OPTIONS = `--import ${place.at("old-node.mjs")}`;
      }
      const { client, event } = await started(t, generation, { home: place, env });
      place.gate();
      const tool = event("tool_execution_start");
      await client.prompt("hold");
      await tool;
      const processes = running(place);
      assert.equal(processes.some((line) => line.includes("agentd.mjs")), way !== "execve", processes.join("\n"));
      // RpcClient kills what has not ended a second after SIGTERM; then the file would lack the aborted call's result.
      const { sessionFile } = await client.getState();
      await client.stop();
      const roles = readFileSync(sessionFile, "utf8").trim().split("\n").map((line) => JSON.parse(line).message?.role);
      assert.ok(roles.includes("toolResult"), roles.join(" "));
      await gone(() => running(place));
    });
  }
}

test("RpcClient 1.5: why agentd does not start reaches the caller", async (t) => {
  // `start` looks after 100 ms; what ends later is told by the first command, or by the pipe that it breaks.
  const begun = started(t, generations[1], { args: ["--session", "none"] }).then(({ client }) => client.getState());
  await assert.rejects(begun, /(code[ =]1\b|EPIPE).*No session found matching 'none'/s);
});

/// A PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Sends a prompt and collects events until its retries are over: this generation stops waiting at the first `agent_end`.
async function untilRetryEnd(client, message) {
  const events = [];
  const ended = awaited((listener) => client.onEvent((event) => {
    events.push(event);
    listener(event);
  }), (event) => event.type === "agent_settled", "agent_settled");
  await client.prompt(message);
  await ended;
  return events;
}

/// Waits until a file is there. Nothing announces it: it is the first thing that a shell command does.
async function appears(path) {
  await until(() => existsSync(path), `${path} does not appear`);
}

async function gone(list) {
  await until(() => list().length === 0, () => `still there:\n${list().join("\n")}`);
}

async function until(holds, what) {
  const end = Date.now() + 30_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error(typeof what === "string" ? what : what());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
