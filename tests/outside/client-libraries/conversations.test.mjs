// What the TypeScript package promises, with the real agentd.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { Agentd, AgentdError, socketPath } from "agentd-client";

import { first, home, promised, proxy } from "./support.mjs";

const code = (expected) => (error) => {
  assert.ok(error instanceof AgentdError, String(error?.stack));
  assert.equal(error.code, expected, error.message);
  return true;
};

const isDelta = (event) => event.type === "message_update" && event.assistantMessageEvent.type === "text_delta";

async function spawned(t, place, options = {}) {
  const agentd = await Agentd.spawn({ cwd: place.project, env: place.env, ...options, args: ["--no-session", ...(options.args ?? [])] });
  t.after(() => agentd.close());
  return agentd.currentSession();
}

async function connected(t, place, options = {}) {
  const agentd = await Agentd.connect({ env: place.env, start: true, ...options });
  t.after(() => agentd.close());
  return agentd;
}

const opening = (place) => ({ cwd: place.project, env: place.env });

test("a prompt streams its events and has a result", async (t) => {
  const session = await spawned(t, home(t));
  const run = session.prompt("How many files are there?");
  const types = [];
  for await (const event of run) if (event.type !== "message_update") types.push(event.type);
  assert.equal(await run.accepted(), "started");
  assert.equal(types[0], "agent_start");
  assert.equal(types.at(-1), "agent_settled");
  const result = await run.result();
  assert.equal(result.text, "There is one.");
  assert.equal(result.stopReason, "stop");
  assert.deepEqual([result.turns, result.toolCalls, result.usage.input, result.usage.output], [2, 1, 30, 7]);
  let text = "";
  for await (const delta of session.prompt("What is in this folder?").text()) text += delta;
  assert.equal(text, "A README and a test.");
  assert.equal((await session.messages()).filter((message) => message.role === "user").length, 2);
});

test("failures have codes, and what came", async (t) => {
  const session = await spawned(t, home(t));
  await assert.rejects(session.ask("Fail."), (error) => code("model_failed")(error) && error.result.turns === 1);
  await assert.rejects(session.call({ type: "set_model", provider: "none", modelId: "none" }), code("no_model"));
  const run = session.prompt("Hang.");
  await first(run, isDelta);
  await assert.rejects(session.ask("Again?"), code("busy"));
  await assert.rejects(session.prompt("Again?").accepted(), code("busy"));
  await run.abort();
  await assert.rejects(run.result(), (error) => code("aborted")(error) && error.result.text === "Thinking");
  assert.equal(await session.ask("Hi."), "Well.");
});

test("a signal stops a run, and one that is aborted already sends nothing", async (t) => {
  const session = await spawned(t, home(t));
  const controller = new AbortController();
  const run = session.prompt("Hang.", { signal: controller.signal });
  for await (const event of run) if (isDelta(event)) controller.abort();
  await assert.rejects(run.result(), code("aborted"));
  await assert.rejects(session.ask("Hi.", { signal: controller.signal }), code("aborted"));
  assert.equal((await session.messages()).filter((message) => message.role === "user").length, 1);
});

test("steering, follow-ups and a prompt that waits belong to the run", async (t) => {
  const place = home(t);
  const session = await spawned(t, place);
  const run = session.prompt("Wait.");
  await first(run, isDelta);
  await session.steer("What is in this folder?");
  const queued = session.prompt("Hi.", { streamingBehavior: "followUp" });
  assert.equal(await queued.accepted(), "queued");
  place.openGate();
  assert.equal((await queued.result()).text, "Well.");
  assert.equal((await run.result()).turns, 3);
});

test("a slow reader loses nothing, and commands are answered meanwhile", async (t) => {
  const session = await spawned(t, home(t), { highWaterMark: 8 });
  const run = session.prompt("Count.");
  const all = session.events();
  await run.accepted();
  let [count, text] = [0, ""];
  for await (const delta of run.text()) {
    text += delta;
    count += 1;
    if (count === 5000) assert.equal((await session.state()).isStreaming, true);
    // The other reader is as slow.
    while (!isDelta((await all.next()).value));
  }
  assert.equal(text, Array.from({ length: 20000 }, (_, number) => `${number} `).join(""));
});

test("an iterator that nobody reads does not keep a result away", async (t) => {
  const session = await spawned(t, home(t), { highWaterMark: 8 });
  const unread = session.events();
  assert.equal((await session.ask("Count.")).length, 108890);
  assert.equal((await unread.next()).value.type, "agent_start");
});

test("a client that is too slow for the others catches up", async (t) => {
  const place = home(t);
  const slow = await connected(t, place, { highWaterMark: 8 });
  const session = await slow.openSession(opening(place));
  const fast = (await (await connected(t, place)).attachSession(session.id)).events();
  const run = session.prompt("Count.");
  await run.accepted();
  await first(fast, (event) => event.type === "agent_settled");
  const types = new Set();
  for await (const event of run) types.add(event.type);
  assert.ok(types.has("lagged"), [...types].join());
  assert.equal((await run.result()).text.length, 108890);
  assert.equal(await session.ask("Hi."), "Well.");
});

test("a prompt that is refused does not stop the work of others", async (t) => {
  const place = home(t);
  const session = await spawned(t, place);
  const run = session.prompt("Wait.");
  await first(run, isDelta);
  const controller = new AbortController();
  const refused = session.prompt("Again?", { signal: controller.signal });
  controller.abort();
  await assert.rejects(refused.result(), code("busy"));
  place.openGate();
  assert.equal((await run.result()).text, "Before. While away.");
});

test("tools: progress, failures, cancellation", async (t) => {
  const session = await spawned(t, home(t));
  const parameters = { type: "object", properties: { times: { type: "integer" } } };
  const description = "Throws a coin.";
  await session.registerTool({
    name: "coin", description, parameters,
    execute: async ({ times }, call) => {
      await call.progress("spinning");
      return `heads, ${times}`;
    },
  });
  const run = session.prompt("Throw the coin three times.");
  const updates = [];
  for await (const event of run) if (event.type === "tool_execution_update") updates.push(event.partialResult.content[0].text);
  assert.deepEqual(updates, ["spinning"]);
  assert.equal((await run.result()).text, "It was thrown.");

  await session.registerTool({ name: "coin", description, parameters, execute: () => { throw new Error("no coin"); } });
  assert.equal(await session.ask("Throw the coin three times."), "It could not be thrown.");

  const [called, cancelled] = [promised(), promised()];
  const unregister = await session.registerTool({
    name: "coin", description, parameters,
    execute: (_, { signal }) => new Promise((resolve) => {
      signal.addEventListener("abort", () => { cancelled.resolve(signal.reason); resolve("late"); });
      called.resolve();
    }),
  });
  const stopped = session.prompt("Throw the coin three times.");
  await called.promise;
  await stopped.abort();
  assert.match((await cancelled.promise).message, /aborted/);
  await unregister();
  const { tools } = await session.call({ type: "get_tools" });
  assert.ok(!tools.some((tool) => tool.name === "coin"));
});

test("permission questions: yes, no with words, and another client that is first", async (t) => {
  const place = home(t);
  const asked = [];
  let answer = () => "once";
  const first_ = await connected(t, place, { name: "first", onPermission: (question, context) => { asked.push(question); return answer(question, context); } });
  const session = await first_.openSession({ ...opening(place), ephemeral: true, args: ["--permissions", "workspace"] });
  assert.equal(await session.ask("Build the project."), "It was built.");
  assert.equal(asked[0].command, "touch built");
  answer = () => ({ decision: "deny", message: "I do not want it." });
  assert.equal(await session.ask("Build the project."), "Then not.");

  const [open, gone] = [promised(), promised()];
  answer = (_, { signal }) => new Promise((resolve) => {
    signal.addEventListener("abort", () => { gone.resolve(signal.reason); resolve(undefined); });
    open.resolve();
  });
  const run = session.prompt("Build the project.");
  await open.promise;
  // A client that comes later finds the question, and answers it.
  const second = await connected(t, place, { name: "second", onPermission: () => "once" });
  await second.attachSession(session.id);
  assert.equal((await run.result()).text, "It was built.");
  assert.match((await gone.promise).message, /second/);
});

test("other questions, and a handler that throws", async (t) => {
  const place = home(t);
  mkdirSync(place.at("project/.pi"));
  writeFileSync(place.at("project/.pi/SYSTEM.md"), "Be short.");
  const [asked, told] = [promised(), promised()];
  const agentd = await connected(t, place, {
    onSelect: (question) => { asked.resolve(question); throw new Error("no answer"); },
    onError: (error) => told.resolve(error),
  });
  await agentd.openSession(opening(place));
  assert.ok((await asked.promise).options.length > 1);
  assert.equal((await told.promise).message, "no answer");
});

test("answers of a schema: asked again, and given up", async (t) => {
  const place = home(t);
  const session = await spawned(t, place, { args: ["--permissions", "read-only"] });
  assert.equal(await session.askFor({ type: "integer" }, "Words first."), 7);
  const { permissions } = await session.state();
  assert.deepEqual(permissions.sessionRules ?? [], []);
  await session.call({ type: "set_model", provider: "script", modelId: "never" });
  await assert.rejects(session.askFor({ type: "integer" }, "A number?"), code("bad_answer"));
  const { tools } = await session.call({ type: "get_tools" });
  assert.ok(!tools.some((tool) => tool.name === "submit_answer"));
});

test("events that were missed while the connection was cut come, none twice", async (t) => {
  const place = home(t);
  place.agentctl("up");
  const cable = await proxy(t, place.at("proxy.sock"), socketPath(place.env));
  const agentd = await connected(t, place, { socket: place.at("proxy.sock") });
  const session = await agentd.openSession(opening(place));
  const connection = agentd.events();
  const numbers = [];
  const counted = (async () => { for await (const event of session.events()) numbers.push(event.seq); })();
  const run = session.prompt("Wait.");
  let text = "";
  for await (const delta of run.text()) {
    text += delta;
    if (text !== "Before.") continue;
    cable.cut();
    await first(connection, (event) => event.type === "connection" && event.state === "lost");
    place.openGate();
    // The daemon goes on meanwhile.
    while (JSON.parse(place.agentctl("status", "--json")).runningSessions > 0);
    cable.mend();
  }
  assert.equal(text, "Before. While away.");
  assert.equal((await run.result()).text, "Before. While away.");
  await session.close();
  await counted;
  const numbered = numbers.filter((number) => number !== undefined);
  assert.deepEqual(numbered, numbered.map((_, index) => numbered[0] + index));
});

test("a prompt whose answer was lost is sent again, and runs once", async (t) => {
  const place = home(t);
  place.agentctl("up");
  const cable = await proxy(t, place.at("proxy.sock"), socketPath(place.env));
  const agentd = await connected(t, place, { socket: place.at("proxy.sock") });
  const session = await agentd.openSession(opening(place));
  const other = await (await connected(t, place)).attachSession(session.id);
  const seen = other.events();
  cable.deafen();
  const run = session.prompt("What is in this folder?");
  await first(seen, (event) => event.type === "agent_settled");
  cable.cut();
  cable.mend();
  assert.equal((await run.result()).text, "A README and a test.");
  assert.equal((await session.messages()).filter((message) => message.role === "user").length, 1);
});

test("a killed daemon: the run fails, the session and its tools are there again", async (t) => {
  const place = home(t);
  const agentd = await connected(t, place);
  const session = await agentd.openSession(opening(place));
  const parameters = { type: "object", properties: { times: { type: "integer" } } };
  await session.registerTool({ name: "coin", description: "Throws a coin.", parameters, execute: () => "heads, tails" });
  assert.equal(await session.ask("Hi."), "Well.");
  const events = session.events();
  const run = session.prompt("Hang.");
  await first(run, isDelta);
  const { pid } = agentd.daemon;
  process.kill(pid, "SIGKILL");
  await assert.rejects(run.result(), (error) => code("connection_lost")(error) && error.hint.includes("messages"));
  const event = await first(events, (event) => event.type === "resync");
  assert.equal(event.isOtherDaemon, true);
  assert.notEqual(agentd.daemon.pid, pid);
  assert.equal(await session.ask("Throw the coin three times."), "It was thrown.");
});

test("an agentd of one's own that dies ends everything that waits", async (t) => {
  const agentd = await Agentd.spawn({ cwd: home(t).project, env: home(t).env, args: ["--no-session"] });
  const session = await agentd.currentSession();
  const [events, run] = [session.events(), session.prompt("Hang.")];
  await first(run, isDelta);
  process.kill(agentd.daemon.pid, "SIGKILL");
  await assert.rejects(run.result(), (error) => code("connection_lost")(error) && error.message.includes("SIGKILL"));
  await assert.rejects(first(events, () => false), code("connection_lost"));
  await assert.rejects(session.state(), code("connection_lost"));
  await agentd.close();
});

test("close: the process ends, iterators end, later calls are refused", async (t) => {
  const place = home(t);
  const agentd = await Agentd.spawn({ cwd: place.project, env: place.env, args: ["--no-session"] });
  const session = await agentd.currentSession();
  const { pid } = agentd.daemon;
  const ended = (async () => { for await (const _ of session.events()); })();
  await agentd.close();
  await ended;
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  await assert.rejects(session.ask("Hi."), code("closed"));
  await assert.rejects(agentd.call({ type: "get_state" }), code("closed"));
});

test("what cannot be reached is named, with what to do", async (t) => {
  const place = home(t);
  const hinted = (error) => code("not_started")(error) && error.hint.length > 0;
  await assert.rejects(Agentd.spawn({ program: place.at("none") }), hinted);
  await assert.rejects(Agentd.connect({ env: place.env }), (error) => hinted(error) && error.message.includes("agentd.sock"));
  await assert.rejects(Agentd.connect({ env: place.env, start: true, agentctl: place.at("none") }), hinted);
  const failing = Agentd.spawn({ env: place.env, args: ["--no-such-flag"] });
  await assert.rejects(failing, (error) => code("connection_lost")(error) && error.message.includes("no-such-flag"));
});

test("agentctl finds the same socket", (t) => {
  const place = home(t);
  const long = place.at("x".repeat(110));
  for (const more of [{}, { XDG_RUNTIME_DIR: place.at("tmp") }, { AGENTD_DIR: "" }, { AGENTD_DIR: long }, { AGENTD_DIR: "~//agent/./" }, { AGENTD_DIR: "~/tmp/../agent" }]) {
    const env = { ...place.env, ...("AGENTD_DIR" in more ? { XDG_RUNTIME_DIR: place.at("tmp") } : {}), ...more };
    if (more.AGENTD_DIR === long) mkdirSync(long, { mode: 0o700 });
    let printed;
    try {
      printed = execFileSync("agentctl", ["status", "--json"], { env, encoding: "utf8" });
    } catch (error) {
      assert.equal(error.status, 3, String(error));
      printed = error.stdout;
    }
    assert.equal(socketPath(env), JSON.parse(printed).socket, JSON.stringify(more));
  }
});
