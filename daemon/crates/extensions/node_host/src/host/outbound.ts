/** Writes records to the daemon, and keeps them within the limits of the connection. */
import type { HostLink } from "../connection/host_link.ts";
import { CallError, errorRecord } from "../protocol/errors.ts";
import type { ErrorRecord, JsonObject } from "../protocol/records.ts";

export class Outbound {
  /** Until the greeting told it. */
  private maxLineBytes = 1024 * 1024;

  constructor(private readonly link: HostLink) {}

  setMaxLineBytes(bytes: number): void {
    this.maxLineBytes = bytes;
    this.link.setMaxLineBytes(bytes);
  }

  /** Sends a record. Throws when it has no JSON form (`invalid`) or is too long (`too_large`). */
  send(record: JsonObject): void {
    this.link.send(this.encode(record));
  }

  /** Answers a request. An answer that cannot be sent becomes an error of the request. */
  result(id: number, value: unknown): void {
    let line: string;
    try {
      line = this.encode({ type: "result", id, ok: true, value: value === undefined ? null : value });
    } catch (error) {
      this.failure(id, errorRecord(error));
      return;
    }
    this.link.send(line);
  }

  failure(id: number, error: ErrorRecord): void {
    let line: string;
    try {
      line = this.encode({ type: "result", id, ok: false, error });
    } catch {
      const short: ErrorRecord = { message: error.message.slice(0, 1000) };
      if (error.code !== undefined) short.code = error.code;
      line = JSON.stringify({ type: "result", id, ok: false, error: short });
    }
    this.link.send(line);
  }

  private encode(record: JsonObject): string {
    let line: string;
    try {
      line = JSON.stringify(record);
    } catch (error) {
      const reason = error instanceof Error ? error.message.split("\n")[0] : String(error);
      throw new CallError(`${describe(record)} has no JSON form: ${reason}`, "invalid");
    }
    // A character of a string has three bytes of UTF-8 at most.
    if (line.length * 3 > this.maxLineBytes && Buffer.byteLength(line) > this.maxLineBytes) {
      throw new CallError(`${describe(record)} is longer than ${this.maxLineBytes} bytes`, "too_large");
    }
    return line;
  }
}

function describe(record: JsonObject): string {
  const what = record["method"] ?? record["type"];
  return what === "result" ? "The result" : `"${String(what)}"`;
}
