/** Functions of extensions that the daemon can call by number. */
import { CallError } from "../protocol/errors.ts";
import { isObject, type JsonObject } from "../protocol/records.ts";

/** How a function is served when the daemon calls it. */
export type CallbackKind = "plain" | "bashExec" | "setup" | "withSession" | "compact" | "route";

export type AnyFunction = (...args: never[]) => unknown;

export interface Callback {
  kind: CallbackKind;
  run: AnyFunction;
  /** Called instead of `run` when the request names a method. */
  methods?: Record<string, AnyFunction>;
  ext: string | undefined;
  epoch: number;
  /** Forgotten after the first call. */
  once: boolean;
}

export interface CallbackOwner {
  ext: string | undefined;
  epoch: number;
}

/** A function as it stands in a record. */
export interface CallbackRef {
  cb: number;
}

export class Callbacks {
  private next = 1;
  private readonly entries = new Map<number, Callback>();

  add(run: AnyFunction, owner: CallbackOwner, options: Partial<Pick<Callback, "kind" | "methods" | "once">> = {}): CallbackRef {
    const cb = this.next++;
    const { kind = "plain", methods, once = false } = options;
    const entry: Callback = { kind, run, ext: owner.ext, epoch: owner.epoch, once };
    if (methods !== undefined) entry.methods = methods;
    this.entries.set(cb, entry);
    return { cb };
  }

  get(cb: number): Callback {
    const entry = this.entries.get(cb);
    if (entry === undefined) throw new CallError(`Callback ${cb} is not known`, "invalid");
    return entry;
  }

  /** The daemon has given an extension its id. */
  rename(from: string, to: string): void {
    for (const entry of this.entries.values()) if (entry.ext === from) entry.ext = to;
  }

  forget(cb: number): void {
    this.entries.delete(cb);
  }

  /** Forgets what belongs to an epoch, but for functions that outlive it: those called after a replacement. */
  forgetEpoch(epoch: number): void {
    for (const [cb, entry] of this.entries) {
      const outlives = entry.kind === "withSession" || entry.kind === "setup" || entry.kind === "compact";
      if (entry.epoch === epoch && !outlives) this.entries.delete(cb);
    }
  }

  /** A copy of `value` in which every function is replaced by a reference, with its object as `this`. */
  encode(value: unknown, owner: CallbackOwner): unknown {
    return this.encodeIn(value, owner, undefined);
  }

  /** Like `encode` for an object whose methods may stand on its class, several levels deep. */
  encodeMethods(value: JsonObject, owner: CallbackOwner): JsonObject {
    const copy: JsonObject = {};
    for (const [key, field] of Object.entries(value)) {
      const nested = isObject(field) && typeof field["toJSON"] !== "function";
      copy[key] = nested ? this.encodeMethods(field, owner) : this.encodeIn(field, owner, value);
    }
    for (const name of methodNames(value)) {
      if (copy[name] === undefined) copy[name] = this.add((value[name] as AnyFunction).bind(value) as AnyFunction, owner);
    }
    return copy;
  }

  private encodeIn(value: unknown, owner: CallbackOwner, holder: unknown): unknown {
    if (typeof value === "function") {
      return this.add((value as (...args: unknown[]) => unknown).bind(holder) as AnyFunction, owner);
    }
    if (Array.isArray(value)) return value.map((item) => this.encodeIn(item, owner, value));
    if (!isObject(value)) return value;
    if (typeof value["toJSON"] === "function") return value;
    const copy: JsonObject = {};
    for (const key of Object.keys(value)) copy[key] = this.encodeIn(value[key], owner, value);
    return copy;
  }
}

/** Methods on the prototypes of an object, nearest first. */
function methodNames(value: JsonObject): Set<string> {
  const names = new Set<string>();
  for (let proto: unknown = Object.getPrototypeOf(value); isObject(proto) && proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      if (name !== "constructor" && typeof property.value === "function") names.add(name);
    }
  }
  return names;
}
