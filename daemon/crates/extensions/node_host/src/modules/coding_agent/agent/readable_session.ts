/** The part of `AgentSession` that reads: what is known without asking, or by one blocking call. */
import { isObject, type JsonObject } from "../../../protocol/records.ts";
import type { AgentHost } from "../../../services.ts";
import { getSupportedThinkingLevels } from "../../ai/models.ts";
import type { LiveSession } from "./live_session.ts";

export class ReadableSession {
  protected readonly host: AgentHost;
  protected readonly live: LiveSession;
  protected isDisposed = false;
  /** Why the session has ended, if it has. */
  protected ended: string | undefined;
  protected autoCompaction: boolean | undefined;
  protected autoRetry: boolean | undefined;
  /** Commands of `executeBash` that run. */
  protected bashCommands = 0;

  constructor(host: AgentHost, live: LiveSession) {
    this.host = host;
    this.live = live;
    // What a session is made of is nobody's who lists its members.
    for (const name of ["host", "live"]) Object.defineProperty(this, name, { enumerable: false });
  }

  get messages(): unknown[] {
    return this.live.messages;
  }

  get model(): JsonObject | undefined {
    return this.live.core.model;
  }

  get thinkingLevel(): string {
    return this.live.core.thinkingLevel ?? "off";
  }

  get systemPrompt(): string {
    const prompt = this.live.topic("prompt");
    return isObject(prompt) ? String(prompt["systemPrompt"] ?? "") : "";
  }

  get isStreaming(): boolean {
    return this.live.isStreaming;
  }

  get isIdle(): boolean {
    return this.isOver() || (this.live.core.idle ?? true);
  }

  get isCompacting(): boolean {
    return this.live.isCompacting;
  }

  get isRetrying(): boolean {
    return this.live.isRetrying;
  }

  get retryAttempt(): number {
    return this.live.retryAttempt;
  }

  get isBashRunning(): boolean {
    return this.bashCommands > 0;
  }

  get hasPendingBashMessages(): boolean {
    return false;
  }

  get sessionId(): string {
    return this.live.core.sessionId ?? "";
  }

  get sessionFile(): string | undefined {
    return this.live.core.sessionFile ?? undefined;
  }

  get sessionName(): string | undefined {
    return this.live.core.sessionName ?? undefined;
  }

  get routedModel(): undefined {
    return undefined;
  }

  get cacheWarmingStatus(): undefined {
    return undefined;
  }

  get steeringMode(): unknown {
    return this.readState()["steeringMode"];
  }

  get followUpMode(): unknown {
    return this.readState()["followUpMode"];
  }

  get autoCompactionEnabled(): boolean {
    return this.autoCompaction ?? this.readState()["autoCompactionEnabled"] !== false;
  }

  get autoRetryEnabled(): boolean {
    return this.autoRetry ?? this.readState()["autoRetryEnabled"] !== false;
  }

  getActiveToolNames(): string[] {
    return [...(this.live.core.activeTools ?? [])];
  }

  getCallableToolNames(): string[] {
    const active = new Set(this.getActiveToolNames());
    return this.getAllTools().flatMap((tool) => {
      const exposure = tool["exposure"] ?? "direct";
      const isCallable = exposure === "direct" ? active.has(String(tool["name"])) : exposure === "codemode" || exposure === "deferred";
      return isCallable ? [String(tool["name"])] : [];
    });
  }

  getAllTools(): JsonObject[] {
    const tools = this.live.topic("tools");
    return Array.isArray(tools) ? (tools as JsonObject[]) : [];
  }

  getToolDefinition(name: string): unknown {
    return this.host.tool(name) ?? this.getAllTools().find((tool) => tool["name"] === name);
  }

  getAvailableThinkingLevels(): unknown[] {
    return this.model === undefined ? ["off"] : [...getSupportedThinkingLevels(this.model as never)];
  }

  supportsThinking(): boolean {
    return this.model?.["reasoning"] === true;
  }

  getLastAssistantText(): string | undefined {
    const last = this.live.messages.findLast((message) => message.role === "assistant");
    const blocks = Array.isArray(last?.["content"]) ? (last["content"] as JsonObject[]) : [];
    const text = blocks.filter((block) => block["type"] === "text").map((block) => String(block["text"])).join("").trim();
    return text === "" ? undefined : text;
  }

  getUserMessagesForForking(): unknown[] {
    const answer = this.commandSync({ type: "get_fork_messages" });
    return isObject(answer) && Array.isArray(answer["messages"]) ? answer["messages"] : [];
  }

  getSessionStats(): unknown {
    return this.commandSync({ type: "get_session_stats" });
  }

  getContextUsage(): unknown {
    return this.live.core.contextUsage ?? undefined;
  }

  get pendingMessageCount(): number {
    return this.live.steering.length + this.live.followUp.length;
  }

  getSteeringMessages(): readonly string[] {
    return [...this.live.steering];
  }

  getFollowUpMessages(): readonly string[] {
    return [...this.live.followUp];
  }

  protected isOver(): boolean {
    return this.isDisposed || this.ended !== undefined;
  }

  protected assertThere(): void {
    if (this.isDisposed) throw new Error("The session of this agent was disposed of");
    if (this.ended !== undefined) throw new Error(`The session of this agent has ended: ${this.ended}`);
  }

  protected commandSync(command: JsonObject): unknown {
    this.assertThere();
    return this.host.commandSync(command);
  }

  protected readState(): JsonObject {
    if (this.isOver()) return {};
    const state = this.commandSync({ type: "get_state" });
    return isObject(state) ? state : {};
  }
}
