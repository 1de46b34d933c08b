import { AgentdError } from "./error.js";

/** The number of unread events from which on the connection is not read any further. */
export const DEFAULT_HIGH_WATER_MARK = 1024;

/** The number of unread events at which they are dropped, where the connection has to be read for other reasons. */
const HARD_LIMIT = 100_000;

/** What a queue tells about itself. */
export interface QueueOwner {
  /** The queue has become full, or is not full any more. */
  fullnessChanged(queue: object, isFull: boolean): void;
  /** Nobody reads the queue any more. */
  left(queue: object): void;
}

/** Events that wait for their reader. It is read once, by one `for await`. */
export class EventQueue<T> implements AsyncIterableIterator<T> {
  #items: T[] = [];
  #first = 0;
  #waiting: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void }[] = [];
  #end: { error?: unknown } | undefined;
  #isFull = false;
  readonly #owner: QueueOwner;
  readonly #highWaterMark: number;

  constructor(owner: QueueOwner, highWaterMark: number = DEFAULT_HIGH_WATER_MARK) {
    this.#owner = owner;
    this.#highWaterMark = highWaterMark;
  }

  /** Adds an event. */
  push(item: T): void {
    if (this.#end) return;
    const reader = this.#waiting.shift();
    if (reader) {
      reader.resolve({ done: false, value: item });
      return;
    }
    this.#items.push(item);
    if (this.#size >= HARD_LIMIT) {
      this.#forget();
      this.finish({ error: new AgentdError("too_slow", `${HARD_LIMIT} events were not read, and are dropped.`) });
    } else if (this.#size >= this.#highWaterMark) {
      this.#setFull(true);
    }
  }

  /** Ends the queue after the events that it holds; with an error, by throwing that. */
  finish(end: { error?: unknown } = {}): void {
    if (this.#end) return;
    this.#end = end;
    this.#setFull(false);
    for (const reader of this.#waiting.splice(0)) this.#conclude(reader);
    this.#owner.left(this);
  }

  next(): Promise<IteratorResult<T>> {
    return new Promise((resolve, reject) => {
      if (this.#size > 0) {
        const value = this.#items[this.#first] as T;
        this.#first += 1;
        // What was read is let go in blocks: moving the rest at each event would be quadratic.
        if (this.#first > 256 && this.#first * 2 > this.#items.length) {
          this.#items = this.#items.slice(this.#first);
          this.#first = 0;
        }
        if (this.#size <= this.#highWaterMark / 2) this.#setFull(false);
        resolve({ done: false, value });
      } else if (this.#end) {
        this.#conclude({ resolve, reject });
      } else {
        this.#waiting.push({ resolve, reject });
      }
    });
  }

  /** Leaves the queue; its events are dropped. */
  return(): Promise<IteratorResult<T>> {
    this.#forget();
    if (this.#end) this.#end = {};
    else this.finish();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  get #size(): number {
    return this.#items.length - this.#first;
  }

  #forget(): void {
    this.#items = [];
    this.#first = 0;
  }

  #conclude(reader: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void }): void {
    const end = this.#end;
    // An error is thrown once; the iterator has ended after that.
    this.#end = {};
    if (end && "error" in end) reader.reject(end.error);
    else reader.resolve({ done: true, value: undefined });
  }

  #setFull(isFull: boolean): void {
    if (this.#isFull === isFull) return;
    this.#isFull = isFull;
    this.#owner.fullnessChanged(this, isFull);
  }
}
