import type { AgentdError } from "./error.js";
import type { SessionEvent } from "./events.js";

/** A receiver of a session's events, called in their order. */
export interface ChannelListener {
  event(event: SessionEvent): void;
  /** There will be no more events; without an error, because this client left or the session was closed. */
  ended(error: AgentdError | undefined): void;
}

/** The events of one session on their way from the connection to whom they concern, and the number of the last one. */
export class Channel {
  readonly sessionId: string;
  /** The epoch of the daemon that numbered the events. */
  epoch: string;
  /** The number of the last event that came. */
  seq: number;
  #end: { error: AgentdError | undefined } | undefined;
  readonly #listeners = new Set<ChannelListener>();

  constructor(sessionId: string, epoch: string, seq: number) {
    this.sessionId = sessionId;
    this.epoch = epoch;
    this.seq = seq;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Begins to listen; the function that comes back stops it. */
  listen(listener: ChannelListener): () => void {
    if (this.#end) {
      listener.ended(this.#end.error);
      return () => {};
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Hands an event on, unless it came before. */
  deliver(event: SessionEvent): void {
    if ("seq" in event && event.seq !== undefined) {
      if (event.seq <= this.seq) return;
      this.seq = event.seq;
    }
    for (const listener of [...this.#listeners]) listener.event(event);
  }

  /** Goes on from another position. */
  moveTo(epoch: string, seq: number): void {
    this.epoch = epoch;
    this.seq = seq;
  }

  /** Ends all listening. */
  end(error?: AgentdError): void {
    if (this.#end) return;
    this.#end = { error };
    for (const listener of [...this.#listeners]) listener.ended(error);
    this.#listeners.clear();
  }
}
