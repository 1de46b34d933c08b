/** The event of one hook request: what handlers see, and what of it they changed. */
import { cloneJson, equalJson } from "../host/json.ts";
import { MessageList, type MessageStore, resolveDeep } from "../messages/store.ts";
import { PartialMessage } from "../messages/partial.ts";
import { isObject, type JsonObject } from "../protocol/records.ts";

/** Parts of events that handlers may edit in place, because pi uses the same object afterwards. */
const MUTABLE: Record<string, readonly string[]> = {
  tool_call: ["input"],
  tool_result: ["content", "details", "structuredContent"],
  before_provider_headers: ["headers"],
  before_provider_request: ["payload"],
  before_agent_start: ["systemPromptOptions"],
  session_before_tree: ["preparation"],
  message_end: ["message"],
};

/** Events of which `messages` may be replaced. */
const MESSAGE_TRANSFORMS = new Set(["context", "context_with_system"]);

export interface Delivery {
  event: JsonObject;
  /** The form of a handler's return value, before functions are replaced. */
  encodeReturn(value: unknown): unknown;
  /** The parts that changed in place since the last call. */
  changes(): JsonObject | undefined;
  /** The system prompt with the changes so far, for `before_agent_start`. */
  systemPrompt?: () => string;
}

/** State that lasts from hook to hook. */
export interface DeliveryState {
  store: MessageStore;
  /** The message that an assistant streams now. */
  partial: PartialMessage | undefined;
  /** Renders a system prompt from edited options. */
  renderPrompt(options: unknown): string;
  /** What the context would be with drafts of entries in it. */
  boundaryContext(event: string, drafts: unknown): JsonObject;
}

export function deliver(state: DeliveryState, payload: JsonObject, signal: AbortSignal): Delivery {
  const type = String(payload["type"]);
  if (payload["signal"] === true) payload["signal"] = signal;
  if (MESSAGE_TRANSFORMS.has(type)) return deliverMessages(state.store, payload);
  switch (type) {
    case "agent_end":
      return plain({ ...payload, messages: new MessageList(state.store, asList(payload["messages"])).copy });
    case "turn_end":
    case "agent_before_settle":
      return plain(boundary(state, payload));
    case "message_start":
      if (isObject(payload["message"]) && payload["message"]["role"] === "assistant") {
        state.partial = new PartialMessage(payload["message"]);
      }
      return plain(payload);
    case "message_update":
      return plain(rebuildUpdate(state, payload));
    case "session_before_compact":
      return plain(withFileSets(payload));
    case "before_agent_start":
      return deliverAgentStart(state, payload);
    default:
      return new MutableDelivery(payload, MUTABLE[type] ?? []);
  }
}

/** The event of a compaction, whose lists of files are sets in pi. */
function withFileSets(payload: JsonObject): JsonObject {
  const preparation = payload["preparation"];
  if (!isObject(preparation) || !isObject(preparation["fileOps"])) return payload;
  const sets = Object.entries(preparation["fileOps"]).map(([name, files]) => [name, new Set(asList(files))]);
  return { ...payload, preparation: { ...preparation, fileOps: Object.fromEntries(sets) } };
}

/** The event of a boundary. Its context is read when a handler looks at it: most do not. */
function boundary(state: DeliveryState, payload: JsonObject): JsonObject {
  if (payload["context"] !== undefined) return { ...payload, context: resolveDeep(state.store, payload["context"]) };
  let context: JsonObject | undefined;
  return Object.defineProperty({ ...payload }, "context", {
    enumerable: true,
    get: () => (context ??= state.boundaryContext(String(payload["type"]), payload["entries"] ?? [])),
  });
}

function plain(event: JsonObject): Delivery {
  return { event, encodeReturn: (value) => value, changes: () => undefined };
}

class MutableDelivery implements Delivery {
  private readonly before: JsonObject = {};

  constructor(
    readonly event: JsonObject,
    private readonly fields: readonly string[],
  ) {
    for (const field of fields) this.before[field] = cloneJson(event[field]);
  }

  encodeReturn(value: unknown): unknown {
    return value;
  }

  changes(): JsonObject | undefined {
    let changed: JsonObject | undefined;
    for (const field of this.fields) {
      if (equalJson(this.before[field], this.event[field])) continue;
      changed ??= {};
      changed[field] = this.event[field];
      this.before[field] = cloneJson(this.event[field]);
    }
    return changed;
  }
}

function deliverMessages(store: MessageStore, payload: JsonObject): Delivery {
  const list = new MessageList(store, asList(payload["messages"]));
  const event: JsonObject = { ...payload, messages: list.copy };
  return {
    event,
    encodeReturn(value) {
      if (!isObject(value) || !Array.isArray(value["messages"])) return value;
      return { ...value, messages: list.encode(value["messages"]) };
    },
    changes() {
      const messages = event["messages"];
      return Array.isArray(messages) && list.changed(messages) ? { messages: list.encode(messages) } : undefined;
    },
  };
}

function deliverAgentStart(state: DeliveryState, payload: JsonObject): Delivery {
  const { systemPrompt, ...rest } = payload;
  const options = payload["systemPromptOptions"];
  const original = cloneJson(options);
  const render = (): string => {
    if (isObject(options) && typeof options["forceSystemPrompt"] === "string") return options["forceSystemPrompt"];
    return equalJson(original, options) ? String(systemPrompt ?? "") : state.renderPrompt(options);
  };
  const event = Object.defineProperty({ ...rest } as JsonObject, "systemPrompt", { enumerable: true, get: render });
  const delivery: Delivery = new MutableDelivery(event, MUTABLE["before_agent_start"] ?? []);
  delivery.systemPrompt = render;
  return delivery;
}

function rebuildUpdate(state: DeliveryState, payload: JsonObject): JsonObject {
  const update = payload["assistantMessageEvent"];
  if (!isObject(update)) return payload;
  const partial = (state.partial ??= new PartialMessage({ role: "assistant", content: [], stopReason: "pending" }));
  if (isObject(payload["usage"])) partial.apply({ usage: payload["usage"] });
  partial.apply(update);
  const message = partial.snapshot();
  // Which call begins is said for the message alone.
  if (update["type"] === "toolcall_start") {
    const { id: _id, toolName: _toolName, ...shown } = update;
    return { type: "message_update", message, assistantMessageEvent: { ...shown, partial: message } };
  }
  return { type: "message_update", message, assistantMessageEvent: { ...update, partial: message } };
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
