// Queues of events, and what they mean for the connection.
import assert from "node:assert/strict";
import { test } from "node:test";

import { EventQueue } from "../dist/event_queue.js";
import { Flow } from "../dist/flow.js";

function flow() {
  const made = { isPaused: false };
  made.flow = new Flow((isPaused) => { made.isPaused = isPaused; });
  return made;
}

test("a full queue stops reading until half of it is read", async () => {
  const made = flow();
  const queue = new EventQueue(made.flow, 4);
  for (const number of [0, 1, 2]) queue.push(number);
  assert.equal(made.isPaused, false);
  queue.push(3);
  assert.equal(made.isPaused, true);
  assert.equal((await queue.next()).value, 0);
  assert.equal(made.isPaused, true);
  assert.equal((await queue.next()).value, 1);
  assert.equal(made.isPaused, false);
});

test("a command without an answer keeps reading", async () => {
  const made = flow();
  const queue = new EventQueue(made.flow, 1);
  queue.push(0);
  made.flow.callsChanged(1);
  assert.equal(made.isPaused, false);
  made.flow.callsChanged(0);
  assert.equal(made.isPaused, true);
  await queue.return();
  assert.equal(made.isPaused, false);
});

test("a result that is awaited keeps reading", () => {
  const made = flow();
  new EventQueue(made.flow, 1).push(0);
  assert.equal(made.isPaused, true);
  const release = made.flow.hold();
  assert.equal(made.isPaused, false);
  release();
  assert.equal(made.isPaused, true);
});

test("events come before the error, which comes once", async () => {
  const queue = new EventQueue(flow().flow);
  queue.push(1);
  queue.finish({ error: new Error("gone") });
  assert.equal((await queue.next()).value, 1);
  await assert.rejects(queue.next(), /gone/);
  assert.equal((await queue.next()).done, true);
});

test("a reader that never comes is told that events were dropped", async () => {
  const queue = new EventQueue(flow().flow);
  for (let number = 0; number < 100_000; number += 1) queue.push(number);
  await assert.rejects(queue.next(), { code: "too_slow" });
});

test("readers that wait get the events in their order", async () => {
  const queue = new EventQueue(flow().flow);
  const readers = [queue.next(), queue.next(), queue.next()];
  queue.push(1);
  queue.push(2);
  queue.finish();
  assert.deepEqual((await Promise.all(readers)).map(({ value }) => value), [1, 2, undefined]);
});

test("many events are read in linear time and none is lost", async () => {
  const queue = new EventQueue(flow().flow, 200_000);
  for (let number = 0; number < 90_000; number += 1) queue.push(number);
  for (let number = 0; number < 90_000; number += 1) assert.equal((await queue.next()).value, number);
});
