/** The stream of events that `modelRegistry.stream` returns: an async iterable with the final message. */

export class EventStream<E, R> implements AsyncIterable<E> {
  private readonly queue: E[] = [];
  private waiting: (() => void) | undefined;
  private finished = false;
  private readonly final: Promise<R>;
  private settle: ((result: R) => void) | undefined;

  constructor() {
    this.final = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  push(event: E): void {
    if (this.finished) return;
    this.queue.push(event);
    this.wake();
  }

  /** Ends the stream. Later events are dropped. */
  end(result: R): void {
    if (this.finished) return;
    this.finished = true;
    this.settle?.(result);
    this.wake();
  }

  result(): Promise<R> {
    return this.final;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<E> {
    for (;;) {
      while (this.queue.length > 0) yield this.queue.shift() as E;
      if (this.finished) return;
      await new Promise<void>((resolve) => {
        this.waiting = resolve;
      });
    }
  }

  private wake(): void {
    this.waiting?.();
    this.waiting = undefined;
  }
}
