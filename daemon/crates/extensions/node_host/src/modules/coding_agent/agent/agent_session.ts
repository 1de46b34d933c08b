/**
 * `AgentSession`: an agent that an extension runs.
 *
 * It is a session of the daemon below that of the extension: the daemon asks its model and runs its tools; what is called here are
 * commands to it. What is read here is known without asking, or read in one blocking call.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../protocol/errors.ts";
import { isObject, type JsonObject } from "../../../protocol/records.ts";
import type { AgentExtensionError, AgentHost, AgentListener } from "../../../services.ts";
import { NotAvailableError } from "../../unavailable.ts";
import { AgentView } from "./agent_view.ts";
import { type ErrorListener, ExtensionRunner } from "./extension_runner.ts";
import type { LiveSession } from "./live_session.ts";
import { ReadableSession } from "./readable_session.ts";

type Listener = (event: JsonObject) => void;
type Images = readonly JsonObject[] | undefined;

/** What a session is made of, besides what the daemon says of it. */
export interface SessionParts {
  sessionManager: unknown;
  settingsManager: unknown;
  modelRuntime: unknown;
  resourceLoader: { getPrompts?(): { prompts: unknown[] } };
  scopedModels: readonly unknown[];
  startEvent: JsonObject;
}

interface Bindings {
  uiContext?: unknown;
  mode?: string;
  onError?: ErrorListener;
  [name: string]: unknown;
}

/** Sessions that are about to end. In pi the file of a session is free as soon as it is disposed of. */
const endings = new Set<Promise<void>>();

/** Waits until the sessions that were disposed of have ended. */
export async function disposedSessionsEnded(): Promise<void> {
  await Promise.all(endings);
}

/** Methods of pi's sessions that have no counterpart. */
const NOT_AVAILABLE = ["recordBashResult", "reload", "setCacheWarmingMode", "setScopedModels", "summarizeForBugReport", "createReplacedSessionContext", "abortBranchSummary"];

export class AgentSession extends ReadableSession {
  readonly sessionManager: unknown;
  readonly settingsManager: unknown;
  readonly modelRuntime: unknown;
  readonly resourceLoader: SessionParts["resourceLoader"];
  readonly scopedModels: readonly unknown[];
  readonly agent: AgentView;
  readonly extensionRunner: ExtensionRunner;
  readonly #startEvent: JsonObject;
  #listeners: Listener[] = [];
  #onErrors = new Set<ErrorListener>();
  #errorsBefore: AgentExtensionError[] = [];

  constructor(host: AgentHost, live: LiveSession, parts: SessionParts) {
    super(host, live);
    this.resourceLoader = parts.resourceLoader;
    this.#startEvent = parts.startEvent;
    this.sessionManager = parts.sessionManager;
    this.settingsManager = parts.settingsManager;
    this.modelRuntime = parts.modelRuntime;
    this.scopedModels = parts.scopedModels;
    this.agent = new AgentView(this, live);
    this.extensionRunner = new ExtensionRunner(host, (error) => this.#failed(error));
  }

  /** What the daemon's notes about the session are led to. */
  static listener(session: () => AgentSession | undefined): AgentListener {
    const tell = (run: (there: AgentSession) => void) => {
      const there = session();
      if (there !== undefined) run(there);
    };
    return {
      onEvent: (event) => tell((there) => there.#take(event)),
      // What is read is current at any time.
      onLagged: () => undefined,
      onEnded: (reason) => tell((there) => there.#end(reason)),
    };
  }

  subscribe(listener: Listener): () => void {
    this.#listeners = [...this.#listeners, listener];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== listener);
    };
  }

  /** The session ends with what it runs; its handlers of `session_shutdown` are the caller's to run, as in pi. */
  dispose(): void {
    if (this.isDisposed) return;
    this.isDisposed = true;
    this.#listeners = [];
    this.live.end();
    const closing = this.host.close().catch((error: unknown) => {
      if (this.ended === undefined) console.error(`The session of an agent could not be ended: ${messageOf(error)}`);
    });
    endings.add(closing);
    void closing.then(() => endings.delete(closing));
  }

  async bindExtensions(bindings: Bindings = {}): Promise<void> {
    if (bindings.onError !== undefined) {
      this.#onErrors = new Set([bindings.onError]);
      for (const error of this.#errorsBefore.splice(0)) bindings.onError(error);
    }
    const binding = { mode: bindings.mode ?? "print", ...(bindings.uiContext === undefined ? {} : { ui: bindings.uiContext }) };
    await this.host.bind(binding, this.#startEvent);
  }

  async prompt(text: string, options: JsonObject = {}): Promise<void> {
    const { images, streamingBehavior, expandPromptTemplates = true } = options;
    if (expandPromptTemplates === false) return void (await this.#sendUser(text, images as Images, streamingBehavior, false));
    const preflight = options["preflightResult"];
    const command = { type: "prompt", message: text, ...ofImages(images as Images), ...(streamingBehavior === undefined ? {} : { streamingBehavior }) };
    const answer = await this.#command(command, true);
    if (typeof preflight === "function" && isObject(answer)) preflight(answer["disposition"]);
  }

  async steer(text: string, images?: Images): Promise<string> {
    return disposition(await this.#command({ type: "steer", message: text, ...ofImages(images) }));
  }

  async followUp(text: string, images?: Images): Promise<string> {
    return disposition(await this.#command({ type: "follow_up", message: text, ...ofImages(images) }));
  }

  async sendUserMessage(content: unknown, options: JsonObject = {}): Promise<void> {
    this.assertThere();
    await this.host.call("session.sendUserMessage", { content, options, wait: true });
  }

  async sendCustomMessage(message: JsonObject, options: JsonObject = {}): Promise<void> {
    this.assertThere();
    const { customType, content, display, details } = message;
    const params = { message: { customType, content: content ?? [], display, details }, options };
    await this.host.call("session.sendMessage", { ...params, wait: options["triggerTurn"] === true });
  }

  async abort(): Promise<void> {
    if (this.isOver()) return;
    await this.#command({ type: "abort" }, true);
  }

  async waitForIdle(): Promise<void> {
    if (this.isOver()) return;
    await this.host.call("session.waitIdle", {});
  }

  clearQueue(): { steering: string[]; followUp: string[] } {
    const { steering, followUp } = this.live;
    this.commandSync({ type: "clear_queue" });
    return { steering: [...steering], followUp: [...followUp] };
  }

  get state(): AgentView["state"] {
    return this.agent.state;
  }

  get promptTemplates(): readonly unknown[] {
    return this.resourceLoader.getPrompts?.().prompts ?? [];
  }

  setActiveToolsByName(names: string[]): void {
    this.assertThere();
    this.host.callSync("tools.setActive", { names });
  }

  async setModel(model: { provider: string; id: string }, options: { persist?: boolean } = {}): Promise<void> {
    if (options.persist === true) throw new NotAvailableError("AgentSession.setModel({ persist: true }) (it writes settings.json)");
    await this.#command({ type: "set_model", provider: model.provider, modelId: model.id });
  }

  async cycleModel(direction: "forward" | "backward" = "forward"): Promise<unknown> {
    if (direction === "backward") throw new NotAvailableError('AgentSession.cycleModel("backward")');
    return (await this.#command({ type: "cycle_model" })) ?? undefined;
  }

  setThinkingLevel(level: string, options: { persist?: boolean } = {}): void {
    if (options.persist === true) throw new NotAvailableError("AgentSession.setThinkingLevel({ persist: true }) (it writes settings.json)");
    this.assertThere();
    this.host.callSync("thinking.set", { level });
  }

  cycleThinkingLevel(): string | undefined {
    const answer = this.commandSync({ type: "cycle_thinking_level" });
    return isObject(answer) && typeof answer["level"] === "string" ? answer["level"] : undefined;
  }

  setSteeringMode(mode: string): void {
    this.commandSync({ type: "set_steering_mode", mode });
  }

  setFollowUpMode(mode: string): void {
    this.commandSync({ type: "set_follow_up_mode", mode });
  }

  setAutoCompactionEnabled(enabled: boolean): void {
    this.commandSync({ type: "set_auto_compaction", enabled });
    this.autoCompaction = enabled;
  }

  setAutoRetryEnabled(enabled: boolean): void {
    this.commandSync({ type: "set_auto_retry", enabled });
    this.autoRetry = enabled;
  }

  abortRetry(): void {
    this.commandSync({ type: "abort_retry" });
  }

  async compact(customInstructions?: string): Promise<unknown> {
    return this.#command({ type: "compact", ...(customInstructions === undefined ? {} : { customInstructions }) });
  }

  abortCompaction(): void {
    this.abort().catch((error: unknown) => console.error(`A compaction could not be stopped: ${messageOf(error)}`));
  }

  async executeBash(command: string, onChunk?: (chunk: string) => void, options: JsonObject = {}): Promise<unknown> {
    if (options["operations"] !== undefined) throw new NotAvailableError("AgentSession.executeBash({ operations })");
    const { id, excludeFromContext } = options;
    const unsubscribe = this.subscribe((event) => {
      if (event["type"] === "bash_execution_update") onChunk?.(String(event["delta"] ?? ""));
    });
    this.bashCommands++;
    try {
      return await this.#command({ type: "bash", command, ...(id === undefined ? {} : { bashId: id }), ...(excludeFromContext === undefined ? {} : { excludeFromContext }) });
    } finally {
      this.bashCommands--;
      unsubscribe();
    }
  }

  abortBash(): void {
    this.commandSync({ type: "abort_bash" });
  }

  setSessionName(name: string): void {
    this.assertThere();
    this.host.callSync("session.setName", { name });
  }

  async navigateTree(targetId: string, options: JsonObject = {}): Promise<unknown> {
    this.assertThere();
    return this.host.call("session.navigate", { targetId, ...options });
  }

  async exportToHtml(outputPath?: string): Promise<string> {
    const answer = await this.#command({ type: "export_html", ...(outputPath === undefined ? {} : { outputPath }) });
    return isObject(answer) ? String(answer["path"]) : "";
  }

  /** Writes the header and the entries of the branch. */
  exportToJsonl(outputPath?: string): string {
    const { store } = this.live;
    const path = outputPath ?? join(this.live.core.cwd ?? process.cwd(), `session-${this.sessionId}.jsonl`);
    writeFileSync(path, [store.header, ...store.branch()].map((record) => `${JSON.stringify(record)}\n`).join(""));
    return path;
  }

  hasExtensionHandlers(event: string): boolean {
    return this.host.hasHandlers(event);
  }

  /** The messages are current at any time. */
  refreshContext(): void {}

  #take(event: JsonObject): void {
    if (event["type"] === "extension_error") {
      const { extensionPath, event: of, error } = event;
      return this.#failed({ extensionPath: String(extensionPath), event: String(of), error: String(error) });
    }
    const shown = this.live.take(event);
    if (shown === undefined) return;
    for (const listener of this.#listeners) listener(shown);
  }

  #failed(error: AgentExtensionError): void {
    if (this.#onErrors.size === 0) this.#errorsBefore.push(error);
    for (const listener of this.#onErrors) listener(error);
  }

  #end(reason: string): void {
    this.ended = reason;
    this.live.end();
  }

  async #command(command: JsonObject, wait = false): Promise<unknown> {
    this.assertThere();
    return this.host.command(command, wait);
  }

  async #sendUser(text: string, images: Images, deliverAs: unknown, expandPromptTemplates: boolean): Promise<void> {
    const content = images === undefined || images.length === 0 ? text : [{ type: "text", text }, ...images];
    await this.sendUserMessage(content, { ...(deliverAs === undefined ? {} : { deliverAs }), expandPromptTemplates });
  }
}

for (const name of NOT_AVAILABLE) {
  Object.defineProperty(AgentSession.prototype, name, {
    value: () => {
      throw new NotAvailableError(`AgentSession.${name}`);
    },
  });
}

function ofImages(images: Images): JsonObject {
  return images === undefined || images.length === 0 ? {} : { images };
}

function disposition(answer: unknown): string {
  return isObject(answer) && answer["disposition"] === "handled" ? "handled" : "queued";
}

