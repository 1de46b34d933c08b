/** The main thread's side of the connection: ordered records in, lines out, and waiting for an answer. */
import { MessageChannel, type MessagePort, receiveMessageOnPort, SHARE_ENV, Worker } from "node:worker_threads";
import type { DaemonRecord } from "../protocol/records.ts";
import { isObject } from "../protocol/records.ts";
import type { HostLink, Sorter } from "./host_link.ts";
import { COUNTER, COUNTERS, type Descriptors, type FromWorker, kib, MAX_UNWRITTEN_KIB, type ToWorker, type WorkerStart } from "./shared.ts";

/** Longest time that the end of the process waits for unwritten lines. */
const FLUSH_MS = 500;

export interface LinkEvents {
  /** The next record in order, from the event loop. */
  onRecord(record: DaemonRecord): void;
  /** The connection ended. Must end the process. */
  onEnd(): void;
  /** The daemon broke the protocol. Must end the process. */
  onViolation(message: string): void;
}

export class Link implements HostLink {
  private readonly counters = new Int32Array(new SharedArrayBuffer(COUNTERS * 4));
  private readonly port: MessagePort;
  private events: LinkEvents | undefined;
  /** Records that came in during waits, oldest first. */
  private inbox: DaemonRecord[] = [];
  private draining = false;

  /** Starts the connection's thread. What it receives waits until `start`. */
  constructor(workerFile: URL, descriptors: Descriptors) {
    const channel = new MessageChannel();
    this.port = channel.port1;
    const start: WorkerStart = { counters: this.counters.buffer as SharedArrayBuffer, port: channel.port2, descriptors };
    const worker = new Worker(workerFile, { workerData: start, transferList: [channel.port2], env: SHARE_ENV });
    worker.on("error", (error) => this.violation(`the connection's thread failed: ${error.message}`));
  }

  start(events: LinkEvents): void {
    this.events = events;
    this.port.on("message", (message: FromWorker) => this.receive(message));
  }

  setMaxLineBytes(maxLineBytes: number): void {
    this.post({ maxLineBytes });
  }

  /** Sends one line; `line` has no LF. Blocks while too much is unwritten. */
  send(line: string): void {
    const unwritten = Atomics.add(this.counters, COUNTER.handedKiB, kib(line.length + 1)) - Atomics.load(this.counters, COUNTER.writtenKiB);
    this.post(`${line}\n`);
    if ((unwritten | 0) > MAX_UNWRITTEN_KIB) this.waitUntilWritten(MAX_UNWRITTEN_KIB / 2, undefined);
  }

  /** Waits until everything is written, a moment at most. For the end of the process. */
  flush(): void {
    this.waitUntilWritten(0, Date.now() + FLUSH_MS);
  }

  /**
   * Blocks the thread until `sort` says that a record is the awaited one. Returns false after `timeoutMs`.
   * Records that are left for later keep their order.
   */
  wait(timeoutMs: number, sort: Sorter): boolean {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const seen = Atomics.load(this.counters, COUNTER.posted);
      const found = this.takePosted(sort);
      if (found) return true;
      const left = deadline - performance.now();
      if (left <= 0) return false;
      Atomics.wait(this.counters, COUNTER.posted, seen, left);
    }
  }

  private takePosted(sort: Sorter): boolean {
    for (;;) {
      const posted = receiveMessageOnPort(this.port);
      if (posted === undefined) return false;
      const record = this.accept(posted.message as FromWorker);
      if (record === undefined) continue;
      const verdict = sort(record);
      if (verdict === "awaited") return true;
      if (verdict === "later") this.postpone(record);
    }
  }

  private post(message: ToWorker): void {
    this.port.postMessage(message);
  }

  private waitUntilWritten(leftKiB: number, deadline: number | undefined): void {
    for (;;) {
      if (Atomics.load(this.counters, COUNTER.ended) === 1) return;
      const written = Atomics.load(this.counters, COUNTER.writtenKiB);
      if (((Atomics.load(this.counters, COUNTER.handedKiB) - written) | 0) <= leftKiB) return;
      const left = deadline === undefined ? Number.POSITIVE_INFINITY : deadline - Date.now();
      if (left <= 0) return;
      Atomics.wait(this.counters, COUNTER.writtenKiB, written, left);
    }
  }

  private receive(message: FromWorker): void {
    const record = this.accept(message);
    if (record === undefined) return;
    if (this.inbox.length > 0) this.postpone(record);
    else this.events?.onRecord(record);
  }

  private accept(message: FromWorker): DaemonRecord | undefined {
    if (typeof message !== "string") {
      if ("end" in message) this.events?.onEnd();
      else this.violation(message.violation);
      return undefined;
    }
    Atomics.add(this.counters, COUNTER.takenKiB, kib(message.length));
    if (Atomics.compareExchange(this.counters, COUNTER.paused, 1, 0) === 1) this.post({ resume: true });
    let record: unknown;
    try {
      record = JSON.parse(message);
    } catch {
      this.violation("agentd sent a line that is not JSON");
      return undefined;
    }
    if (!isObject(record) || typeof record["type"] !== "string") {
      this.violation("agentd sent a record without a type");
      return undefined;
    }
    return record as DaemonRecord;
  }

  private violation(message: string): void {
    if (this.events === undefined) throw new Error(message);
    this.events.onViolation(message);
  }

  private postpone(record: DaemonRecord): void {
    this.inbox.push(record);
    if (this.draining) return;
    this.draining = true;
    setImmediate(() => this.drain());
  }

  /** One record per turn of the event loop, so that what a record sets free runs before the next one. */
  private drain(): void {
    const record = this.inbox.shift();
    if (record !== undefined) this.events?.onRecord(record);
    if (this.inbox.length > 0) setImmediate(() => this.drain());
    else this.draining = false;
  }
}
