import type { ErrorCode } from "./protocol.js";
import type { RunResult } from "./results.js";

/**
 * The kind of a failure. The daemon's own codes are those of the protocol; the others are this library's:
 *
 * - `not_started`: no daemon runs, or the program does not start;
 * - `connection_lost`: the connection ended before the answer came, and could not be used again;
 * - `closed`: the client was closed, or the session was;
 * - `too_slow`: events were not read for so long that they were dropped;
 * - `bad_answer`: the model gave no answer that fits the schema;
 * - `protocol`: what came is not agentd's protocol.
 */
export type AgentdErrorCode =
  | ErrorCode
  | "not_started"
  | "connection_lost"
  | "closed"
  | "too_slow"
  | "bad_answer"
  | "protocol";

/** What else is known of a failure. */
export interface AgentdErrorDetails {
  /** What to do about it. */
  hint?: string | undefined;
  /** The `type` of the command that failed. */
  command?: string | undefined;
  /** The run that failed, as far as it came. */
  result?: RunResult | undefined;
  /** The error that caused this one. */
  cause?: unknown;
}

/** A command, a run or a connection that failed. */
export class AgentdError extends Error {
  /** The kind of the failure, for programs. */
  readonly code: AgentdErrorCode;
  /** What to do about it, for people; absent where nothing is known to help. */
  readonly hint: string | undefined;
  /** The `type` of the command that failed; absent where it was no command. */
  readonly command: string | undefined;
  /** The run that failed, as far as it came: its usage, its last answer. */
  readonly result: RunResult | undefined;

  constructor(code: AgentdErrorCode, message: string, details: AgentdErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "AgentdError";
    this.code = code;
    this.hint = details.hint;
    this.command = details.command;
    this.result = details.result;
  }
}
