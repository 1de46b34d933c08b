/**
 * `Agent`: a conversation with a loop of its own in this process.
 *
 * Its requests are what its stream function makes: by default those of pi-ai, which the daemon makes with the credentials and within
 * the budgets of the session whose extension it is. Its tools are functions of the extension.
 */
import { createInitialSystemMessage, getCurrentSystemPrompt, toToolDeclaration } from "../ai/transcript.ts";
import { emptyUsage, type Message, type Model } from "../ai/types.ts";
import { runAgentLoop, runAgentLoopContinue } from "./loop.ts";
import type { AgentEvent, AgentMessage, AgentTool, LoopConfig, StreamFn } from "./types.ts";

type Mode = "all" | "one-at-a-time";
type Listener = (event: AgentEvent, signal: AbortSignal) => Promise<void> | void;

export interface AgentOptions extends Partial<Omit<LoopConfig, "model" | "prepareNextTurn">> {
  initialState?: { systemPrompt?: string; model?: Model; thinkingLevel?: string; tools?: AgentTool[]; messages?: AgentMessage[] };
  streamFn?: StreamFn;
  streamFunction?: StreamFn;
  prepareNextTurn?(signal?: AbortSignal): unknown;
  prepareNextTurnWithContext?: LoopConfig["prepareNextTurn"];
  steeringMode?: Mode;
  followUpMode?: Mode;
  sessionId?: string;
  thinkingBudgets?: unknown;
  transport?: string;
  maxRetryDelayMs?: number;
  identity?: unknown;
}

/** Roles that models know. */
const FOR_MODELS = new Set(["system", "user", "assistant", "toolResult"]);

/** Callbacks and options of the constructor that are members, so that they can be changed. */
const MEMBERS = [
  ...["transformContext", "getApiKey", "onPayload", "onResponse", "onProviderStreamEvent", "beforeToolCall", "afterToolCall", "finishTurn"],
  ...["shouldStopAfterTurn", "prepareRequest", "prepareNextTurn", "prepareNextTurnWithContext", "sessionId", "thinkingBudgets", "maxRetryDelayMs", "identity"],
] as const;

class Queue {
  messages: AgentMessage[] = [];
  constructor(public mode: Mode) {}

  take(): AgentMessage[] {
    return this.mode === "all" ? this.messages.splice(0) : this.messages.splice(0, 1);
  }

  peek(): AgentMessage[] {
    return this.mode === "all" ? [...this.messages] : this.messages.slice(0, 1);
  }
}

class AgentState {
  model: Model;
  thinkingLevel: string;
  isStreaming = false;
  streamingMessage: AgentMessage | undefined;
  pendingToolCalls: ReadonlySet<string> = new Set();
  errorMessage: string | undefined;
  #tools: AgentTool[];
  #messages: AgentMessage[];

  constructor(initial: NonNullable<AgentOptions["initialState"]>) {
    this.model = initial.model as Model;
    this.thinkingLevel = initial.thinkingLevel ?? "off";
    this.#tools = [...(initial.tools ?? [])];
    const messages = [...(initial.messages ?? [])];
    const leading = messages[0]?.role === "system" ? undefined : createInitialSystemMessage(initial.systemPrompt, this.#tools.map(toToolDeclaration));
    this.#messages = leading === undefined ? messages : [leading as unknown as AgentMessage, ...messages];
  }

  get systemPrompt(): string {
    return getCurrentSystemPrompt(this.#messages as never);
  }

  get tools(): AgentTool[] {
    return this.#tools;
  }

  set tools(tools: AgentTool[]) {
    this.#tools = [...tools];
  }

  get messages(): AgentMessage[] {
    return this.#messages;
  }

  set messages(messages: AgentMessage[]) {
    this.#messages = [...messages];
  }
}

export class AgentBase {
  readonly state: AgentState;
  streamFunction: StreamFn;
  convertToLlm: LoopConfig["convertToLlm"];
  transport: string;
  toolExecution: string;
  [member: string]: unknown;
  readonly #steering: Queue;
  readonly #followUp: Queue;
  #listeners: Listener[] = [];
  #run: { controller: AbortController; ended: Promise<void> } | undefined;

  constructor(options: AgentOptions, defaultStream: StreamFn) {
    this.state = new AgentState(options.initialState ?? {});
    this.streamFunction = options.streamFn ?? options.streamFunction ?? defaultStream;
    const convert = options.convertToLlm as LoopConfig["convertToLlm"] | undefined;
    this.convertToLlm = convert ?? ((messages) => messages.filter(({ role }) => FOR_MODELS.has(role)) as unknown as Message[]);
    this.transport = options.transport ?? "auto";
    this.toolExecution = (options.toolExecution as string | undefined) ?? "parallel";
    this.#steering = new Queue(options.steeringMode ?? "one-at-a-time");
    this.#followUp = new Queue(options.followUpMode ?? "one-at-a-time");
    for (const name of MEMBERS) this[name] = options[name];
  }

  subscribe(listener: Listener): () => void {
    this.#listeners = [...this.#listeners, listener];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== listener);
    };
  }

  get steeringMode(): Mode {
    return this.#steering.mode;
  }

  set steeringMode(mode: Mode) {
    this.#steering.mode = mode;
  }

  get followUpMode(): Mode {
    return this.#followUp.mode;
  }

  set followUpMode(mode: Mode) {
    this.#followUp.mode = mode;
  }

  steer(message: AgentMessage): void {
    this.#steering.messages.push(message);
  }

  followUp(message: AgentMessage): void {
    this.#followUp.messages.push(message);
  }

  clearSteeringQueue(): void {
    this.#steering.messages = [];
  }

  clearFollowUpQueue(): void {
    this.#followUp.messages = [];
  }

  clearAllQueues(): void {
    this.clearSteeringQueue();
    this.clearFollowUpQueue();
  }

  hasQueuedMessages(): boolean {
    return this.#steering.messages.length + this.#followUp.messages.length > 0;
  }

  peekQueuedMessages(): AgentMessage[] {
    const steering = this.#steering.peek();
    return steering.length > 0 ? steering : this.#followUp.peek();
  }

  get signal(): AbortSignal | undefined {
    return this.#run?.controller.signal;
  }

  abort(): void {
    this.#run?.controller.abort();
  }

  async waitForIdle(): Promise<void> {
    await this.#run?.ended;
  }

  /** The conversation is empty again but for the prompt and the tools. */
  reset(): void {
    const { state } = this;
    const leading = createInitialSystemMessage(state.systemPrompt, state.tools.map(toToolDeclaration));
    state.messages = leading === undefined ? [] : [leading as unknown as AgentMessage];
    state.isStreaming = false;
    state.streamingMessage = undefined;
    state.pendingToolCalls = new Set();
    state.errorMessage = undefined;
    this.clearAllQueues();
  }

  async prompt(input: string | AgentMessage | AgentMessage[], images: unknown[] = []): Promise<void> {
    if (this.#run !== undefined) {
      throw new Error("Agent is already processing a prompt. Use steer() or followUp() to queue messages, or wait for completion.");
    }
    const messages = messagesOf(input, images);
    await this.#lifecycle((config, signal, emit) => runAgentLoop(messages, this.#context(), config, emit, signal, this.streamFunction));
  }

  async continue(): Promise<void> {
    if (this.#run !== undefined) throw new Error("Agent is already processing. Wait for completion before continuing.");
    const last = this.state.messages.findLast(({ role }) => role !== "system");
    if (last === undefined) throw new Error("No messages to continue from");
    if (last.role === "assistant") {
      const queued = this.#steering.messages.length > 0 ? this.#steering.take() : this.#followUp.take();
      if (queued.length === 0) throw new Error("Cannot continue from message role: assistant");
      return this.prompt(queued);
    }
    await this.#lifecycle((config, signal, emit) => runAgentLoopContinue(this.#context(), config, emit, signal, this.streamFunction));
  }

  #context() {
    return { messages: [...this.state.messages], tools: [...this.state.tools] };
  }

  #config(): LoopConfig {
    const member = <T>(name: (typeof MEMBERS)[number]): T | undefined => {
      const value = this[name];
      return (typeof value === "function" ? value.bind(this) : value) as T | undefined;
    };
    const config: Record<string, unknown> = {
      model: this.state.model,
      thinkingLevel: this.state.thinkingLevel,
      transport: this.transport,
      toolExecution: this.toolExecution,
      convertToLlm: this.convertToLlm.bind(this),
      getSteeringMessages: async () => this.#steering.take(),
      getFollowUpMessages: async () => this.#followUp.take(),
    };
    for (const name of MEMBERS) {
      const value = member(name);
      if (value !== undefined && !name.startsWith("prepareNextTurn")) config[name] = value;
    }
    const [withContext, plain] = [member<LoopConfig["prepareNextTurn"]>("prepareNextTurnWithContext"), member<(signal?: AbortSignal) => unknown>("prepareNextTurn")];
    if (withContext !== undefined) config["prepareNextTurn"] = withContext;
    else if (plain !== undefined) config["prepareNextTurn"] = (_turn: unknown, signal?: AbortSignal) => plain(signal);
    return config as LoopConfig;
  }

  async #lifecycle(run: (config: LoopConfig, signal: AbortSignal, emit: (event: AgentEvent) => Promise<void>) => Promise<unknown>): Promise<void> {
    const controller = new AbortController();
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#run = { controller, ended };
    const { state } = this;
    state.isStreaming = true;
    state.streamingMessage = undefined;
    state.errorMessage = undefined;
    const emit = (event: AgentEvent) => this.#take(event, controller.signal);
    try {
      await run(this.#config(), controller.signal, emit);
    } catch (error) {
      await this.#failed(error, controller.signal.aborted, emit);
    } finally {
      state.isStreaming = false;
      state.streamingMessage = undefined;
      state.pendingToolCalls = new Set();
      this.#run = undefined;
      end();
    }
  }

  /** The loop itself has failed: an answer says so. */
  async #failed(error: unknown, isAborted: boolean, emit: (event: AgentEvent) => Promise<void>): Promise<void> {
    const { model } = this.state;
    const message: AgentMessage = {
      role: "assistant",
      content: [{ type: "text", text: "" }],
      api: model?.api,
      provider: model?.provider,
      model: model?.id,
      usage: emptyUsage(),
      stopReason: isAborted ? "aborted" : "error",
      errorMessage: error instanceof Error ? error.message : String(error),
      timestamp: Date.now(),
    };
    await emit({ type: "message_start", message });
    await emit({ type: "message_end", message });
    await emit({ type: "turn_end", message, toolResults: [] });
    await emit({ type: "agent_end", messages: [message] });
  }

  async #take(event: AgentEvent, signal: AbortSignal): Promise<void> {
    const { state } = this;
    const message = event["message"] as AgentMessage | undefined;
    const id = String(event["toolCallId"]);
    if (event.type === "message_start" || event.type === "message_update") state.streamingMessage = message;
    else if (event.type === "message_end" && message !== undefined) {
      state.streamingMessage = undefined;
      state.messages.push(message);
    } else if (event.type === "tool_execution_start") state.pendingToolCalls = new Set([...state.pendingToolCalls, id]);
    else if (event.type === "tool_execution_end") state.pendingToolCalls = new Set([...state.pendingToolCalls].filter((other) => other !== id));
    else if (event.type === "turn_end" && typeof message?.["errorMessage"] === "string") state.errorMessage = message["errorMessage"];
    for (const listener of this.#listeners) await listener(event, signal);
  }
}

function messagesOf(input: string | AgentMessage | AgentMessage[], images: unknown[]): AgentMessage[] {
  if (Array.isArray(input)) return input;
  if (typeof input !== "string") return [input];
  return [{ role: "user", content: [{ type: "text", text: input }, ...images], timestamp: Date.now() }];
}
