/** Splits terminal input into keys and pastes. */
import { EventEmitter } from "node:events";

const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";
/** A whole sequence or character at the beginning of input. */
const COMPLETE = /^(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[_P][^\x1b]*\x1b\\|\x1bO[ -~]|\x1b[^[\]O_P]|[^\x1b])/su;
const ESCAPE_WAIT_MS = 10;
const SEQUENCE_WAIT_MS = 50;

export interface StdinBufferOptions {
  timeout?: number;
  escapeTimeout?: number;
}

/** Emits `data` for each key sequence and `paste` for each bracketed paste. */
export class StdinBuffer extends EventEmitter {
  #buffer = "";
  #timer: NodeJS.Timeout | undefined;
  readonly #timeoutMs: number;
  readonly #escapeTimeoutMs: number;

  constructor(options: StdinBufferOptions = {}) {
    super();
    this.#timeoutMs = options.timeout ?? SEQUENCE_WAIT_MS;
    this.#escapeTimeoutMs = options.escapeTimeout ?? ESCAPE_WAIT_MS;
  }

  process(data: string | Buffer): void {
    this.#stopTimer();
    this.#buffer += typeof data === "string" ? data : data.toString("utf8");
    while (this.#buffer) {
      if (this.#buffer.startsWith(PASTE_START)) {
        const end = this.#buffer.indexOf(PASTE_END);
        if (end < 0) return;
        const text = this.#buffer.slice(PASTE_START.length, end);
        this.#buffer = this.#buffer.slice(end + PASTE_END.length);
        this.emit("paste", text);
        continue;
      }
      const sequence = COMPLETE.exec(this.#buffer)?.[0];
      if (sequence === undefined) {
        const wait = this.#buffer === "\x1b" ? this.#escapeTimeoutMs : this.#timeoutMs;
        this.#timer = setTimeout(() => this.flush().forEach((rest) => this.emit("data", rest)), wait);
        return;
      }
      this.#buffer = this.#buffer.slice(sequence.length);
      this.emit("data", sequence);
    }
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Takes out what is incomplete. */
  flush(): string[] {
    this.#stopTimer();
    const rest = this.#buffer;
    this.#buffer = "";
    return rest ? [rest] : [];
  }

  clear(): void {
    this.flush();
  }

  getBuffer(): string {
    return this.#buffer;
  }

  destroy(): void {
    this.clear();
  }
}
