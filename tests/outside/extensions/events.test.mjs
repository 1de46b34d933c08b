// What extensions see: one that logs every event, in agentd and in pi, through the same conversation.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

import { persistent } from "./conversation.mjs";
import { scripted } from "./model_server.mjs";
import { side } from "./side.mjs";

const probe = join(dirname(fileURLToPath(import.meta.url)), "probe.ts");

/// The parts of the conversation. Each is compared on its own.
const parts = {
  "a prompt with a tool": (client) => client.prompt("use a tool"),
  "a failing tool and an unknown one": (client) => client.prompt("fail a tool"),
  "a plain prompt": (client) => client.prompt("hello"),
  "steering and following up": async (client, place) => {
    const settled = client.event("agent_settled");
    const begun = client.event((record) => record.assistantMessageEvent?.type === "text_delta");
    await client.done({ type: "prompt", message: "hold" });
    await begun;
    await client.done({ type: "steer", message: "to the left" });
    await client.done({ type: "follow_up", message: "and then" });
    place.letGo();
    await settled;
  },
  "an abort": async (client) => {
    const settled = client.event("agent_settled");
    const begun = client.event((record) => record.assistantMessageEvent?.type === "text_delta");
    await client.done({ type: "prompt", message: "hang" });
    await begun;
    await client.done({ type: "abort" });
    await settled;
  },
  "a retry": (client) => client.prompt("fail once"),
  "another model and level": async (client) => {
    for (const model of ["two", "one"]) {
      const heard = client.event((record) => record.statusText === `model ${model}`);
      await client.done({ type: "set_model", provider: "fake", modelId: model });
      await heard;
    }
    for (const level of ["high", "off"]) {
      // Handlers hear of it on their own.
      const heard = client.event((record) => record.statusText === `thinking ${level}`);
      await client.done({ type: "set_thinking_level", level });
      await heard;
    }
  },
  "a name": async (client) => {
    await client.done({ type: "set_session_name", name: "Probed" });
    await client.prompt("hello again");
  },
  "a command of the user": async (client) => {
    await client.done({ type: "bash", command: "echo hi" });
    await client.done({ type: "bash", command: "echo hi", excludeFromContext: true });
  },
  "a dialog": (client) => client.command("/ask"),
  "a message of an extension": async (client) => {
    await client.command("/say aside");
    const settled = client.event("agent_settled");
    await client.command("/say go");
    await settled;
  },
  "a compaction": async (client) => client.done({ type: "compact" }),
  "a prompt after the compaction": (client) => client.prompt("hello after it"),
  "navigation": (client) => client.command("/navigate"),
  "a prompt on the new branch": (client) => client.prompt("hello there"),
  "navigation with a summary": (client) => client.command("/navigate summarize"),
  "a fork": async (client) => {
    await client.prompt("to be forked");
    const { messages } = await client.done({ type: "get_fork_messages" });
    await client.done({ type: "fork", entryId: messages.at(-1).entryId });
    await client.prompt("in the fork");
  },
  "a new session": async (client) => {
    await client.done({ type: "new_session" });
    await client.prompt("in the new one");
  },
  "the end": (client) => client.end(),
};

/// Without what pi's RPC mode tells twice: that a session began which a command of the client made.
function onceBegun(lines) {
  let begun = new Set();
  return lines.filter(({ event }) => {
    if (event === "session_shutdown") begun = new Set();
    if (event !== "session_start" && event !== "resources_discover") return true;
    const isNew = !begun.has(event);
    begun.add(event);
    return isNew;
  });
}

/// What the probe logged in each part.
async function probed(t, program) {
  let letGo;
  const held = new Promise((resolve) => (letGo = resolve));
  let failed = false;
  const is = (text) => (asked) => asked.prompt === text && asked.results === 0;
  const answer = scripted(
    [is("fail a tool"), { calls: [{ id: "c1", name: "bash", args: { command: "exit 3" } }, { id: "c2", name: "absent", args: {} }] }],
    [is("use a tool"), { text: "Looking.", thinking: "Hm.", calls: [{ id: "c1", name: "bash", args: { command: "echo one" } }] }],
    [is("hold"), { text: "Holding", hold: held }], [is("hang"), { text: "Hanging", hold: new Promise(() => {}) }],
    [(asked) => asked.prompt === "fail once" && !failed, () => {
      failed = true;
      return { fail: { status: 503, message: "overloaded" } };
    }],
    [() => true, { text: "Well." }],
  );
  const place = await side(t, program, { extensions: [probe], answer, settings: { compaction: { enabled: true, keepRecentTokens: 2 } } });
  const client = place.start([], (request) => (request.method === "select" ? { value: "b" } : undefined));
  const read = () => readFileSync(place.at("home/probe.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  await client.command("/mark begun");
  const marks = { "the start": read().length };
  const broken = {};
  for (const [name, talk] of Object.entries(parts)) {
    try {
      await talk(client, { ...place, letGo });
    } catch (error) {
      broken[name] = error.message;
    }
    if (!client.isOver()) await client.done({ type: "get_state" });
    marks[name] = read().length;
  }
  const lines = read();
  const all = {};
  let from = 0;
  for (const [name, to] of Object.entries(marks)) {
    const events = onceBegun(lines.slice(from, to).filter((line) => line.mark === undefined));
    // How an answer comes in pieces is a matter of time, and so is what has been queued meanwhile.
    const isPiece = ({ event }) => event === "message_update" || event === "provider_stream_event";
    const pieces = new Set(events.filter(isPiece).map(({ event, shape }) => JSON.stringify(comparable({ event, shape }))));
    const others = events.filter((line) => !isPiece(line)).map(comparable);
    all[name] = [...others, ...[...pieces].sort().map((text) => JSON.parse(text))];
    if (broken[name]) all[name].push(`broken: ${broken[name]}`);
    from = to;
  }
  return all;
}

/// The tools that both programs have, whose lines in the system prompt extensions see.
const tools = ["bash", "edit", "find", "grep", "ls", "read", "write"];

/// What pi's answers say only once they are over. Its event holds the object that goes on changing until a handler looks at it.
const known = ["durationMs", "rawStopReason", "responseId", "errorMessage"];

/// The line without what is each program's own, and what is a matter of time.
function comparable(line) {
  const options = line.shape?.systemPromptOptions;
  const ofBoth = (of) => Object.fromEntries(tools.filter((name) => of[name]).map((name) => [name, of[name]]));
  for (const name of options ? ["toolGuidelines", "toolSnippets"] : []) options[name] = ofBoth(options[name]);
  if (line.event === "message_update") for (const name of known) delete line.shape.message[name];
  return line;
}

test("what an extension sees of a conversation", { timeout: 240_000 }, async (t) => {
  const talk = () => Promise.all([probed(t, "agentd"), probed(t, "pi")]);
  let talked = talk();
  for (const name of ["the start", ...Object.keys(parts)]) {
    await t.test(name, (t) => persistent(t, async () => {
      const [ours, theirs] = await talked;
      // A part that differs is compared again, in another conversation.
      if (!isDeepStrictEqual(ours[name], theirs[name])) talked = talk();
      assert.deepEqual(ours[name], theirs[name]);
    }));
  }
});
