import type { ErrorRecord } from "./records.ts";

/** An error of a call, with the daemon's code where it gave one. */
export class CallError extends Error {
  readonly code: string | undefined;
  constructor(message: string, code?: string) {
    super(message);
    this.name = "Error";
    this.code = code;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}

/** The form in which a thrown value crosses the connection. */
export function errorRecord(error: unknown): ErrorRecord {
  if (!(error instanceof Error)) return { message: String(error) };
  const record: ErrorRecord = { message: error.message };
  if (error.name !== "Error") record.name = error.name;
  if (error.stack !== undefined) record.stack = error.stack;
  const code = (error as { code?: unknown }).code;
  if (typeof code === "string") record.code = code;
  return record;
}

export function errorOf(record: ErrorRecord | undefined): CallError {
  return new CallError(record?.message ?? "agentd refused the call", record?.code);
}
