/** `session.agent`: the part of pi's `Agent` that sessions of the daemon have. Its loop runs in the daemon. */
import { NotAvailableError } from "../../unavailable.ts";
import type { LiveSession } from "./live_session.ts";

/** The session, as the view uses it. */
interface ViewedSession {
  readonly model: unknown;
  readonly thinkingLevel: string;
  readonly systemPrompt: string;
  readonly messages: unknown[];
  getActiveToolNames(): string[];
  getAllTools(): Record<string, unknown>[];
  subscribe(listener: (event: Record<string, unknown>) => void): () => void;
  abort(): Promise<void>;
  waitForIdle(): Promise<void>;
  clearQueue(): unknown;
}

/** Members of pi's `Agent` by which its loop is changed: it runs in the daemon. */
const OF_THE_LOOP = [
  ...["streamFunction", "convertToLlm", "transformContext", "beforeToolCall", "afterToolCall", "getApiKey", "onPayload", "onResponse"],
  ...["shouldStopAfterTurn", "prepareNextTurn", "prepareNextTurnWithContext", "prompt", "continue", "steer", "followUp", "reset"],
];

export class AgentView {
  readonly #session: ViewedSession;
  readonly #live: LiveSession;
  readonly state: Readonly<Record<string, unknown>>;

  constructor(session: ViewedSession, live: LiveSession) {
    this.#session = session;
    this.#live = live;
    this.state = stateOf(session, live);
  }

  get sessionId(): string {
    return this.#live.core.sessionId ?? "";
  }

  get signal(): undefined {
    return undefined;
  }

  hasQueuedMessages(): boolean {
    return this.#live.steering.length + this.#live.followUp.length > 0;
  }

  subscribe(listener: (event: Record<string, unknown>) => void): () => void {
    return this.#session.subscribe(listener);
  }

  abort(): void {
    this.#session.abort().catch((error: unknown) => console.error("An agent could not be stopped:", error));
  }

  waitForIdle(): Promise<void> {
    return this.#session.waitForIdle();
  }

  clearAllQueues(): void {
    this.#session.clearQueue();
  }
}

for (const name of OF_THE_LOOP) {
  const fail = (): never => {
    throw new NotAvailableError(`AgentSession.agent.${name}`);
  };
  Object.defineProperty(AgentView.prototype, name, { get: fail, set: fail });
}

function stateOf(session: ViewedSession, live: LiveSession): Readonly<Record<string, unknown>> {
  const getters: Record<string, () => unknown> = {
    systemPrompt: () => session.systemPrompt,
    model: () => session.model,
    thinkingLevel: () => session.thinkingLevel,
    tools: () => {
      const active = new Set(session.getActiveToolNames());
      return session.getAllTools().filter((tool) => active.has(String(tool["name"])));
    },
    messages: () => session.messages,
    isStreaming: () => live.isStreaming,
    streamingMessage: () => live.streamingMessage,
    pendingToolCalls: () => live.pendingToolCalls,
    errorMessage: () => live.errorMessage,
  };
  const state = {};
  for (const [name, get] of Object.entries(getters)) Object.defineProperty(state, name, { enumerable: true, get });
  return state;
}
