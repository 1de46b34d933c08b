/** Streams of events that end in a result. */
import type { AssistantMessage, AssistantMessageEvent } from "./types.ts";

/** A queue of events that can be iterated once while it grows, and the promise of its result. */
export class EventStream<T, R = T> implements AsyncIterable<T> {
  #queue: T[] = [];
  #waiting: ((result: IteratorResult<T>) => void)[] = [];
  protected done = false;
  readonly #isComplete: (event: T) => boolean;
  readonly #extractResult: (event: T) => R;
  readonly #final: Promise<R>;
  #resolve!: (result: R) => void;

  constructor(isComplete: (event: T) => boolean, extractResult: (event: T) => R) {
    this.#isComplete = isComplete;
    this.#extractResult = extractResult;
    this.#final = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Adds an event. After the completing one, further events are dropped. */
  push(event: T): void {
    if (this.done) return;
    if (this.#isComplete(event)) {
      this.done = true;
      this.#resolve(this.#extractResult(event));
    }
    const waiting = this.#waiting.shift();
    if (waiting) waiting({ value: event, done: false });
    else this.#queue.push(event);
    if (this.done) this.#endWaiting();
  }

  /** Ends the stream without a completing event. */
  end(result?: R): void {
    this.done = true;
    if (result !== undefined) this.#resolve(result);
    this.#endWaiting();
  }

  #endWaiting(): void {
    for (const waiting of this.#waiting.splice(0)) waiting({ value: undefined, done: true });
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      const event = this.#queue.shift();
      if (event !== undefined) {
        yield event;
        continue;
      }
      if (this.done) return;
      const next = await new Promise<IteratorResult<T>>((resolve) => this.#waiting.push(resolve));
      if (next.done) return;
      yield next.value;
    }
  }

  result(): Promise<R> {
    return this.#final;
  }
}

function finalMessage(event: AssistantMessageEvent): AssistantMessage | undefined {
  if (event.type === "done") return event.message;
  return event.type === "error" ? event.error : undefined;
}

/** The stream of one answer. It notes in the final message how long the answer took. */
export class AssistantMessageEventStream extends EventStream<AssistantMessageEvent, AssistantMessage> {
  readonly #startedAt = Date.now();
  readonly #started = performance.now();

  constructor() {
    super(
      (event) => finalMessage(event) !== undefined,
      (event) => finalMessage(event) as AssistantMessage,
    );
  }

  override push(event: AssistantMessageEvent): void {
    if (this.done) return;
    const message = finalMessage(event);
    if (message) this.#time(message);
    super.push(event);
  }

  override end(result?: AssistantMessage): void {
    if (result && !this.done) this.#time(result);
    super.end(result);
  }

  /** A message that is older than the stream was begun elsewhere, so that its duration is unknown. */
  #time(message: AssistantMessage): void {
    if (message.durationMs !== undefined || message.timestamp < this.#startedAt) return;
    message.durationMs = Math.round(performance.now() - this.#started);
  }
}

export function createAssistantMessageEventStream(): AssistantMessageEventStream {
  return new AssistantMessageEventStream();
}
