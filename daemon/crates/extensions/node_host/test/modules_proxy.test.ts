/** Model calls through a server: `streamProxy`, beside that of the reference. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { makeModules } from "./support/modules.ts";
import { needsReference, reference } from "./support/reference.ts";

type Any = Record<string, any>;

const usage = { input: 3, output: 4, cacheRead: 0, cacheWrite: 0, totalTokens: 7, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const model = { provider: "p", id: "m", api: "a", cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } };
const done = { type: "done", reason: "stop", usage };
const text = [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "Grüße, " }, { type: "text_delta", contentIndex: 0, delta: "Welt" }, { type: "text_end", contentIndex: 0, contentSignature: "s" }];

interface Scenario {
  /** What the server sends, in pieces of this many bytes. */
  events?: object[];
  bytes?: number;
  raw?: string;
  status?: number;
  /** The server does not end the answer, and the client gives up after its first event. */
  hangs?: boolean;
  options?: Any;
}

const scenarios: Record<string, Scenario> = {
  "text, in pieces of one byte": { events: [{ type: "start" }, ...text, done], bytes: 1 },
  "thinking, text and a call": {
    events: [
      { type: "start" }, { type: "thinking_start", contentIndex: 0 }, { type: "thinking_delta", contentIndex: 0, delta: "hm" }, { type: "thinking_end", contentIndex: 0, contentSignature: "t" },
      { type: "text_start", contentIndex: 1 }, { type: "text_delta", contentIndex: 1, delta: "yes" }, { type: "text_end", contentIndex: 1 },
      { type: "toolcall_start", contentIndex: 2, id: "c1", toolName: "add" }, { type: "toolcall_delta", contentIndex: 2, delta: '{"a":1,"b":"x' },
      { type: "toolcall_delta", contentIndex: 2, delta: 'y"}' }, { type: "toolcall_end", contentIndex: 2, toolCall: { type: "toolCall", id: "c1", name: "add", arguments: { a: 1, b: "xy" } } },
      { type: "done", reason: "toolUse", usage, providerThinkingLevel: "high" },
    ],
    options: { reasoning: "high", maxTokens: 5, headers: { "x-own": "1" }, apiKey: "not for the server" },
  },
  "an error of the model": { events: [{ type: "start" }, ...text, { type: "error", reason: "error", errorMessage: "overloaded", usage }] },
  "a refusal that says why": { status: 403, raw: '{"error":"no such user"}' },
  "a refusal that says nothing": { status: 502, raw: "<html>" },
  "an answer that breaks off": { events: [{ type: "start" }, ...text.slice(0, 2)] },
  "a delta that fits nothing": { events: [{ type: "start" }, { type: "thinking_delta", contentIndex: 0, delta: "x" }, done] },
  "the end of a call that never began": { events: [{ type: "start" }, { type: "toolcall_end", contentIndex: 0, toolCall: {} }, done] },
  "an event of a newer server": { events: [{ type: "start" }, { type: "moon_phase", contentIndex: 0 }, ...text, done] },
  "no JSON": { raw: "data: {\n\n" },
  "comments, and a last line without its end": { raw: `: ping\n\nevent: x\ndata: \ndata: ${JSON.stringify(done)}` },
  "an abort": { events: [{ type: "start" }, ...text.slice(0, 2)], hangs: true },
};

/** A server that answers as the scenario says, until the end of the test. */
async function serving(t: TestContext, scenario: Scenario, asked: Any[]): Promise<string> {
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const body = (await request.toArray()).join("");
    asked.push({ method: request.method, url: request.url, authorization: request.headers.authorization, type: request.headers["content-type"], body: JSON.parse(body) });
    response.writeHead(scenario.status ?? 200);
    const bytes = Buffer.from(scenario.raw ?? (scenario.events ?? []).map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    const length = scenario.bytes ?? Math.max(1, bytes.length);
    for (let at = 0; at < bytes.length; at += length) await new Promise((resolve) => response.write(bytes.subarray(at, at + length), resolve));
    if (!scenario.hangs) response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What the server was asked, the events as they were when they came, and the result. */
async function run(t: TestContext, modules: Any, scenario: Scenario): Promise<Any> {
  const asked: Any[] = [];
  const proxyUrl = await serving(t, scenario, asked);
  const controller = new AbortController();
  const context = { messages: [{ role: "user", content: "hi", timestamp: 1 }] };
  const stream = modules["@earendil-works/pi-agent-core"]["streamProxy"](model, context, { proxyUrl, authToken: "secret", signal: controller.signal, ...scenario.options });
  const events: Any[] = [];
  for await (const event of stream) {
    events.push(structuredClone(event));
    if (scenario.hangs) controller.abort();
  }
  const result = await stream.result();
  return JSON.parse(JSON.stringify({ asked, events, result }, (name, value) => (name === "timestamp" || name === "durationMs" ? 0 : value)));
}

for (const [name, scenario] of Object.entries(scenarios)) {
  test(`an answer by way of a server, as in the reference: ${name}`, needsReference, async (t) => {
    // Events show the message as it is when they are read: how far that is, is a matter of time in both.
    const comparable = ({ asked, events, result }: Any) => ({ asked, result, events: events.map(({ partial, ...rest }: Any) => rest) });
    assert.deepEqual(comparable(await run(t, makeModules(), scenario)), comparable(await run(t, reference as Any, scenario)));
  });
}

test("an answer by way of a server has all of its parts", async (t) => {
  const { asked, events, result } = await run(t, makeModules(), scenarios["thinking, text and a call"] as Scenario);
  assert.deepEqual(result.content, [
    { type: "thinking", thinking: "hm", thinkingSignature: "t" }, { type: "text", text: "yes" }, { type: "toolCall", id: "c1", name: "add", arguments: { a: 1, b: "xy" } },
  ]);
  assert.deepEqual([result.stopReason, result.usage.totalTokens, events.at(-1).type], ["toolUse", 7, "done"]);
  assert.deepEqual(asked[0].body.options, { reasoning: "high", maxTokens: 5, headers: { "x-own": "1" } });
  assert.equal(asked[0].authorization, "Bearer secret");
});

test("an answer by way of a server that is given up, refused or cut short says so", async (t) => {
  const ends = await Promise.all(["an abort", "a refusal that says why", "an answer that breaks off"].map((name) => run(t, makeModules(), scenarios[name] as Scenario)));
  assert.deepEqual(ends.map(({ result }) => [result.stopReason, result.errorMessage]), [
    ["aborted", "Request aborted by user"], ["error", "Proxy error: no such user"], ["error", "Connection closed by proxy server before the response completed"],
  ]);
  assert.equal(ends[2]?.["result"].content[0].text, "Grüße, ");
});
