import type { Channel } from "./channel.js";
import type { CallOptions, Data, Order, RawOrder } from "./calls.js";
import { AgentdError } from "./error.js";
import { EventQueue } from "./event_queue.js";
import type { SessionEvent } from "./events.js";
import type { Flow } from "./flow.js";
import type { PromptOptions } from "./prompt_options.js";
import type { AbortScope, Command, Image, Message, SessionState } from "./protocol.js";
import { Run } from "./run.js";
import { type AnsweringSession, StructuredAnswer } from "./structured_answer.js";
import { type Tool, declaration } from "./tools.js";

/** What a session needs of its client. */
export interface SessionHost {
  readonly flow: Flow;
  readonly highWaterMark: number;
  call(order: RawOrder, options?: CallOptions): Promise<unknown>;
  addTool(sessionId: string, tool: Tool<never>): void;
  removeTool(sessionId: string, name: string): void;
  /** The client does not follow the session any more. */
  left(sessionId: string): void;
}

/** A command of a session, without what the library adds. */
export type SessionOrder = Order extends infer One ? (One extends Order ? Omit<One, "sessionId"> : never) : never;

/** A session that this client follows. */
export class Session {
  /** Its id. */
  readonly id: string;
  readonly #channel: Channel;
  readonly #host: SessionHost;

  /** Made by `Agentd`. */
  constructor(channel: Channel, host: SessionHost) {
    this.id = channel.sessionId;
    this.#channel = channel;
    this.#host = host;
  }

  /** Sends a message. The run that comes back has its events and its outcome; a refusal is there, too. */
  prompt(message: string, options: PromptOptions = {}): Run {
    const { signal, ...fields } = options;
    return new Run(
      {
        channel: this.#channel,
        flow: this.#host.flow,
        highWaterMark: this.#host.highWaterMark,
        send: (onAnswer) =>
          this.#host.call({ type: "prompt", message, ...fields, sessionId: this.id }, {
            onAnswer: (data, wasRepeated) => onAnswer(data as Data<"prompt">, wasRepeated),
          }),
        abort: async () => void (await this.call({ type: "abort" })),
        state: () => this.state(),
        messages: () => this.messages(),
      },
      signal,
    );
  }

  /** Sends a message, and gives the text of the last answer. */
  async ask(message: string, options: PromptOptions = {}): Promise<string> {
    return (await this.prompt(message, options).result()).text;
  }

  /**
   * Sends a message, and gives an answer that fits a JSON Schema. The model gives it by calling a tool, whose arguments agentd checks; where
   * it does not, it is asked again, twice at most. Rejects with `bad_answer` when that does not help.
   */
  async askFor<T>(schema: Record<string, unknown>, message: string, options: PromptOptions = {}): Promise<T> {
    const session: AnsweringSession = {
      prompt: (text, more) => this.prompt(text, more),
      state: () => this.state(),
      registerTool: (tool) => this.registerTool(tool),
      setRules: async (rules) => void (await this.call({ type: "set_permissions", rules })),
    };
    return new StructuredAnswer<T>(session, schema).ask(message, options);
  }

  /** The events from now on. A reader that lags behind lets agentd wait. The iterator ends with the session. */
  events(): EventQueue<SessionEvent> {
    let stop = (): void => {};
    const queue: EventQueue<SessionEvent> = new EventQueue(
      {
        fullnessChanged: (which, isFull) => this.#host.flow.fullnessChanged(which, isFull),
        left: (which) => {
          stop();
          this.#host.flow.left(which);
        },
      },
      this.#host.highWaterMark,
    );
    stop = this.#channel.listen({
      event: (event) => queue.push(event),
      ended: (error) => queue.finish(error ? { error } : {}),
    });
    return queue;
  }

  /** A message for the next turn of the run. */
  async steer(message: string, images: Image[] = []): Promise<void> {
    await this.call({ type: "steer", message, images });
  }

  /** A message for the time after the run. */
  async followUp(message: string, images: Image[] = []): Promise<void> {
    await this.call({ type: "follow_up", message, images });
  }

  /** Stops work, also of other clients; resolves when it has stopped. */
  async abort(scope?: AbortScope): Promise<void> {
    await this.call(scope ? { type: "abort", scope } : { type: "abort" });
  }

  /** The state: model, thinking level, what is at work. */
  state(): Promise<SessionState> {
    return this.call({ type: "get_state" });
  }

  /** The messages that the model gets to read. */
  async messages(): Promise<Message[]> {
    return (await this.call({ type: "get_messages" })).messages;
  }

  /** Gives the model a tool. The function that comes back takes it away. */
  async registerTool<Args = Record<string, unknown>>(tool: Tool<Args>): Promise<() => Promise<void>> {
    const kept = tool as Tool<never>;
    this.#host.addTool(this.id, kept);
    try {
      await this.call({ type: "register_tools", tools: [declaration(kept)] });
    } catch (error) {
      // After a lost connection it is registered with the others.
      if (!(error instanceof AgentdError && error.code === "connection_lost" && !this.#channel.hasEnded)) {
        this.#host.removeTool(this.id, tool.name);
        throw error;
      }
    }
    return async () => {
      this.#host.removeTool(this.id, tool.name);
      if (!this.#channel.hasEnded) await this.call({ type: "unregister_tools", tools: [tool.name] });
    };
  }

  /** Sends any command of a session, and gives the `data` of its answer. */
  call<One extends SessionOrder>(order: One): Promise<Data<One["type"] & Command["type"]>> {
    return this.#host.call({ ...order, sessionId: this.id }) as Promise<Data<One["type"] & Command["type"]>>;
  }

  /** Leaves the session, which goes on. */
  async detach(): Promise<void> {
    await this.call({ type: "detach_session" });
    this.#host.left(this.id);
  }

  /** Ends the session's work (`drain` finishes it, `abort` stops it), and unloads it. */
  async close(mode: "drain" | "abort" = "drain"): Promise<void> {
    await this.call({ type: "close_session", mode });
    this.#host.left(this.id);
  }
}
