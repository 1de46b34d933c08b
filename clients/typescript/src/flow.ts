import type { QueueOwner } from "./event_queue.js";

/**
 * Decides whether the connection is read.
 *
 * It is not while a queue of events is full, so that the daemon waits and memory stays bounded. While a command has no answer, or the
 * result of a run is awaited, it is read in any case: the caller may be the reader of that queue.
 */
export class Flow implements QueueOwner {
  readonly #full = new Set<object>();
  #openCalls = 0;
  #holds = 0;
  #isPaused = false;
  readonly #setPaused: (isPaused: boolean) => void;

  constructor(setPaused: (isPaused: boolean) => void) {
    this.#setPaused = setPaused;
  }

  fullnessChanged(queue: object, isFull: boolean): void {
    if (isFull) this.#full.add(queue);
    else this.#full.delete(queue);
    this.#decide();
  }

  left(queue: object): void {
    this.#full.delete(queue);
    this.#decide();
  }

  /** The number of commands without an answer has changed. */
  callsChanged(open: number): void {
    this.#openCalls = open;
    this.#decide();
  }

  /** Something is awaited that comes over the connection; the function that comes back says that it is there. */
  hold(): () => void {
    this.#holds += 1;
    this.#decide();
    return () => {
      this.#holds -= 1;
      this.#decide();
    };
  }

  /** A new connection has begun, which is being read. */
  reset(): void {
    this.#isPaused = false;
    this.#decide();
  }

  #decide(): void {
    const isPaused = this.#full.size > 0 && this.#openCalls === 0 && this.#holds === 0;
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    this.#setPaused(isPaused);
  }
}
