/** Records of the host protocol, version 1, as the host sees them. */

export type JsonObject = Record<string, unknown>;

/** A request or note of the daemon. Requests have an `id`. */
export interface DaemonRecord extends JsonObject {
  type: string;
  id?: number;
}

/** Answer of the daemon to a call of the host. */
export interface ResultRecord {
  type: "result";
  id: number;
  ok: boolean;
  value?: unknown;
  error?: ErrorRecord;
}

export interface ErrorRecord {
  message: string;
  name?: string;
  stack?: string;
  code?: string;
}

export const PROTOCOL_VERSION = 1;

/** Optional parts of the protocol that this host serves. */
export const HOST_FEATURES = ["sync", "refs", "forgetCallbacks", "setup"] as const;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isResult(record: JsonObject): boolean {
  return record["type"] === "result";
}

export function stringField(record: JsonObject, name: string): string {
  const value = record[name];
  if (typeof value !== "string") throw new ProtocolError(`${String(record["type"])}: ${name} must be a string`);
  return value;
}

export function numberField(record: JsonObject, name: string): number {
  const value = record[name];
  if (typeof value !== "number") throw new ProtocolError(`${String(record["type"])}: ${name} must be a number`);
  return value;
}

export function listField(record: JsonObject, name: string): unknown[] {
  const value = record[name];
  if (!Array.isArray(value)) throw new ProtocolError(`${String(record["type"])}: ${name} must be a list`);
  return value;
}

export function objectField(record: JsonObject, name: string): JsonObject {
  const value = record[name];
  if (!isObject(value)) throw new ProtocolError(`${String(record["type"])}: ${name} must be an object`);
  return value;
}

/** A record of the daemon that the protocol does not allow. */
export class ProtocolError extends Error {
  readonly code = "invalid";
}
