/** What the main thread and the connection's thread share. */
import type { MessagePort } from "node:worker_threads";

/** Indexes of the shared counters (Int32). Counters wrap; only differences are meaningful. */
export const COUNTER = {
  /** Messages that the connection's thread has posted. The main thread waits on it. */
  posted: 0,
  /** KiB, rounded up per line, that the connection's thread has posted. */
  receivedKiB: 1,
  /** KiB of posted lines that the main thread has taken. */
  takenKiB: 2,
  /** 1 while the connection's thread has stopped reading. */
  paused: 3,
  /** KiB that the main thread has handed over for writing. */
  handedKiB: 4,
  /** KiB that were written to the connection. The main thread waits on it. */
  writtenKiB: 5,
  /** 1 after the other side closed the connection or it broke. */
  ended: 6,
} as const;

export const COUNTERS = 8;

/** Stop reading from the connection while the main thread owes this much. */
export const MAX_RECEIVED_KIB = 16 * 1024;

/** Stop the main thread while this much is unwritten, until half of it is written. */
export const MAX_UNWRITTEN_KIB = 32 * 1024;

/** Longest line before the greeting told the limit: the greeting carries an environment at most. */
export const MAX_GREETING_BYTES = 16 * 1024 * 1024;

export function kib(bytes: number): number {
  return (bytes >> 10) + 1;
}

/** File descriptors of the connection; the same one twice is a socket in both directions. */
export interface Descriptors {
  input: number;
  output: number;
}

/** What the connection's thread is started with. */
export interface WorkerStart {
  counters: SharedArrayBuffer;
  /** The way to the main thread. */
  port: MessagePort;
  /** Where the records come from and go to. */
  descriptors: Descriptors;
}

/** Messages of the main thread. */
export type ToWorker = string | { maxLineBytes: number } | { resume: true };

/** Messages of the connection's thread: a line, or the reason why there are no more. */
export type FromWorker = string | { end: true } | { violation: string };
