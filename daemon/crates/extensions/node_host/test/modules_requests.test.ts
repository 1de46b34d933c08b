/** Model requests of extensions: through the daemon, or through an api that an extension registers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ourModule, pickFunction } from "./support/modules.ts";
import { FakeServices } from "./support/services.ts";

type Json = Record<string, unknown>;

const MODEL = { id: "m", provider: "p", api: "anthropic-messages", cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } };
const USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: {} };
const FINAL = { role: "assistant", content: [{ type: "text", text: "Hi" }], provider: "p", stopReason: "stop", usage: USAGE, timestamp: 1 };

type Stream = AsyncIterable<Json> & { result(): Promise<Json> };

test("a request goes to the daemon, and its events get their partial message back", async () => {
  const services = new FakeServices().on("model.stream", (_params, { onEvent }) => {
    onEvent?.({ type: "start" });
    onEvent?.({ type: "text_start", contentIndex: 0 });
    onEvent?.({ type: "text_delta", contentIndex: 0, delta: "H" });
    onEvent?.({ type: "text_delta", contentIndex: 0, delta: "i" });
    onEvent?.({ type: "text_end", contentIndex: 0, content: "Hi" });
    return FINAL;
  });
  const exports = ourModule("pi-ai", services);
  const stream = pickFunction<(...args: unknown[]) => Stream>(exports, "streamSimple")(
    MODEL,
    { systemPrompt: "be kind", messages: [{ role: "user", content: "hello", timestamp: 1 }] },
    { maxTokens: 5, onPayload: () => undefined },
  );
  const seen: unknown[] = [];
  for await (const event of stream) seen.push([event.type, ((event.partial as Json | undefined)?.content as Json[] | undefined)?.[0]?.text]);
  assert.deepEqual(seen, [
    ["start", undefined], ["text_start", ""], ["text_delta", "H"], ["text_delta", "Hi"], ["text_end", "Hi"], ["done", undefined],
  ]);
  assert.equal(((await stream.result()).content as Json[])[0]?.text, "Hi");
  const { params } = services.calls[0] as { params: Json };
  assert.equal(params.simple, true);
  assert.deepEqual(params.options, { maxTokens: 5 });
  assert.deepEqual((params.context as { messages: Json[] }).messages.map(({ role }) => role), ["system", "user"]);
  assert.ok(!("api" in params));
});

test("an adapter of one api names it, whatever the model says", async () => {
  const services = new FakeServices().on("model.stream", () => FINAL);
  const exports = ourModule("pi-ai", services);
  const api = pickFunction<() => { stream: (...args: unknown[]) => Stream }>(exports, "openAIResponsesApi")();
  await api.stream({ ...MODEL, api: "mine" }, { messages: [] }).result();
  await pickFunction<(...args: unknown[]) => Stream>(exports, "streamAnthropic")(MODEL, { messages: [] }).result();
  assert.deepEqual(services.calls.map(({ params }) => [params.api, params.simple]), [["openai-responses", false], ["anthropic-messages", false]]);
});

test("a request that the daemon refuses ends with an error message, not with a rejection", async () => {
  const exports = ourModule("pi-ai", new FakeServices());
  const message = await pickFunction<(...args: unknown[]) => Promise<Json>>(exports, "completeSimple")(MODEL, { messages: [] });
  assert.equal(message.stopReason, "error");
  assert.equal(message.errorMessage, "model.stream is not supported");
});

test("an aborted request says so", async () => {
  const controller = new AbortController();
  const services = new FakeServices().on(
    "model.stream",
    (_params, { signal }) => new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(new Error("withdrawn")))),
  );
  const exports = ourModule("pi-ai", services);
  const complete = pickFunction<(...args: unknown[]) => Promise<Json>>(exports, "complete")(MODEL, { messages: [] }, { signal: controller.signal });
  controller.abort();
  assert.equal((await complete).stopReason, "aborted");
});

test("an api that an extension registers is asked in the process", async () => {
  const services = new FakeServices();
  const exports = ourModule("pi-ai", services);
  const create = pickFunction<() => Stream & { push(event: unknown): void }>(exports, "createAssistantMessageEventStream");
  const streamSimple = (): Stream => {
    const stream = create();
    stream.push({ type: "start" });
    stream.push({ type: "done", reason: "stop", message: FINAL });
    return stream;
  };
  pickFunction<(provider: unknown, source: string) => void>(exports, "registerApiProvider")({ api: "mine", stream: streamSimple, streamSimple }, "me");
  const complete = pickFunction<(...args: unknown[]) => Promise<Json>>(exports, "completeSimple");
  assert.equal((await complete({ ...MODEL, api: "mine" }, { messages: [] })).stopReason, "stop");
  assert.deepEqual(services.calls, []);
  pickFunction<(source: string) => void>(exports, "unregisterApiProviders")("me");
  assert.equal((await complete({ ...MODEL, api: "mine" }, { messages: [] })).stopReason, "error");
});

test("the catalogue is the daemon's", () => {
  const services = new FakeServices();
  services.topics.models = { models: [MODEL, { ...MODEL, id: "i", type: "image", provider: "q" }] };
  const exports = ourModule("pi-ai", services);
  assert.deepEqual(pickFunction<() => string[]>(exports, "getProviders")(), ["p", "q"]);
  assert.equal(pickFunction<(provider: string, id: string) => unknown>(exports, "getModel")("p", "m"), MODEL);
  assert.deepEqual(pickFunction<(provider: string) => unknown[]>(exports, "getModels")("q"), []);
  assert.deepEqual(pickFunction<() => string[]>(exports, "getImageProviders")(), ["q"]);
});
