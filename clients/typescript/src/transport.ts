import type { Readable, Writable } from "node:stream";

import { AgentdError } from "./error.js";
import { LineSplitter } from "./lines.js";

/** What a connection reports. Nothing is called any more after `ended`. */
export interface TransportListener {
  /** A line came, without its end. */
  line(text: string): void;
  /** The connection has ended, with the reason. */
  ended(error: AgentdError): void;
}

/** A connection to a daemon: lines in both directions. */
export interface Transport {
  /** Sends a line; it must not contain a line feed. */
  write(text: string): void;
  /** Stops reading, so that the daemon waits; or goes on. */
  setPaused(isPaused: boolean): void;
  /** Ends the connection in order, and resolves when it has ended. */
  close(): Promise<void>;
}

/** Why a connection ended, asked when its output has ended. */
export type EndReason = (cause: unknown) => Promise<AgentdError>;

/** The part that all transports share: lines over a pair of streams. */
export class LineStreams {
  readonly #input: Readable;
  readonly #output: Writable;
  #hasEnded = false;
  /** Resolves when the connection has ended. */
  readonly ended: Promise<void>;

  constructor(input: Readable, output: Writable, listener: TransportListener, maxLineBytes: number | undefined, reason: EndReason) {
    this.#input = input;
    this.#output = output;
    const lines = new LineSplitter(maxLineBytes);
    let settle = (): void => {};
    this.ended = new Promise((resolve) => (settle = resolve));
    const end = (cause?: unknown): void => {
      if (this.#hasEnded) return;
      this.#hasEnded = true;
      const known = cause instanceof AgentdError ? Promise.resolve(cause) : reason(cause);
      void known.then((error) => {
        listener.ended(error);
        settle();
      });
    };
    input.on("data", (chunk: Uint8Array) => {
      if (this.#hasEnded) return;
      try {
        for (const line of lines.push(chunk)) listener.line(line);
      } catch (error) {
        end(error instanceof AgentdError ? error : new AgentdError("protocol", String(error), { cause: error }));
        input.destroy();
        output.destroy();
      }
    });
    input.on("end", () => end());
    input.on("close", () => end());
    input.on("error", end);
    // A broken pipe is followed by the end of the input, which knows the reason.
    output.on("error", () => input.resume());
  }

  write(text: string): void {
    if (!this.#output.destroyed && !this.#output.writableEnded) this.#output.write(`${text}\n`);
  }

  setPaused(isPaused: boolean): void {
    if (isPaused) this.#input.pause();
    else this.#input.resume();
  }

  /** Ends our half; what still comes is read and dropped by the listener. */
  finish(): void {
    this.#input.resume();
    this.#output.end();
  }
}
