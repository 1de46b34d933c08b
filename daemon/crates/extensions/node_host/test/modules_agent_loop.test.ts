/** `Agent` and its loops, and that they do what those of the reference do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeModules } from "./support/modules.ts";
import { needsReference, reference } from "./support/reference.ts";

type Any = Record<string, any>;

const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const model = { provider: "p", id: "m", api: "a", reasoning: true, input: ["text"], contextWindow: 1, maxTokens: 1 };

interface Answer {
  content?: Any[];
  stop?: string;
  error?: string;
  /** Waits until the request is given up. */
  hangs?: boolean;
}

const text = (value: string): Answer => ({ content: [{ type: "text", text: value }] });
const calls = (...list: { name?: string; args: object }[]): Answer => ({
  content: list.map(({ name = "add", args }, index) => ({ type: "toolCall", id: `t${index}`, name, arguments: args })),
  stop: "toolUse",
});

/** Answers one request after the other, and notes what was asked. */
function scripted(ai: Any, answers: Answer[], asked: Any[]) {
  return (_model: Any, context: Any, options: Any) => {
    const stream = ai["createAssistantMessageEventStream"]();
    const answer = answers.shift() ?? {};
    asked.push({ messages: structuredClone(context["messages"]), reasoning: options["reasoning"], apiKey: options["apiKey"] });
    const message = {
      role: "assistant", content: answer.content ?? [], api: "a", provider: "p", model: "m", usage, stopReason: answer.stop ?? "stop", timestamp: 1,
      ...(answer.error === undefined ? {} : { errorMessage: answer.error }),
    };
    const finish = (final: Any) => {
      const reason = final["stopReason"];
      stream.push(reason === "error" || reason === "aborted" ? { type: "error", reason, error: final } : { type: "done", reason, message: final });
      stream.end(final);
    };
    queueMicrotask(() => {
      stream.push({ type: "start", partial: { ...message, content: [] } });
      for (const [contentIndex, block] of (answer.content ?? []).entries()) {
        if (block["type"] === "text") stream.push({ type: "text_delta", contentIndex, delta: block["text"], partial: message });
      }
      if (answer.hangs) options["signal"].addEventListener("abort", () => finish({ ...message, stopReason: "aborted", errorMessage: "aborted" }));
      else finish(message);
    });
    return stream;
  };
}

const add = {
  name: "add", label: "Add", description: "adds",
  parameters: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
  async execute(_id: string, params: Any, _signal: unknown, onUpdate?: (partial: Any) => void) {
    onUpdate?.({ content: [{ type: "text", text: "half" }], details: {} });
    if (params["a"] === 9) throw new Error("nine");
    return { content: [{ type: "text", text: String(params["a"]) }], details: { n: params["a"] } };
  },
};
const user = (content: string) => ({ role: "user", content, timestamp: 1 });

interface Scenario {
  options?: Any;
  answers: Answer[];
  act?(agent: Any): Promise<unknown>;
}

const scenarios: Record<string, Scenario> = {
  "an answer": { answers: [text("yo")], options: { getApiKey: () => "k" } },
  "calls of tools, good and bad": { answers: [calls({ args: { a: 1 } }, { args: { a: 9 } }, { name: "none", args: {} }), text("done")] },
  "calls one after the other": { answers: [calls({ args: { a: 1 } }, { args: { a: 2 } }), text("done")], options: { toolExecution: "sequential" } },
  "a call that is blocked, and a result that is changed": {
    answers: [calls({ args: { a: 1 } }, { args: { a: 2 } }), {}],
    options: {
      beforeToolCall: async ({ args }: Any) => (args["a"] === 1 ? { block: true, reason: "no" } : undefined),
      afterToolCall: async () => ({ content: [{ type: "text", text: "after" }], isError: true }),
    },
  },
  "a failed answer": { answers: [{ stop: "error", error: "bad" }] },
  "messages in queues": {
    answers: [{}, {}, {}],
    act: async (agent) => {
      const prompt = agent["prompt"]("hi");
      agent["steer"](user("s1"));
      agent["steer"](user("s2"));
      agent["followUp"](user("f"));
      await prompt;
    },
  },
  "a second prompt": {
    answers: [{}],
    act: async (agent) => {
      const prompt = agent["prompt"]("hi");
      const second = await agent["prompt"]("x").catch((error: Error) => error.message);
      await prompt;
      return second;
    },
  },
  "going on from nothing": { answers: [], act: (agent) => agent["continue"]() },
  "going on from a message": {
    answers: [text("yo")],
    act: async (agent) => {
      agent["state"].messages = [user("first")];
      await agent["continue"]();
    },
  },
  "going on from an answer": {
    answers: [text("yo"), text("again")],
    act: async (agent) => {
      await agent["prompt"]("hi");
      const refused = await agent["continue"]().catch((error: Error) => error.message);
      agent["followUp"](user("more"));
      await agent["continue"]();
      return refused;
    },
  },
  "a stream function that throws": { answers: [], options: { streamFn: () => { throw new Error("boom"); } } },
  "an answer that is given up": {
    answers: [{ hangs: true }],
    act: async (agent) => {
      const prompt = agent["prompt"]("hi");
      agent["subscribe"]((event: Any) => event["type"] === "message_start" && event["message"].role === "assistant" && setImmediate(() => agent["abort"]()));
      await prompt;
    },
  },
  "a tool that ends the run": {
    answers: [calls({ args: { a: 1 } }), {}],
    options: { tools: [{ ...add, execute: async () => ({ content: [], details: {}, terminate: true }) }] },
  },
  "a turn after which it ends": { answers: [calls({ args: { a: 1 } }), {}], options: { finishTurn: () => ({ action: "end" }) } },
  "a turn after which it goes on": { answers: [text("one"), text("two")], options: { finishTurn: ({ message }: Any) => (message.content[0].text === "one" ? { action: "continue" } : undefined) } },
  "tools that change": {
    answers: [text("one"), text("two")],
    act: async (agent) => {
      await agent["prompt"]("hi");
      agent["state"].tools = [{ ...add, name: "other" }];
      await agent["prompt"]("again");
    },
  },
  "a conversation that begins anew": {
    answers: [text("one"), text("two")],
    act: async (agent) => {
      await agent["prompt"]("hi");
      agent["reset"]();
      await agent["prompt"]("again");
    },
  },
  "a context that is transformed": { answers: [text("yo")], options: { transformContext: async (messages: Any[]) => messages.slice(-1), convertToLlm: (messages: Any[]) => messages } },
};

/** What an agent did: its events, what its model was asked, and how it is afterwards. */
async function run(modules: Any, scenario: Scenario) {
  const core = modules["@earendil-works/pi-agent-core"];
  const { tools = [add], ...options } = scenario.options ?? {};
  const [events, asked]: [Any[], Any[]] = [[], []];
  const streamFn = scripted(modules["@earendil-works/pi-ai"], structuredClone(scenario.answers), asked);
  const agent = new core["Agent"]({ initialState: { systemPrompt: "Be.", model, thinkingLevel: "high", tools }, streamFn, ...options });
  agent.subscribe((event: Any) => void events.push(structuredClone(event)));
  const act = scenario.act ?? ((it: Any) => it["prompt"]("hi"));
  const given = await act(agent).catch((error: Error) => `rejected: ${error.message}`);
  const { messages, isStreaming, errorMessage, systemPrompt, pendingToolCalls } = agent.state;
  const state = { messages, isStreaming, errorMessage, systemPrompt, pending: [...pendingToolCalls] };
  return JSON.parse(JSON.stringify({ given, events, asked, state }, (name, value) => (name === "timestamp" || name === "durationMs" ? 0 : value)));
}

for (const [name, scenario] of Object.entries(scenarios)) {
  test(`an agent as in the reference: ${name}`, needsReference, async () => {
    assert.deepEqual(await run(makeModules(), scenario), await run(reference as Any, scenario));
  });
}

test("an agent asks its model, runs tools and tells of all of it", async () => {
  const { events, asked, state } = await run(makeModules(), scenarios["calls of tools, good and bad"] as Scenario);
  assert.deepEqual(events.map((event: Any) => event["type"]).filter((type: string) => !type.startsWith("message")), [
    "agent_start", "turn_start", "tool_execution_start", "tool_execution_start", "tool_execution_start", "tool_execution_end", "tool_execution_update", "tool_execution_update",
    "tool_execution_end", "tool_execution_end", "turn_end", "turn_start", "turn_end", "agent_end",
  ]);
  assert.equal(asked.length, 2);
  assert.deepEqual(state.messages.map(({ role }: Any) => role), ["system", "user", "assistant", "toolResult", "toolResult", "toolResult", "assistant"]);
});

test("loops give their events as a stream, and what was added", async () => {
  const modules: Any = makeModules();
  const core = modules["@earendil-works/pi-agent-core"];
  const config = { model, convertToLlm: (messages: Any[]) => messages };
  const stream = core["agentLoop"]([user("hi")], { messages: [] }, config, undefined, scripted(modules["@earendil-works/pi-ai"], [text("yo")], []));
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  assert.deepEqual(types, ["agent_start", "turn_start", "message_start", "message_end", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
  assert.deepEqual((await stream.result()).map(({ role }: Any) => role), ["user", "assistant"]);
});

test("a call runs through its checks and hooks without events", async () => {
  const { runToolCall } = (makeModules() as Any)["@earendil-works/pi-agent-core"];
  const call = (args: object) => ({ type: "toolCall", id: "1", name: "add", arguments: args });
  const options = { tools: [add], assistantMessage: {}, context: { messages: [] } };
  assert.equal((await runToolCall(call({ a: 3 }), options)).result.content[0].text, "3");
  assert.equal((await runToolCall(call({ a: "x" }), options)).isError, true);
  const blocked = await runToolCall(call({ a: 3 }), { ...options, beforeToolCall: async () => ({ block: true }) });
  assert.equal(blocked.isError, true);
});
