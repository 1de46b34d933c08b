import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePartialJson } from "../src/messages/partial_json.ts";
import { extension, FakeDaemon, type Json } from "./fake_daemon.ts";

const user = (text: string, timestamp: number) => ({ role: "user", content: [{ type: "text", text }], timestamp });
const LIST = [
  { m: "k1", v: user("one", 1) },
  { m: "k2", v: user("two", 2) },
  { m: "k3", v: user("three", 3) },
];
const KEYS = [{ m: "k1" }, { m: "k2" }, { m: "k3" }];

const TRANSFORMS: [string, string, Json][] = [
  ["nothing returned", "", {}],
  ["the same list returned", "return { messages: event.messages };", { value: { messages: KEYS } }],
  ["a filtered list", "return { messages: event.messages.filter((m) => m.timestamp !== 2) };", { value: { messages: [{ m: "k1" }, { m: "k3" }] } }],
  ["an added message", "return { messages: [...event.messages, { role: 'user', content: 'n', timestamp: 9 }] };", { value: { messages: [...KEYS, { v: { role: "user", content: "n", timestamp: 9 } }] } }],
  ["copies that are equal", "return { messages: structuredClone(event.messages) };", { value: { messages: KEYS } }],
  ["a copy with another text", "return { messages: event.messages.map((m) => m.timestamp === 1 ? { ...m, content: 'x' } : { ...m }) };", { value: { messages: [{ v: { role: "user", content: "x", timestamp: 1 } }, { m: "k2" }, { m: "k3" }] } }],
  ["a message removed in place", "event.messages.shift();", { event: { messages: [{ m: "k2" }, { m: "k3" }] } }],
  ["a message edited in place", "event.messages[1].content[0].text = 'edited';", { event: { messages: [{ m: "k1" }, { v: user("edited", 2) }, { m: "k3" }] } }],
];

test("transcripts come by reference, and go back by reference where they are untouched", async () => {
  const cases = TRANSFORMS.map(([, code], index) => `if (run === ${index}) { ${code} return; }`).join("\n");
  const daemon = await FakeDaemon.bound({ one: extension(`let run = -1; pi.on('context', (event) => { run++; ${cases} });`) });
  for (const [index, [name, , expected]] of TRANSFORMS.entries()) {
    const [returned] = await daemon.hook({ type: "context", messages: index === 0 ? LIST : KEYS });
    const { h: _h, ...rest } = returned ?? {};
    assert.deepEqual(rest, expected, name);
  }
  daemon.send({ type: "forget", m: ["k2"] });
  await assert.rejects(daemon.hook({ type: "context", messages: KEYS }), /Message k2 was not sent/);
  await daemon.stop();
});

test("messages without a key are messages, and go back whole", async () => {
  const body = "pi.on('context', (event) => event.messages[0].role !== 'user' || event.messages.length === 3 ? { messages: event.messages.slice(1) } : undefined);";
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  const list = LIST.map(({ v }) => ({ v }));
  assert.deepEqual((await daemon.hook({ type: "context", messages: list }))[0]?.["value"], { messages: list.slice(1) });
  const { h: _h, ...unchanged } = (await daemon.hook({ type: "context", messages: list.slice(1) }))[0] ?? {};
  assert.deepEqual(unchanged, {});
  await daemon.stop();
});

test("message lists in agent_end and turn_end are resolved", async () => {
  const body = "pi.on('agent_end', (event) => event.messages.map((m) => m.timestamp)); pi.on('turn_end', (event) => event.context);";
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  assert.deepEqual((await daemon.hook({ type: "agent_end", messages: LIST }))[0]?.["value"], [1, 2, 3]);
  const context = { contextEntries: [{ sourceEntry: { id: "e" }, messages: [{ m: "k1" }] }], llmMessages: [{ m: "k2" }], canContinue: true };
  const [returned] = await daemon.hook({ type: "turn_end", turnIndex: 0, context });
  assert.deepEqual(returned?.["value"], {
    contextEntries: [{ sourceEntry: { id: "e" }, messages: [LIST[0]?.v] }],
    llmMessages: [LIST[1]?.v],
    canContinue: true,
  });
  await daemon.stop();
});

test("a transcript of 5 MB crosses once", async () => {
  const daemon = await FakeDaemon.bound({ one: extension("pi.on('context', (event) => ({ messages: event.messages.slice(1) }));") });
  const messages = Array.from({ length: 500 }, (_, i) => ({ m: `big${i}`, v: user("y".repeat(10_000), i) }));
  await daemon.hook({ type: "context", messages });
  const [returned] = await daemon.hook({ type: "context", messages: messages.map(({ m }) => ({ m })) });
  assert.ok(JSON.stringify(returned).length < 20_000);
  assert.equal((returned?.["value"] as { messages: unknown[] }).messages.length, 499);
  await daemon.stop();
});

const start = (message: Json = {}) => ({ type: "message_start", message: { role: "assistant", content: [{ type: "text", text: "He" }], stopReason: "pending", ...message } });
const update = (event: Json, fields: Json = {}) => ({ type: "message_update", ...fields, assistantMessageEvent: event });

test("the message of a stream is rebuilt from its deltas", async () => {
  const body = "pi.on('message_start', () => {}); pi.on('message_update', (event) => ({ same: event.message === event.assistantMessageEvent.partial, message: event.message }));";
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  await daemon.hook(start({ provider: "p" }));
  const events: Json[] = [
    { type: "thinking_start", contentIndex: 0 },
    { type: "thinking_delta", contentIndex: 0, delta: "hm" },
    { type: "thinking_end", contentIndex: 0, content: "hmm" },
    { type: "text_start", contentIndex: 1 },
    { type: "text_delta", contentIndex: 1, delta: "Hel" },
    { type: "text_delta", contentIndex: 1, delta: "lo" },
    { type: "toolcall_start", contentIndex: 2, id: "c1", toolName: "bash" },
    { type: "toolcall_delta", contentIndex: 2, delta: '{"command":"ec' },
  ];
  let last: Json | undefined;
  for (const event of events) last = (await daemon.hook(update(event, { usage: { input: 1 } })))[0];
  assert.deepEqual(last?.["value"], {
    same: true,
    message: {
      role: "assistant",
      stopReason: "pending",
      provider: "p",
      usage: { input: 1 },
      content: [
        { type: "thinking", thinking: "hmm" },
        { type: "text", text: "Hello" },
        { type: "toolCall", id: "c1", name: "bash", arguments: { command: "ec" } },
      ],
    },
  });
  await daemon.stop();
});

test("deltas that are not waited for are handled in order, each with its own message", async () => {
  const body = `
    const seen = [];
    pi.on('message_start', () => {});
    pi.on('message_update', async (event) => { await new Promise((r) => setImmediate(r)); seen.push(event.message.content[0].text); });
    pi.on('message_end', () => seen);`;
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  await daemon.hook(start());
  await daemon.hook(update({ type: "text_start", contentIndex: 0 }));
  const running = [..."abcdefgh"].map((delta) => daemon.startHook(update({ type: "text_delta", contentIndex: 0, delta })));
  await Promise.all(running);
  const [returned] = await daemon.hook({ type: "message_end", message: { role: "assistant", content: [] } });
  assert.deepEqual(returned?.["value"], ["", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"]);
  await daemon.stop();
});

test("beginnings of JSON texts are read as far as they go", () => {
  const cases: [string, unknown][] = [
    ["", {}],
    ["{", {}],
    ['{"a"', {}],
    ['{"a":', {}],
    ['{"a":"x', { a: "x" }],
    ['{"a":"x\\', { a: "x" }],
    ['{"a":"x\\u00', { a: "x" }],
    ['{"a":1,', { a: 1 }],
    ['{"a":1,"b', { a: 1 }],
    ['{"a":[1,2', { a: [1, 2] }],
    ['{"a":[{"b":tr', { a: [{}] }],
    ['{"a":{"b":"c"},"d":[', { a: { b: "c" }, d: [] }],
    ['{"a":1}', { a: 1 }],
  ];
  for (const [text, value] of cases) assert.deepEqual(parsePartialJson(text), value, text);
});
