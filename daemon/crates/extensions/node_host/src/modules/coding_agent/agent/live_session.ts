/** What is known of a session that the daemon runs, without asking: its state, its messages, what streams. */
import { PartialMessage } from "../../../messages/partial.ts";
import { isObject, type JsonObject } from "../../../protocol/records.ts";
import type { AgentHost } from "../../../services.ts";
import type { EntryStore } from "../../../session/entry_store.ts";
import { type AgentMessage, buildSessionContext } from "../session/context.ts";

interface CoreState {
  idle?: boolean;
  run?: unknown;
  pendingCount?: number;
  model?: JsonObject;
  thinkingLevel?: string;
  contextUsage?: unknown;
  sessionId?: string;
  sessionFile?: string;
  sessionName?: string;
  cwd?: string;
  activeTools?: string[];
}

export class LiveSession {
  /** Messages in queues, as the last event said. */
  steering: string[] = [];
  followUp: string[] = [];
  isStreaming = false;
  isCompacting = false;
  isRetrying = false;
  retryAttempt = 0;
  streamingMessage: JsonObject | undefined;
  errorMessage: string | undefined;
  readonly pendingToolCalls = new Set<string>();
  private partial: PartialMessage | undefined;
  private known: { count: number; leafId: string | null; messages: AgentMessage[] } | undefined;
  /** The session as it was when it ended. */
  private ended: { core: CoreState; store: EntryStore } | undefined;

  constructor(private readonly host: AgentHost) {}

  get core(): CoreState {
    return this.ended?.core ?? ((this.host.readTopic("core") ?? {}) as CoreState);
  }

  get store(): EntryStore {
    return this.ended?.store ?? this.host.entries();
  }

  /** The messages of the context. */
  get messages(): AgentMessage[] {
    const { entries, leafId } = this.store;
    if (this.known?.count !== entries.length || this.known.leafId !== leafId) {
      this.known = { count: entries.length, leafId, messages: buildSessionContext(entries, leafId).messages };
    }
    return [...this.known.messages];
  }

  topic(name: string): unknown {
    return this.ended === undefined ? this.host.readTopic(name) : undefined;
  }

  /** Nothing can be read any more: what was known stays. */
  end(): void {
    if (this.ended !== undefined) return;
    const { core, store } = this;
    this.ended = { core: { ...core }, store };
    this.isStreaming = false;
    this.streamingMessage = undefined;
  }

  /** Takes an event of the session. Returns it as pi's programs have it; `undefined`: it is none of theirs. */
  take(event: JsonObject): JsonObject | undefined {
    switch (event["type"]) {
      case "agent_start":
        this.isStreaming = true;
        this.errorMessage = undefined;
        return event;
      case "agent_settled":
        this.isStreaming = false;
        this.isRetrying = false;
        this.streamingMessage = undefined;
        return event;
      case "message_start":
        if (roleOf(event) === "assistant") {
          this.partial = new PartialMessage(event["message"] as JsonObject);
          this.streamingMessage = event["message"] as JsonObject;
        }
        return event;
      case "message_update":
        return this.update(event);
      case "message_end":
        if (roleOf(event) === "assistant") this.endMessage(event["message"] as JsonObject);
        return event;
      case "tool_execution_start":
        this.pendingToolCalls.add(String(event["toolCallId"]));
        return event;
      case "tool_execution_end":
        this.pendingToolCalls.delete(String(event["toolCallId"]));
        return event;
      case "queue_update":
        this.steering = texts(event["steering"]);
        this.followUp = texts(event["followUp"]);
        return event;
      case "compaction_start":
        this.isCompacting = true;
        return event;
      case "compaction_end":
        this.isCompacting = false;
        return event;
      case "auto_retry_start":
        this.isRetrying = true;
        this.retryAttempt = Number(event["attempt"] ?? 0);
        return event;
      case "auto_retry_end":
        this.isRetrying = false;
        this.retryAttempt = 0;
        return event;
      default:
        return PASSED_ON.has(String(event["type"])) ? event : undefined;
    }
  }

  private update(event: JsonObject): JsonObject {
    const update = event["assistantMessageEvent"];
    if (!isObject(update)) return event;
    const partial = (this.partial ??= new PartialMessage({ role: "assistant", content: [] }));
    if (isObject(event["usage"])) partial.apply({ usage: event["usage"] });
    partial.apply(update);
    const message = partial.snapshot();
    this.streamingMessage = message;
    const { id, toolName, ...shown } = update;
    const own = update["type"] === "toolcall_start" ? shown : { ...shown, ...(id === undefined ? {} : { id }), ...(toolName === undefined ? {} : { toolName }) };
    return { type: "message_update", message, assistantMessageEvent: { ...own, partial: message } };
  }

  private endMessage(message: JsonObject): void {
    this.partial = undefined;
    this.streamingMessage = undefined;
    const { stopReason, errorMessage } = message;
    if (stopReason === "error" || stopReason === "aborted") this.errorMessage = String(errorMessage ?? stopReason);
  }
}

/** Events of pi's sessions that change nothing here. */
const PASSED_ON = new Set([
  ...["agent_end", "turn_start", "turn_end", "tool_execution_update", "entry_appended", "session_info_changed", "thinking_level_changed"],
  ...["summarization_retry_scheduled", "summarization_retry_attempt_start", "summarization_retry_finished", "bash_execution_update"],
]);

function roleOf(event: JsonObject): unknown {
  return isObject(event["message"]) ? event["message"]["role"] : undefined;
}

function texts(list: unknown): string[] {
  return Array.isArray(list) ? list.map((item) => (isObject(item) ? String(item["text"] ?? item["message"] ?? "") : String(item))) : [];
}
