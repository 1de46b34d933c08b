/**
 * The thread that owns the connection to the daemon.
 *
 * It frames lines, and ends the process when the connection ends, even while the main thread is blocked.
 */
import { createReadStream, createWriteStream, fstatSync } from "node:fs";
import { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { workerData } from "node:worker_threads";
import { LineSplitter } from "./framing.ts";
import {
  COUNTER,
  type FromWorker,
  kib,
  MAX_GREETING_BYTES,
  MAX_RECEIVED_KIB,
  type ToWorker,
  type WorkerStart,
} from "./shared.ts";

/** Time for the main thread to end the process by itself, with its exit handlers. */
const EXIT_GRACE_MS = 100;

const start = workerData as WorkerStart;
const counters = new Int32Array(start.counters);
const port = start.port;

function open(): { input: Readable; output: Writable } {
  const { input, output } = start.descriptors;
  if (input !== output) return { input: openInput(input), output: openOutput(output) };
  const socket = new Socket({ fd: input, readable: true, writable: true, allowHalfOpen: true });
  return { input: socket, output: socket };
}

function isPipe(fd: number): boolean {
  const stat = fstatSync(fd);
  return stat.isSocket() || stat.isFIFO();
}

function openInput(fd: number): Readable {
  return isPipe(fd) ? new Socket({ fd, readable: true, writable: false }) : createReadStream("", { fd });
}

function openOutput(fd: number): Writable {
  return isPipe(fd) ? new Socket({ fd, readable: false, writable: true }) : createWriteStream("", { fd });
}

const { input, output } = open();
const splitter = new LineSplitter(MAX_GREETING_BYTES);
let ending = false;

function post(message: FromWorker): void {
  port.postMessage(message);
  Atomics.add(counters, COUNTER.posted, 1);
  Atomics.notify(counters, COUNTER.posted);
}

function end(message: FromWorker): void {
  if (ending) return;
  ending = true;
  input.pause();
  Atomics.store(counters, COUNTER.ended, 1);
  Atomics.notify(counters, COUNTER.writtenKiB);
  post(message);
  // `process.exit` of a thread ends the thread alone.
  setTimeout(() => process.kill(process.pid, "SIGKILL"), EXIT_GRACE_MS);
}

function owed(): number {
  return (Atomics.load(counters, COUNTER.receivedKiB) - Atomics.load(counters, COUNTER.takenKiB)) | 0;
}

function pauseIfBehind(): void {
  if (owed() <= MAX_RECEIVED_KIB) return;
  input.pause();
  Atomics.store(counters, COUNTER.paused, 1);
  // The main thread may have taken everything before it could see the flag.
  if (owed() <= MAX_RECEIVED_KIB) resume();
}

function resume(): void {
  if (ending) return;
  Atomics.store(counters, COUNTER.paused, 0);
  input.resume();
}

input.on("data", (chunk: Buffer) => {
  if (ending) return;
  try {
    splitter.push(chunk, (line) => {
      Atomics.add(counters, COUNTER.receivedKiB, kib(line.length));
      post(line);
    });
  } catch (error) {
    end({ violation: error instanceof Error ? error.message : String(error) });
    return;
  }
  pauseIfBehind();
});
input.on("end", () => end({ end: true }));
input.on("error", () => end({ end: true }));
output.on("error", () => end({ end: true }));

function write(line: string): void {
  const size = kib(line.length);
  output.write(line, () => {
    Atomics.add(counters, COUNTER.writtenKiB, size);
    Atomics.notify(counters, COUNTER.writtenKiB);
  });
}

port.on("message", (message: ToWorker) => {
  if (typeof message === "string") write(message);
  else if ("resume" in message) resume();
  else splitter.setMaxLineBytes(message.maxLineBytes);
});
