/** Results of `user_bash` handlers, and the operations that they hand over. */
import type { AnyFunction, CallbackOwner, Callbacks } from "../host/callbacks.ts";
import { isObject, type JsonObject } from "../protocol/records.ts";
import { INVALID_USER_BASH } from "../extension/texts.ts";

/** The form of a result in a record. Throws what pi throws for a malformed one. */
export function encodeUserBash(value: unknown, callbacks: Callbacks, owner: CallbackOwner): unknown {
  if (value === undefined) return undefined;
  if (!isObject(value)) throw new Error(INVALID_USER_BASH);
  const { operations, result } = value;
  if ((operations !== undefined) === (result !== undefined)) throw new Error(INVALID_USER_BASH);
  if (operations === undefined) {
    if (!isBashResult(result)) throw new Error(INVALID_USER_BASH);
    return { result };
  }
  const exec = typeof operations === "object" && operations !== null ? (operations as JsonObject)["exec"] : undefined;
  if (typeof exec !== "function") throw new Error(INVALID_USER_BASH);
  return { operations: { exec: callbacks.add(exec.bind(operations) as AnyFunction, owner, { kind: "bashExec", once: true }) } };
}

function isBashResult(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { output, exitCode, cancelled, truncated, fullOutputPath } = value;
  return (
    typeof output === "string" &&
    "exitCode" in value &&
    (exitCode === undefined || typeof exitCode === "number") &&
    typeof cancelled === "boolean" &&
    typeof truncated === "boolean" &&
    (fullOutputPath === undefined || typeof fullOutputPath === "string")
  );
}
