import { AgentdError } from "./error.js";

const LF = 10;
const CR = 13;

/** The longest line that is read by default, in bytes: a session of many images in one answer fits. */
export const DEFAULT_MAX_LINE_BYTES = 256 * 1024 * 1024;

/**
 * Splits a stream of bytes into lines.
 *
 * Lines end with LF alone; one CR before it is dropped. Bytes are decoded when a line is complete, so that a character may
 * be split between two chunks. The work is linear in the number of bytes, whatever their chunks are.
 */
export class LineSplitter {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  readonly #maxBytes: number;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(maxBytes: number = DEFAULT_MAX_LINE_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Takes a chunk, and gives the lines that it completes, without their ends. Empty lines are left out.
   *
   * @throws AgentdError with the code `too_large` when a line is longer than the limit.
   */
  *push(chunk: Uint8Array): Generator<string> {
    let begin = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, begin)) {
      this.#keep(chunk.subarray(begin, end));
      begin = end + 1;
      const line = this.#take();
      if (line !== "") yield line;
    }
    this.#keep(chunk.subarray(begin));
  }

  /** Whether the stream stands in the middle of a line. */
  get isInside(): boolean {
    return this.#bytes > 0;
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) {
      throw new AgentdError("too_large", `A line is longer than ${this.#maxBytes} bytes.`, {
        hint: "Raise the option maxLineBytes.",
      });
    }
    this.#parts.push(part);
  }

  #take(): string {
    const [first] = this.#parts;
    let bytes = this.#parts.length === 1 && first ? first : Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#bytes = 0;
    if (bytes.at(-1) === CR) bytes = bytes.subarray(0, -1);
    return this.#decoder.decode(bytes);
  }
}
