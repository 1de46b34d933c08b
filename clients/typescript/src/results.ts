import type { AssistantMessage, StopReason } from "./protocol.js";

/** Tokens and US dollars of all answers of a run. */
export interface RunUsage {
  /** Input tokens that were not in the provider's cache. */
  input: number;
  /** Output tokens, reasoning included. */
  output: number;
  /** Input tokens read from the cache. */
  cacheRead: number;
  /** Input tokens written to the cache. */
  cacheWrite: number;
  /** US dollars. */
  costUsd: number;
}

/** The outcome of a run. */
export interface RunResult {
  /** The text of the last answer. */
  text: string;
  /** The last answer; absent where none came. */
  message: AssistantMessage | undefined;
  /** Why the last answer ended; absent where none came. */
  stopReason: StopReason | undefined;
  /** The number of answers, those that failed included. */
  turns: number;
  /** The number of tool calls that began. */
  toolCalls: number;
  /** Tokens and cost of all answers. */
  usage: RunUsage;
}

/** The text of an answer: its text blocks, without thinking and tool calls. */
export function textOf(message: AssistantMessage | undefined): string {
  if (!message) return "";
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** Counts the answers and tool calls of a run. */
export class Tally {
  #message: AssistantMessage | undefined;
  #turns = 0;
  #toolCalls = 0;
  readonly #usage: RunUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, costUsd: 0 };

  /** Counts an answer. */
  answer(message: AssistantMessage): void {
    this.#message = message;
    this.#turns += 1;
    this.#usage.input += message.usage.input;
    this.#usage.output += message.usage.output;
    this.#usage.cacheRead += message.usage.cacheRead;
    this.#usage.cacheWrite += message.usage.cacheWrite;
    this.#usage.costUsd += message.usage.cost.total;
  }

  /** Counts a tool call. */
  toolCall(): void {
    this.#toolCalls += 1;
  }

  /** What was counted so far. */
  result(): RunResult {
    return {
      text: textOf(this.#message),
      message: this.#message,
      stopReason: this.#message?.stopReason,
      turns: this.#turns,
      toolCalls: this.#toolCalls,
      usage: { ...this.#usage },
    };
  }
}
