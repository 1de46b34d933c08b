// The extensions that an implementation of pi's interface is measured by, unchanged, in agentd and in pi: the same conversation over the
// RPC wire with the same model gives the same records, asks the model the same, and leaves the same session.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { both, call, dialogs, example } from "./conversation.mjs";
import { scripted } from "./model_server.mjs";
import { packages } from "../node/support.mjs";

test("permission-gate", async (t) => {
  const danger = { calls: [call("c1", "bash", { command: "sudo rm -rf /nothing/here" })] };
  const what = {
    extensions: [example("permission-gate.ts")],
    answer: () => scripted([["go", 0], danger], [["fine", 0], { calls: [call("c2", "bash", { command: "echo fine" })] }], [() => true, { text: "Done." }]),
  };
  for (const answer of [{ value: "No" }, { value: "Yes" }, { cancelled: true }]) {
    await t.test(`answered with ${JSON.stringify(answer)}`, (t) => both(t, what, async (place) => {
      const client = place.start([], dialogs({ select: answer }));
      await client.prompt("go");
      await client.prompt("fine");
    }));
  }
  await t.test("with nobody to ask", (t) => both(t, what, (place) => place.once(["go", "fine"]).then(() => undefined)));
});

test("todo", (t) => both(t, {
  extensions: [example("todo.ts")],
  answer: () => scripted(
    [["add", 0], { calls: [call("c1", "todo", { action: "add", text: "write tests" }), call("c2", "todo", { action: "add", text: "run them" })] }],
    [["toggle", 0], { calls: [call("c3", "todo", { action: "toggle", id: 1 }), call("c4", "todo", { action: "list" })] }],
    [["wrong", 0], { calls: [call("c5", "todo", { action: "toggle" }), call("c6", "todo", { action: "toggle", id: 7 }), call("c7", "todo", { action: "fly" }), call("c8", "todo", { action: "list" })] }],
    [() => true, { text: "Done." }],
  ),
}, async (place) => {
  const client = place.start();
  await client.done({ type: "get_commands" });
  await client.prompt("add");
  await client.prompt("toggle");
  await client.prompt("wrong");
  await client.command("/todos");
  const { sessionFile } = await client.done({ type: "get_state" });
  await client.end();
  // The state is built again from the branch.
  const again = place.start(["--session", sessionFile]);
  await again.prompt("toggle again");
  const { messages } = await again.done({ type: "get_fork_messages" });
  await again.done({ type: "fork", entryId: messages.find((message) => message.text === "toggle").entryId });
  await again.prompt("toggle in the fork");
}));

/// A system message that has no tools: what it has are sections.
const hasSectionsAlone = (message) => message?.role === "system" && !message.toolsAdded?.length && !message.toolsRemoved?.length;

test("plan-mode", (t) => both(t, {
  extensions: [example("plan-mode")],
  extra: [(entry) => hasSectionsAlone(entry.message)],
  wanted: [{
    why: "agentd tells the model of other tools and of the sections that go with them at once, pi of the sections a turn later",
    change: (record) => {
      if (hasSectionsAlone(record.message)) return undefined;
      if (record.command === "get_state") return { ...record, data: { ...record.data, messageCount: undefined } };
      return record.messages ? { ...record, messages: record.messages.filter((message) => !hasSectionsAlone(message)) } : record;
    },
  }],
  answer: () => scripted(
    [["look", 0], { calls: [call("c1", "bash", { command: "rm -rf x" }), call("c2", "bash", { command: "ls" })] }],
    [["look", 2], { text: "Plan:\n1. Read the whole file\n2. Change the second line\n" }],
    [["Execute the plan", 0], { text: "First. [DONE:1]", calls: [call("c3", "bash", { command: "true" })] }],
    [["Execute the plan", 1], { text: "Second. [DONE:2]" }],
    [() => true, { text: "Well." }],
  ),
}, async (place) => {
  const client = place.start(["--plan"], dialogs({ select: (request) => ({ value: request.options[0] }) }));
  await client.done({ type: "get_commands" });
  await client.prompt("look");
  await client.command("/todos");
  await client.prompt("thanks");
  await client.command("/plan");
  await client.command("/plan");
  const { sessionFile } = await client.done({ type: "get_state" });
  await client.command("/plan");
  await client.prompt("bye");
  await client.end();
  const again = place.start(["--session", sessionFile], dialogs({ select: { cancelled: true } }));
  await again.done({ type: "get_commands" });
  await again.done({ type: "get_state" });
  await again.prompt("look");
  await again.command("/todos");
}));

/// Requests to show something that come twice in a row, once. pi's RPC mode tells extensions twice that a session began.
function shownOnce(records) {
  const text = ({ id: _, ...record }) => JSON.stringify(record);
  const out = [];
  for (const record of records) {
    out.push(record);
    for (let size = 1; size <= out.length / 2; size++) {
      const last = out.slice(-size), before = out.slice(-2 * size, -size);
      if (!last.every((one, at) => one.type === "extension_ui_request" && text(one) === text(before[at]))) continue;
      out.length -= size;
      break;
    }
  }
  return out;
}

test("rpc-demo", (t) => both(t, {
  arranged: shownOnce,
  extensions: [example("rpc-demo.ts")],
  answer: () => scripted([["go", 0], { calls: [call("c1", "bash", { command: "sudo true; rm -r nothing" })] }], [() => true, { text: "Done." }]),
}, async (place) => {
  const answers = { select: { value: "Block" }, confirm: { confirmed: false }, input: { value: "typed" }, editor: { value: "two\nlines" } };
  const client = place.start([], (request) => answers[request.method]);
  await client.done({ type: "get_commands" });
  await client.prompt("go");
  answers.select = { value: "Allow" };
  await client.prompt("go on");
  for (const command of ["/rpc-input", "/rpc-editor", "/rpc-prefill"]) await client.command(command);
  answers.input = answers.editor = { cancelled: true };
  for (const command of ["/rpc-input", "/rpc-editor"]) await client.command(command);
  await client.done({ type: "new_session" });
  answers.confirm = { confirmed: true };
  await client.done({ type: "new_session" });
  await client.prompt("go");
}));

test("reload-runtime", (t) => both(t, {
  extensions: [example("reload-runtime.ts")],
  answer: () => scripted([["go", 0], { calls: [call("c1", "reload_runtime", {})] }], [() => true, { text: "Well." }]),
}, async (place) => {
  const client = place.start();
  await client.command("/reload-runtime");
  await client.prompt("go");
  // The command that the tool asked for runs after the run, on its own: a command that comes then is answered after it.
  await client.command("/reload-runtime");
  await client.prompt("on");
}));

test("tool-override", (t) => both(t, {
  extensions: [example("tool-override.ts")],
  files: { "project/a.txt": "one\ntwo\nthree\n", "project/.env": "SECRET=1\n" },
  answer: () => scripted(
    [["go", 0], { calls: [call("c1", "read", { path: "a.txt", offset: 2, limit: 1 }), call("c2", "read", { path: ".env" }), call("c3", "read", { path: "missing" }), call("c4", "read", {})] }],
    [() => true, { text: "Done." }],
  ),
}, async (place) => {
  const client = place.start();
  await client.command("/read-log");
  await client.prompt("go");
  await client.command("/read-log");
  return readFileSync(place.at("agent/read-access.log"), "utf8").replaceAll(place.root, "").replaceAll(/^\[.*?\]/gm, "");
}));

test("custom-compaction", async (t) => {
  const talk = async (place) => {
    const client = place.start();
    for (const prompt of ["one", "two", "three"]) await client.prompt(prompt);
    await client.send({ type: "compact" });
    await client.prompt("four");
    await client.send({ type: "compact", customInstructions: "Be brief." });
  };
  const models = (url) => ({ google: { baseUrl: url, apiKey: "key" } });
  const cases = {
    "summarises by its own model": { text: "## Goal\nTo be short." },
    "falls back when its model says nothing": { text: " " },
    "falls back when its model fails": { fail: { status: 400, message: "no" } },
  };
  for (const [name, said] of Object.entries(cases)) {
    await t.test(name, (t) => both(t, {
      extensions: [example("custom-compaction.ts")], models,
      answer: () => scripted([({ api }) => api === "google", said], ["<conversation>", { text: "A summary." }], [() => true, { text: "Well." }]),
    }, talk));
  }
});

/// The published packages, and what examples need.
const installed = join(packages, "extension-targets/node_modules");

const withoutAddress = (record) => JSON.parse(JSON.stringify(record, (name, value) => (name === "baseUrl" ? undefined : value)));

test("custom-provider-anthropic", async (t) => {
  const what = {
    copies: { "agent/extensions/custom-provider-anthropic": example("custom-provider-anthropic") },
    links: { "agent/extensions/custom-provider-anthropic/node_modules": installed },
    // The address that the extension has for itself, and that of the user, are both led to the model of the test.
    models: (url) => ({ "custom-anthropic": { baseUrl: url } }),
    env: (_, at) => ({ NODE_OPTIONS: `--import=${at("redirect.mjs")}` }),
    files: { "redirect.mjs": (url) => `
      let inner = globalThis.fetch;
      const fetch = (target, ...more) => inner(typeof target === "string" ? target.replace("https://api.anthropic.com", ${JSON.stringify(url)}) : target, ...more);
      // Programs put another one in its place.
      Object.defineProperty(globalThis, "fetch", { configurable: true, get: () => fetch, set: (value) => (inner = value) });
    ` },
    wanted: [{ why: "agentd lets the user's models.json say where a provider is, in pi the extension decides", change: (record) => (record.command === "set_model" || record.command === "get_state" ? withoutAddress(record) : record) },
      { why: "agentd has one text for an answer that was aborted", change: (record) => JSON.parse(JSON.stringify(record).replaceAll('"Request was aborted."', '"Request was aborted"')) }],
  };
  const model = { type: "set_model", provider: "custom-anthropic", modelId: "claude-sonnet-4-5" };
  const answer = () => scripted(
    [["go", 0], { thinking: "I think.", text: "I look.", calls: [call("toolu_1", "bash", { command: "echo hi" })], usage: { input: 20, output: 9 } }],
    ["wait", () => ({ text: "I begin.", hold: new Promise(() => {}) })],
    ["fail", { fail: { status: 400, message: "not that" } }],
    [() => true, { text: "Done." }],
  );
  await t.test("with a key", (t) => both(t, { ...what, answer, env: (...of) => ({ ...what.env(...of), CUSTOM_ANTHROPIC_API_KEY: "key" }) }, async (place) => {
    const client = place.start();
    const { models } = await client.unrecorded({ type: "get_available_models" });
    await client.done(model);
    await client.done({ type: "set_thinking_level", level: "low" });
    await client.prompt("go");
    const update = client.event((record) => record.assistantMessageEvent?.type === "text_delta");
    await client.done({ type: "prompt", message: "wait" });
    await update;
    await client.done({ type: "abort" });
    await client.prompt("fail");
    await client.prompt("on");
    await client.done({ type: "get_session_stats" });
    const [first] = place.server.requests;
    return [models.filter((model) => model.provider === "custom-anthropic").map((model) => ({ ...model, baseUrl: "" })),
      first.headers["x-api-key"], first.body.thinking];
  }));
  await t.test("with the login of a user", (t) => both(t, {
    ...what, answer,
    files: { ...what.files, "agent/auth.json": JSON.stringify({ "custom-anthropic": { type: "oauth", access: "sk-ant-oat-1", refresh: "r", expires: 4102444800000 } }) },
  }, async (place) => {
    const client = place.start(["--model", "custom-anthropic/claude-opus-4-5"]);
    await client.prompt("go");
    await client.done({ type: "get_state" });
    const [first] = place.server.requests;
    return [first.headers.authorization, first.headers["x-app"], first.body.tools.map((tool) => tool.name).sort()];
  }));
  await t.test("without either there is none of its models", (t) => both(t, { ...what, answer }, async (place) => {
    const client = place.start();
    await client.send(model);
  }));
});

/// Without what an aborted child said.
const withoutLastWords = (record) => JSON.parse(JSON.stringify(record, (name, value) => {
  if (name === "details" || name === "durationMs") return undefined;
  return typeof value === "string" && /^(Agent|Operation|Request was|This operation was) aborted/.test(value) ? "Aborted" : value;
}));

test("subagent", async (t) => {
  const agent = (name, more) => `---\nname: ${name}\ndescription: The ${name}\n${more}---\nYou are the ${name}.\n`;
  const what = {
    extensions: [example("subagent")],
    copies: { "agent/prompts": example("subagent/prompts") },
    files: { "agent/agents/helper.md": agent("helper", "tools: bash, read\n"), "agent/agents/other.md": agent("other", "model: fake/two\n") },
  };
  const steps = (...more) => () => scripted(
    ...more,
    ["Task: look", { text: "Seen.", usage: { input: 7, output: 3 } }],
    [["Task: run", 0], { calls: [call("b1", "bash", { command: "echo from the child" })] }],
    [["Task: run", 1], { text: "It ran." }],
    ["Task: fail", { fail: { status: 400, message: "not that" } }],
    [() => true, { text: "Done." }],
  );
  const calls = (...list) => ["go", ({ results }) => (results < list.length ? { calls: [call(`c${results}`, "subagent", list[results])] } : { text: "Done." })];

  await t.test("one after the other", (t) => both(t, {
    ...what, answer: steps(calls(
      { agent: "helper", task: "run it" }, { agent: "nobody", task: "look" }, { agent: "other", task: "fail" },
      { chain: [{ agent: "helper", task: "look at it" }, { agent: "other", task: "look again: {previous}" }] },
    )),
  }, async (place) => {
    const client = place.start();
    await client.done({ type: "get_commands" });
    await client.prompt("go");
    await client.done({ type: "get_session_stats" });
  }));

  await t.test("in parallel", (t) => both(t, {
    ...what, answer: steps(calls({ tasks: [1, 2, 3, 4, 5].map((number) => ({ agent: number % 2 ? "helper" : "other", task: `look at ${number}` })) })),
    inParallel: true,
    wanted: [{ why: "the order of what children say is a matter of time", change: (record) => (record.type === "tool_execution_update" ? undefined : record) }],
  }, async (place) => {
    const client = place.start();
    await client.prompt("go");
  }));

  await t.test("an abort ends the children", (t) => both(t, {
    ...what,
    // The child of agentd says what became of it, that of pi nothing.
    masks: [[/Error: Request was aborted\n\nAssistant output: I begin\.|Error: Subagent was aborted/g, "<aborted>"]],
    wanted: [{ why: "an agent of agentd that is told to end says what it has so far; a tool that takes long to stop is given up", change: (record) => (record.type === "tool_execution_update" ? undefined : withoutLastWords(record)) }],
    answer: steps(["Task: wait", () => ({ text: "I begin.", hold: new Promise(() => {}) })], calls({ agent: "helper", task: "wait for ever" })),
  }, async (place) => {
    const client = place.start();
    const asked = place.server.next((asked) => asked.prompt.includes("Task: wait"));
    await client.done({ type: "prompt", message: "go" });
    await (await asked).spoken;
    await client.done({ type: "abort" });
    // The child is gone, and its connection with it.
    await (await asked).closed;
    await client.prompt("well");
  }));
});
