// Conversations over every provider API that the mock server @copilotkit/aimock speaks: what clients are told, what the session file
// keeps, and what the server gets.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { home, packages } from "../node/support.mjs";
import { connect } from "../node/client.mjs";
import { apis } from "./apis.mjs";
import { answers, calls, text, thinking } from "./events.mjs";
import { record } from "./proxy.mjs";

const require = createRequire(join(packages, "providers/package.json"));
const { LLMock } = await import(pathToFileURL(require.resolve("@copilotkit/aimock")));

/// The image that is asked about: one red pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const key = "right-key-1234";
/// Token counts, by the names of every API.
const usage = (input, output) => ({
  prompt_tokens: input, completion_tokens: output, input_tokens: input, output_tokens: output,
  promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output,
});
const file = (path, id) => ({ name: "read", arguments: JSON.stringify({ path }), id });
/// Ids that every API allows (Mistral wants nine letters and digits).
const ids = ["callAAAA1", "callBBBB2"];
const long = "word ".repeat(400);

function conversation(mock, overflow) {
  mock.on({ userMessage: "hello" }, { content: "Hello back.", reasoning: "A greeting.", usage: usage(20, 4) });
  mock.on({ userMessage: "both files", hasToolResult: false }, { content: "Reading both.", toolCalls: [file("a.txt", ids[0]), file("b.txt", ids[1])] });
  mock.on({ userMessage: "both files", hasToolResult: true }, { content: "One and two." });
  mock.on({ userMessage: "only call", hasToolResult: false }, { toolCalls: [file("a.txt", "callCCCC3")], reasoning: "Look first." });
  mock.on({ userMessage: "only call", hasToolResult: true }, { content: "It says one." });
  mock.on({ userMessage: "the picture" }, { content: "A red pixel." });
  mock.on({ userMessage: "too often", sequenceIndex: 0 }, { error: { message: "Rate limit reached", type: "rate_limit_error", code: "rate_limit_exceeded" }, status: 429, retryAfter: 1 });
  mock.on({ userMessage: "too often" }, { content: "Now you may." });
  mock.on({ userMessage: "cut" }, { content: "No more than th", finishReason: "length" });
  const { status, ...error } = overflow;
  mock.on({ userMessage: "too long", sequenceIndex: 0 }, { error, status });
  mock.on({ userMessage: "too long" }, { content: "Now it fits." });
  // Behind the others: where turns have to alternate, the next prompt is sent in one message with the one whose answer was aborted.
  mock.on({ userMessage: "slowly" }, { content: long }, { latency: 20, chunkSize: 5 });
  // Summaries.
  mock.on({}, { content: "They talked." });
}

/// A home with a provider of the API at `url`, and one with the wrong key.
function configured(t, row, url) {
  const own = home(t, { defaultProvider: "right", defaultModel: "model", defaultThinkingLevel: "low", compaction: { keepRecentTokens: 20 } });
  const provider = (apiKey) => ({
    api: row.api, baseUrl: url + row.at, apiKey,
    models: [{ id: "model", reasoning: true, input: ["text", "image"], contextWindow: 200000, maxTokens: 8000 }],
  });
  writeFileSync(own.at("agent/models.json"), JSON.stringify({ providers: { right: provider(row.key ?? key), wrong: provider(row.wrongKey ?? "wrong-key-5678") } }));
  writeFileSync(own.at("project/a.txt"), "one\n");
  writeFileSync(own.at("project/b.txt"), "two\n");
  own.env = { ...own.env, ...row.env };
  return own;
}

/// The entries of the only session of a home.
function entries(own) {
  const sessions = own.at("agent/sessions");
  const files = readdirSync(sessions, { recursive: true }).filter((name) => name.endsWith(".jsonl"));
  assert.equal(files.length, 1, String(files));
  return readFileSync(join(sessions, files[0]), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
}

for (const row of apis) {
  describe(row.api, () => {
    test("a conversation", async (t) => {
      const mock = new LLMock({ port: 0, logLevel: "silent", auth: { apiKeys: [row.key ?? key] } });
      conversation(mock, row.overflow);
      const proxy = await record(await mock.start(), row.rewrite);
      t.after(async () => {
        await proxy.stop();
        await mock.stop();
      });
      const own = configured(t, row, proxy.url);
      const client = connect(own);
      const ask = async (message, more) => {
        const events = [];
        const stop = client.listen((event) => events.push(event));
        await client.prompt(message, more);
        stop();
        return { events, said: answers(events) };
      };

      await t.test("text and thinking", async () => {
        const { said: [answer] } = await ask("hello");
        assert.equal(text(answer), "Hello back.");
        assert.equal(thinking(answer), row.thinks ? "A greeting." : "");
        assert.equal(answer.stopReason, "stop");
        assert.deepEqual([answer.usage.input, answer.usage.output], row.usage ?? [20, 4]);
        assert.deepEqual([answer.api, answer.provider, answer.model], [row.api, "right", "model"]);
      });

      await t.test("two calls at once", async () => {
        const { events, said } = await ask("both files");
        assert.equal(said.length, 2);
        assert.equal(said[0].stopReason, "toolUse");
        assert.equal(text(said[0]), "Reading both.");
        assert.deepEqual(calls(said[0]).map((call) => [call.name, call.arguments]), [["read", { path: "a.txt" }], ["read", { path: "b.txt" }]]);
        assert.equal(new Set(calls(said[0]).map((call) => call.id)).size, 2);
        assert.equal(text(said[1]), "One and two.");
        const results = events.filter((event) => event.type === "message_end" && event.message.role === "toolResult");
        assert.deepEqual(results.map(({ message }) => message.toolCallId).sort(), calls(said[0]).map((call) => call.id).sort());
        const sent = JSON.stringify(proxy.requests.at(-1).body);
        assert.ok(sent.includes("one\\n") && sent.includes("two\\n"), "the results are sent");
      });

      await t.test("a call without a text", async () => {
        const { said } = await ask("only call");
        assert.deepEqual(said.map((answer) => answer.stopReason), ["toolUse", "stop"]);
        assert.deepEqual([text(said[0]), text(said[1])], ["", "It says one."]);
      });

      await t.test("an image", async () => {
        const { said: [answer] } = await ask("the picture", { images: [{ type: "image", data: pixel, mimeType: "image/png" }] });
        assert.equal(text(answer), "A red pixel.");
        assert.ok(JSON.stringify(proxy.requests.at(-1).body).includes(pixel.slice(0, 40)), "the image is sent");
      });

      await t.test("the output limit", async () => {
        const { said: [answer] } = await ask("cut");
        assert.deepEqual([answer.stopReason, text(answer)], [row.cut ?? "length", "No more than th"]);
      });

      await t.test("an abort", async () => {
        const events = [];
        let asked;
        const stop = client.listen((event) => {
          events.push(event);
          if (event.assistantMessageEvent?.type === "text_delta") asked ??= client.done({ type: "abort" });
        });
        await client.prompt("slowly");
        stop();
        await asked;
        const [answer] = answers(events);
        assert.equal(answer.stopReason, "aborted");
        const came = text(answer);
        assert.ok(came.length > 0 && came.length < long.length && long.startsWith(came), came);
        await proxy.left();
      });

      await t.test("a rate limit", async () => {
        const { events, said } = await ask("too often");
        assert.equal(text(said.at(-1)), "Now you may.");
        const retry = events.find((event) => event.type === "auto_retry_start");
        assert.ok(retry?.errorMessage.includes("429") && retry.errorMessage.includes("Rate limit reached"), JSON.stringify(retry));
      });

      await t.test("too long a prompt", async () => {
        const { events, said } = await ask("too long");
        const begun = events.find((event) => event.type === "compaction_start");
        assert.equal(begun?.reason, "overflow", JSON.stringify(events.map((event) => event.type)));
        assert.equal(text(said.at(-1)), "Now it fits.");
        assert.ok(!events.some((event) => event.type === "auto_retry_start"), "the same request is not sent again");
      });

      await t.test("a wrong key", async () => {
        const before = proxy.requests.length;
        await client.done({ type: "set_model", provider: "wrong", modelId: "model" });
        const { events, said: [answer] } = await ask("hello");
        assert.equal(answer.stopReason, "error");
        assert.ok(answer.errorMessage.includes("401") && answer.errorMessage.includes("Invalid API key"), answer.errorMessage);
        assert.ok(!events.some((event) => event.type === "auto_retry_start"), "a wrong key stays wrong");
        assert.equal(proxy.requests.length, before + 1);
      });

      await t.test("what the server got and what the file keeps", async () => {
        await client.end();
        for (const request of proxy.requests) {
          assert.match(request.path, row.path);
          assert.equal(request.method, "POST");
          assert.match(request.headers["user-agent"] ?? "", /^agentd\//);
          row.legal(request.body);
        }
        assert.ok(proxy.requests.filter((request) => request.status >= 400).length <= 3, "429, overflow and 401; nothing else was refused");
        const kept = entries(own).filter((entry) => entry.type === "message").map((entry) => entry.message);
        const open = new Set();
        for (const message of kept) {
          if (message.role === "assistant") for (const call of calls(message)) open.add(call.id);
          if (message.role === "toolResult") assert.ok(open.delete(message.toolCallId));
        }
        assert.equal(open.size, 0);
        const aborted = kept.find((message) => message.stopReason === "aborted");
        assert.ok(long.startsWith(text(aborted)));
        assert.ok(!JSON.stringify(entries(own)).includes(row.key ?? key), "no key in the file");
      });
    });
  });
}
