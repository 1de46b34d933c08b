/** A connection as a host uses it: that of the process, or a channel within one. */
import type { DaemonRecord } from "../protocol/records.ts";

/** Decides about a record that came in during a wait: taken now, the awaited one, or left for the event loop. */
export type Sorter = (record: DaemonRecord) => "taken" | "awaited" | "later";

export interface HostLink {
  /** Sends one line; `line` has no LF. */
  send(line: string): void;
  /** Blocks the thread until `sort` says that a record is the awaited one. False after `timeoutMs`. */
  wait(timeoutMs: number, sort: Sorter): boolean;
  setMaxLineBytes(bytes: number): void;
}
