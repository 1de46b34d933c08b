/**
 * Messages by reference: the daemon sends each message once per process and names it by a key later.
 *
 * Handlers get deep copies; on the way back, messages that are equal to the original go by key.
 */
import { cloneJson, equalJson } from "../host/json.ts";
import { isObject, type JsonObject, ProtocolError } from "../protocol/records.ts";

/** `{m}` names a known message, `{m, v}` introduces it; `{v}` is a message that is not kept. */
export interface MessageRef {
  m: string;
  v?: JsonObject;
}

export class MessageStore {
  private readonly messages = new Map<string, JsonObject>();

  get size(): number {
    return this.messages.size;
  }

  forget(keys: unknown[]): void {
    for (const key of keys) this.messages.delete(String(key));
  }

  clear(): void {
    this.messages.clear();
  }

  /** The message of a reference. Not a copy. */
  resolve(ref: MessageRef): JsonObject {
    if (ref.v !== undefined) this.messages.set(ref.m, ref.v);
    const message = this.messages.get(ref.m);
    if (message === undefined) throw new ProtocolError(`Message ${ref.m} was not sent`);
    return message;
  }
}

export function isMessageRef(value: unknown): value is MessageRef {
  if (!isObject(value) || typeof value["m"] !== "string") return false;
  const keys = Object.keys(value).length;
  return keys === 1 || (keys === 2 && isObject(value["v"]));
}

function isUnnamed(value: unknown): value is { v: JsonObject } {
  return isObject(value) && isObject(value["v"]) && Object.keys(value).length === 1;
}

/** A list of messages on its way through handlers. */
export class MessageList {
  /** The list that handlers see. */
  readonly copy: unknown[];
  /** The elements as they were handed out. */
  private readonly snapshot: unknown[];
  private readonly originals: { ref: JsonObject; message: JsonObject }[] = [];
  private readonly byCopy = new Map<unknown, number>();

  constructor(store: MessageStore, list: unknown[]) {
    this.copy = list.map((item) => {
      const isRef = isMessageRef(item);
      if (!isRef && !isUnnamed(item)) return cloneJson(item);
      const message = isRef ? store.resolve(item) : item.v;
      const copy = cloneJson(message);
      this.byCopy.set(copy, this.originals.length);
      this.originals.push({ ref: isRef ? { m: item.m } : { v: message }, message });
      return copy;
    });
    this.snapshot = [...this.copy];
  }

  /** Whether `list` has other elements than were handed out, or elements that were edited in place. */
  changed(list: unknown): boolean {
    if (!Array.isArray(list) || list.length !== this.snapshot.length) return true;
    return list.some((item, index) => item !== this.snapshot[index] || !this.untouched(item));
  }

  /** The form of a list of the handler in a record. */
  encode(list: unknown[]): unknown[] {
    let index: Map<string, number[]> | undefined;
    return list.map((item) => {
      const known = this.byCopy.get(item);
      if (known !== undefined) {
        return this.untouched(item) ? this.originals[known]?.ref : { v: item };
      }
      index ??= this.indexByLook();
      const match = index.get(lookOf(item))?.find((at) => equalJson(this.originals[at]?.message, item));
      return match === undefined ? { v: item } : this.originals[match]?.ref;
    });
  }

  private untouched(copy: unknown): boolean {
    const at = this.byCopy.get(copy);
    return at !== undefined && equalJson(this.originals[at]?.message, copy);
  }

  /** Finds candidates for copies that an extension made itself, without comparing everything with everything. */
  private indexByLook(): Map<string, number[]> {
    const index = new Map<string, number[]>();
    this.originals.forEach(({ message }, at) => {
      const look = lookOf(message);
      const list = index.get(look);
      if (list === undefined) index.set(look, [at]);
      else list.push(at);
    });
    return index;
  }
}

function lookOf(message: unknown): string {
  if (!isObject(message)) return "";
  return `${String(message["role"])}|${String(message["timestamp"])}|${String(message["toolCallId"])}`;
}

/** A deep copy of `value` in which every reference is replaced by a copy of its message. */
export function resolveDeep(store: MessageStore, value: unknown): unknown {
  if (isMessageRef(value)) return cloneJson(store.resolve(value));
  if (Array.isArray(value)) return value.map((item) => resolveDeep(store, item));
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) copy[key] = resolveDeep(store, value[key]);
  return copy;
}
