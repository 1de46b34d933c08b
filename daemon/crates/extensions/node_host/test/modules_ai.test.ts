/** pi-ai: transcripts, JSON, validation, costs, failures, and requests through the daemon. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Comparison } from "./support/compare.ts";
import { ourModule, pickFunction } from "./support/modules.ts";
import { Random } from "./support/random.ts";
import { needsReference, referenceModule } from "./support/reference.ts";

const ours = ourModule("pi-ai");

type Json = Record<string, unknown>;

test("the system prompt and the tools follow the changes of the transcript", () => {
  const tool = (name: string): Json => ({ name, description: "", parameters: {} });
  const messages = [
    { role: "system", content: "base", sections: { a: "A", b: "B" }, toolsAdded: [tool("x"), tool("y")], timestamp: 1 },
    { role: "user", content: "hi", timestamp: 2 },
    { role: "system", content: "more", sections: { a: null, b: "B2" }, toolsRemoved: [{ name: "x" }], toolsAdded: [tool("z")], timestamp: 3 },
  ];
  assert.equal(pickFunction<(list: unknown) => string>(ours, "getCurrentSystemPrompt")(messages), "base\n\nmore\n\nB2");
  const tools = pickFunction<(list: unknown) => { name: string }[]>(ours, "getCurrentTools")(messages);
  assert.deepEqual(tools.map(({ name }) => name), ["y", "z"]);
  const collapsed = pickFunction<(context: unknown) => { messages: Json[] }>(ours, "collapseSystemMessages")({ messages });
  assert.deepEqual(collapsed.messages.map(({ role }) => role), ["system", "user"]);
});

function randomTool(random: Random): Json {
  return {
    name: random.pick(["a", "b", "c", "d"]),
    description: random.pick(["d0", "d1"]),
    parameters: { type: "object", x: random.below(2) },
    ...(random.chance(3) ? { label: "L" } : {}),
    ...(random.chance(4) ? { constrainedSampling: false } : {}),
  };
}

function randomSystemMessage(random: Random): Json {
  const sections = (): Json =>
    Object.fromEntries(random.list(2, () => [`s${random.below(3)}`, random.chance(3) ? null : `v${random.below(5)}`]));
  return {
    role: "system",
    content: random.pick<unknown>(["", "one", "two", [{ type: "text", text: "t" }], []]),
    ...(random.chance(2) ? { sections: sections() } : {}),
    ...(random.chance(2) ? { toolsAdded: random.list(2, () => randomTool(random)) } : {}),
    ...(random.chance(3) ? { toolsRemoved: [{ name: random.pick(["a", "b", "c"]) }] } : {}),
    timestamp: random.below(9),
  };
}

test("transcripts are read as in the reference", needsReference, () => {
  const random = new Random(11);
  const comparison = new Comparison(referenceModule("pi-ai"), ours);
  const replays = [
    "getCurrentSystemPrompt", "getCurrentTools", "getCurrentSystemMessage", "getInitialSystemMessage",
    "withoutInitialSystemMessage", "getDeclaredTools", "hasToolRedefinitions", "hasNonAdditiveToolChanges",
  ];
  for (let round = 0; round < 1000; round += 1) {
    const messages = random.list(5, () =>
      random.chance(2) ? randomSystemMessage(random) : { role: "user", content: `u${random.below(3)}`, timestamp: 1 },
    );
    for (const name of replays) comparison.same(name, messages);
    comparison.same("collapseSystemMessages", { messages });
    comparison.same("resolveTranscript", { messages }, random.chance(2));
    for (const support of ["none", "additions", "changes"]) comparison.same("resolveTranscriptTools", messages, support);
    const tools = random.pick<unknown>([undefined, [], [randomTool(random)]]);
    const systemPrompt = random.pick(["", "p", undefined]);
    comparison.same("createInitialSystemMessage", systemPrompt, tools);
    comparison.same("normalizeContext", { systemPrompt, messages, tools });
    comparison.same("getToolStateChanges", [randomTool(random)], [randomTool(random), randomTool(random)]);
    comparison.same("toToolDeclaration", randomTool(random));
    comparison.same("declarationsEqual", randomTool(random), randomTool(random));
    comparison.same("getSystemMessageText", randomSystemMessage(random));
  }
});

function randomValue(random: Random, depth: number): unknown {
  switch (random.below(depth > 3 ? 4 : 7)) {
    case 0:
      return (random.below(1000) - 500) / random.pick([1, 8]);
    case 1:
      return random.pick([true, false, null]);
    case 2:
    case 3:
      return random.pick(["", "a", 'hello "q"', "l\nb\té\\", "\ud83d\ude00x", "__proto__"]);
    case 4:
      return random.list(3, () => randomValue(random, depth + 1));
    default:
      return Object.fromEntries(random.list(3, () => [random.pick(["a", "b", "key", "x y", ""]), randomValue(random, depth + 1)]));
  }
}

interface Parser {
  append(text: string): unknown;
  snapshot(): unknown;
}

test("JSON that arrives in pieces is read as in the reference, after every piece", needsReference, () => {
  const random = new Random(12);
  const make = (exports: Json): Parser => new (exports.StreamingJsonParser as new () => Parser)();
  for (let round = 0; round < 1500; round += 1) {
    const text = JSON.stringify(randomValue(random, 0), null, random.chance(3) ? 1 : 0);
    const [theirs, own] = [make(referenceModule("pi-ai")), make(ours)];
    for (let at = 0; at < text.length; ) {
      const piece = text.slice(at, at + 1 + random.below(6));
      at += piece.length;
      assert.deepEqual(own.append(piece), theirs.append(piece), text);
      assert.deepEqual(own.snapshot(), theirs.snapshot(), text);
    }
  }
});

test("incomplete and malformed JSON is read as in the reference", needsReference, () => {
  const random = new Random(13);
  const comparison = new Comparison(referenceModule("pi-ai"), ours);
  const damage = ["", "\\d", "\n", "}", ",", "x", "\\u12", "]", ":", '"', "1.", "-", "e5", "tr"];
  for (let round = 0; round < 3000; round += 1) {
    const whole = JSON.stringify(randomValue(random, 0));
    const at = random.below(whole.length + 1);
    const broken = random.chance(2) ? whole.slice(0, at) : whole.slice(0, at) + random.pick(damage) + whole.slice(at);
    for (const name of ["parseStreamingJson", "repairJson", "parseToolCallArguments"]) comparison.same(name, broken);
  }
});

interface ArgumentsStream {
  readonly text: string;
  append(delta: string): Json;
  replace(text: string): { delta: string | undefined; arguments: Json };
  finish(): { arguments: Json; argumentsError?: string };
}

test("arguments of a tool call can be read while they arrive", () => {
  const stream = new (ours.ToolCallArgumentsStream as new () => ArgumentsStream)();
  assert.deepEqual(stream.append('{"pa'), {});
  assert.deepEqual(stream.append('th":"a/'), { path: "a/" });
  assert.deepEqual(stream.append('b","n":1'), { path: "a/b", n: 1 });
  assert.deepEqual(stream.replace('{"path":"a/b","n":12}'), { delta: "2}", arguments: { path: "a/b", n: 12 } });
  assert.deepEqual(stream.finish(), { arguments: { path: "a/b", n: 12 } });
  assert.equal(stream.replace("{").delta, undefined);
  assert.match(stream.finish().argumentsError ?? "", /Received arguments:\n\{$/);
});

test("a large array that stays open does not make reading quadratic", () => {
  const parser = new (ours.StreamingJsonParser as new () => Parser)();
  parser.append("[");
  const started = process.cpuUsage();
  for (let index = 0; index < 40000; index += 1) {
    parser.append(`${index},`);
    parser.snapshot();
  }
  const { user } = process.cpuUsage(started);
  // Copying the array for every element would take 800 million copies.
  assert.ok(user < 2_000_000, `${user} µs`);
  parser.append("1]");
  assert.equal((parser.snapshot() as unknown[]).length, 40001);
});

const SCHEMAS: [object | boolean, unknown[]][] = [
  [{ type: "number" }, ["", "5", [5], {}, "0x10", "Infinity", 1.5, null, true, " 5 "]],
  [{ type: "integer" }, [1.5, "1.5", "7", true, null]],
  [{ type: "string" }, [1, null, ["a"], false, {}]],
  [{ type: "boolean" }, ["false", "TRUE", "1", 1, 2, null, "yes", 0]],
  [{ type: "array", items: { type: "number" } }, ["1", ["1", "x"], null, {}, 5]],
  [{ type: "null" }, ["", 0, false, "null"]],
  [{ type: "string", minLength: 3, maxLength: 4 }, ["ab", "abcde"]],
  [{ type: "string", pattern: "^a" }, ["b"]],
  [{ type: "number", minimum: 3, maximum: 5 }, [1, 9, "4"]],
  [{ type: "number", exclusiveMinimum: 3, multipleOf: 2 }, [3, 5]],
  [{ type: "array", minItems: 1, maxItems: 2, uniqueItems: true }, [[], [1, 2, 3], [1, 1]]],
  [{ const: 3 }, ["3", 4]],
  [{ enum: [1, 2] }, ["1", 3]],
  [{ anyOf: [{ type: "number" }, { type: "null" }] }, ["5", null, "x"]],
  [{ anyOf: [{ const: "a" }, { const: "b" }] }, ["b", "c"]],
  [{ type: ["string", "null"] }, [5, null]],
  [{ oneOf: [{ type: "string" }, { type: "string" }] }, ["a"]],
  [{ allOf: [{ type: "string" }, { minLength: 2 }] }, ["a"]],
  [{ type: "object", additionalProperties: false, properties: { a: { type: "number" } } }, [{ a: "1", b: 2 }, {}]],
  [{ type: "object", properties: { k: { type: "integer" } }, required: ["k"] }, [{ k: "3" }, {}, "{}"]],
  [{ type: "object", additionalProperties: { type: "number" } }, [{ q: "1", r: "z" }]],
  [{ not: { type: "string" } }, ["a"]],
  [{ $ref: "#/$defs/q" }, ["a"]],
  [false, ["any"]],
  [{}, [null]],
];

test("arguments are coerced and rejected as in the reference", needsReference, () => {
  const comparison = new Comparison(referenceModule("pi-ai"), ours);
  for (const [schema, values] of SCHEMAS) {
    for (const required of [["x"], []]) {
      const tool = { name: "t", description: "", parameters: { type: "object", properties: { x: schema }, required } };
      for (const x of values) comparison.same("validateToolArguments", tool, { name: "t", arguments: { x } });
      comparison.same("validateToolArguments", tool, { name: "t", arguments: {} });
    }
  }
  comparison.same("validateToolCall", [], { name: "q", arguments: {} });
});

test("a validation error names the place and shows what was received", () => {
  const validate = pickFunction<(tool: unknown, call: unknown) => unknown>(ours, "validateToolArguments");
  const tool = { name: "t", description: "", parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } };
  assert.deepEqual(validate(tool, { name: "t", arguments: { n: "42" } }), { n: 42 });
  assert.throws(() => validate(tool, { name: "t", arguments: {} }), {
    message: 'Validation failed for tool "t":\n  - n: missing\n\nReceived arguments:\n{}',
  });
});

test("costs, levels and cache decisions are those of the reference", needsReference, () => {
  const random = new Random(14);
  const comparison = new Comparison(referenceModule("pi-ai"), ours);
  const levels = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
  const rates = (): Json => ({ input: random.below(9), output: random.below(20), cacheRead: random.below(3) / 10, cacheWrite: random.below(6) });
  for (let round = 0; round < 2000; round += 1) {
    const tiers = random.chance(2) ? { tiers: random.list(2, () => ({ inputTokensAbove: random.below(3000), ...rates() })) } : {};
    const usage = { input: random.below(3000), output: random.below(300), cacheRead: random.below(900), cacheWrite: 500, cacheWrite1h: random.below(400), cost: {} };
    comparison.same("calculateCost", { cost: { ...rates(), ...tiers } }, usage);
    const map = Object.fromEntries(levels.filter(() => random.chance(2)).map((level) => [level, random.chance(2) ? null : "v"]));
    const model = { reasoning: !random.chance(5), ...(random.chance(2) ? { thinkingLevelMap: map } : {}) };
    comparison.same("getSupportedThinkingLevels", model);
    comparison.same("clampThinkingLevel", model, random.pick([...levels, "bogus"]));
    const cached = { api: random.pick(["anthropic-messages", "openai-responses"]), promptCache: { short: 300 }, cost: rates() };
    comparison.same("evaluateCacheWarming", cached, random.pick([0, 1000, 100000]), random.pick(["idle", "streaming"]));
    comparison.same("isCacheWarmingReplayable", cached, random.pick([undefined, {}, { reasoning: "high" }]));
    comparison.same("getPromptCacheTtlMs", cached, random.pick([undefined, { cacheRetention: "long" }, { cacheRetention: "none" }]));
    comparison.same("getCacheWarmingDelayMs", random.below(400000));
    comparison.same("retryDelayMs", { baseDelayMs: random.below(3000) }, 1 + random.below(8));
  }
  for (const provider of ["openrouter", "nvidia", "opencode", "x"]) {
    for (const baseUrl of ["https://openrouter.ai/api", "https://opencode.ai/zen", "http://localhost"]) {
      for (const identity of [undefined, { attribution: { name: "q", url: "u", categories: ["c"] }, version: "3" }, { userAgent: "short" }]) {
        comparison.same("getIdentityHeaders", { provider, baseUrl }, identity);
        comparison.same("getOpenCodeSessionHeaders", { provider, baseUrl }, "s");
        comparison.same("mergeClientIdentity", identity, { version: "z" });
      }
    }
  }
});

test("keys are found in the variables of the reference", needsReference, () => {
  const comparison = new Comparison(referenceModule("pi-ai"), ours);
  const all = pickFunction<() => string[]>(referenceModule("pi-ai"), "getProviders")();
  const names = ["OPENAI", "ANTHROPIC", "AI_GATEWAY", "XAI", "XIAOMI", "ZAI", "TYPESAFE", "ZAI_CODING_CN", "XIAOMI_TOKEN_PLAN_CN", "XIAOMI_TOKEN_PLAN_AMS", "XIAOMI_TOKEN_PLAN_SGP", "GEMINI", "GROQ", "AZURE_OPENAI", "QWEN_TOKEN_PLAN", "MOONSHOT"];
  const env = Object.fromEntries(names.map((name) => [`${name}_API_KEY`, name]));
  for (const provider of all) {
    for (const variables of [{}, env, { ...env, ANTHROPIC_AUTH_TOKEN: "t", AWS_PROFILE: "p" }]) {
      comparison.same("getEnvApiKey", provider, variables);
      comparison.same("findEnvKeys", provider, variables);
    }
  }
});

function failed(errorMessage: string, provider = "p"): Json {
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: {} };
  return { role: "assistant", content: [], provider, stopReason: "error", errorMessage, usage };
}

test("error texts are told apart: too long, worth a retry, or neither", () => {
  const isOverflow = pickFunction<(message: Json, window?: number) => boolean>(ours, "isContextOverflow");
  const isRetryable = pickFunction<(message: Json) => boolean>(ours, "isRetryableAssistantError");
  const overflows = [
    "prompt is too long: 5 > 3", "context_length_exceeded", "This model's maximum context length is 8192 tokens",
    "413 status code", "input token count (5) exceeds the maximum number", "maximum prompt length is 5",
    "exceeds the available context size", "exceeded model token limit: 5", "Range of input length should be [1, 5]",
  ];
  for (const text of overflows) assert.ok(isOverflow(failed(text)), text);
  for (const text of ["Throttling error: Too many tokens", "rate limit: too many tokens", "400 status code (no body)", "ok"]) {
    assert.ok(!isOverflow(failed(text)), text);
  }
  assert.ok(isOverflow(failed("400 status code (no body)", "cerebras")));
  const usage = { input: 90, output: 0, cacheRead: 20, cacheWrite: 0 };
  assert.ok(isOverflow({ ...failed(""), stopReason: "stop", usage }, 100));
  assert.ok(!isOverflow({ ...failed(""), stopReason: "stop", usage }, 200));
  for (const text of ["429 rate limit", "overloaded_error", "ECONNRESET", "503", "stream ended before completion", "request timed out"]) {
    assert.ok(isRetryable(failed(text)), text);
  }
  for (const text of ["insufficient_quota", "billing hard limit", "invalid api key", "404 not found", "1308"]) {
    assert.ok(!isRetryable(failed(text)), text);
  }
});

test("a call is made again while it fails for reasons that pass", async () => {
  const retry = pickFunction<(...args: unknown[]) => Promise<Json>>(ours, "retryAssistantCall");
  const answers = [failed("503"), failed("503"), { ...failed(""), stopReason: "stop" }];
  const scheduled: number[] = [];
  const finished: unknown[] = [];
  const result = await retry(async () => answers.shift(), { enabled: true, maxRetries: 5, baseDelayMs: 1 }, undefined, {
    onRetryScheduled: (attempt: number) => void scheduled.push(attempt),
    onRetryFinished: (...args: unknown[]) => void finished.push(args),
  });
  assert.equal(result.stopReason, "stop");
  assert.deepEqual(scheduled, [1, 2]);
  assert.deepEqual(finished, [[true, 2, undefined]]);
});

test("waiting for a retry ends when the signal is aborted", async () => {
  const retry = pickFunction<(...args: unknown[]) => Promise<Json>>(ours, "retryAssistantCall");
  const controller = new AbortController();
  const policy = { enabled: true, maxRetries: 5, baseDelayMs: 60000 };
  const result = await retry(async () => failed("503"), policy, controller.signal, { onRetryScheduled: () => setImmediate(() => controller.abort()) });
  assert.equal(result.stopReason, "aborted");
});

type Stream = AsyncIterable<Json> & { result(): Promise<Json> };

test("a stream that is ended early ends its readers", async () => {
  const Stream = ours.AssistantMessageEventStream as new () => Stream & { push(event: Json): void; end(message?: Json): void };
  const stream = new Stream();
  const reading = (async () => {
    const types: unknown[] = [];
    for await (const event of stream) types.push(event.type);
    return types;
  })();
  stream.push({ type: "start" });
  stream.end({ ...failed(""), stopReason: "stop", timestamp: Date.now() + 1000 });
  stream.push({ type: "text_start" });
  assert.deepEqual(await reading, ["start"]);
  assert.equal(typeof (await stream.result()).durationMs, "number");
});

test("identifiers ascend within a millisecond", () => {
  const uuidv7 = pickFunction<(timestamp?: number) => string>(ours, "uuidv7");
  const ids = Array.from({ length: 2000 }, () => uuidv7());
  assert.deepEqual([...ids].sort(), ids);
  assert.equal(new Set(ids).size, ids.length);
  assert.match(uuidv7(1), /^00000000-0001-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.throws(() => uuidv7(-1), /must be an integer/);
});

test("schemas of string lists are plain enumerations", () => {
  const StringEnum = pickFunction<(values: string[], options?: object) => unknown>(ours, "StringEnum");
  assert.equal(JSON.stringify(StringEnum(["a", "b"], { description: "d", default: "a" })), '{"type":"string","enum":["a","b"],"description":"d","default":"a"}');
});
