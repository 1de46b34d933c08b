// Lines out of bytes, however they are cut.
import assert from "node:assert/strict";
import { test } from "node:test";

import { AgentdError, LineSplitter } from "agentd-client";

/** The lines of chunks that are cut at every `size` bytes. */
function lines(text, size, splitter = new LineSplitter()) {
  const bytes = Buffer.from(text);
  const found = [];
  for (let at = 0; at < bytes.length; at += size) found.push(...splitter.push(bytes.subarray(at, at + size)));
  return { found, isInside: splitter.isInside };
}

test("characters survive being split, whatever the chunks are", () => {
  const text = '{"a":"ä€😀"}\n{"b":"\u2028\u2029"}\n';
  for (let size = 1; size <= Buffer.byteLength(text); size += 1) {
    assert.deepEqual(lines(text, size), { found: ['{"a":"ä€😀"}', '{"b":"\u2028\u2029"}'], isInside: false }, `${size}`);
  }
});

test("one CR before the LF is dropped, others stay; empty lines are left out", () => {
  for (const size of [1, 2, 3, 100]) {
    assert.deepEqual(lines("a\r\nb\r\r\n\n\r\nc\rd\n", size).found, ["a", "b\r", "c\rd"], `${size}`);
  }
});

test("a line without an end is kept for later", () => {
  const splitter = new LineSplitter();
  assert.deepEqual([...splitter.push(Buffer.from("a\nb"))], ["a"]);
  assert.equal(splitter.isInside, true);
  assert.deepEqual([...splitter.push(Buffer.from("c\n"))], ["bc"]);
  assert.equal(splitter.isInside, false);
});

test("a line of 32 MiB in small chunks comes whole", () => {
  const long = "x".repeat(32 << 20);
  const { found } = lines(`${long}\nshort\n`, 4096);
  assert.equal(found.length, 2);
  assert.equal(found[0].length, long.length);
  assert.equal(found[1], "short");
});

test("a longer line than allowed is refused", () => {
  const tooLarge = (error) => error instanceof AgentdError && error.code === "too_large";
  assert.throws(() => lines("123456", 1, new LineSplitter(5)), tooLarge);
  assert.deepEqual(lines("12345\n", 1, new LineSplitter(5)).found, ["12345"]);
});
