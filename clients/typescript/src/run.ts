import type { Channel } from "./channel.js";
import { AgentdError } from "./error.js";
import { EventQueue } from "./event_queue.js";
import type { SessionEvent } from "./events.js";
import type { Flow } from "./flow.js";
import type { Accepted, AssistantMessage, Disposition, Message, SessionState, UserMessage } from "./protocol.js";
import { type RunResult, Tally } from "./results.js";

/** What a run needs of its session. */
export interface RunHost {
  readonly channel: Channel;
  readonly flow: Flow;
  readonly highWaterMark: number;
  /** Sends the prompt; `onAnswer` is called before the events after the answer. */
  send(onAnswer: (accepted: Accepted, wasRepeated: boolean) => void): Promise<unknown>;
  abort(): Promise<void>;
  state(): Promise<SessionState>;
  messages(): Promise<Message[]>;
}

/**
 * A prompt and the work that it begins.
 *
 * Iterate over it for its events, until the session has settled; await `result()` for the outcome. The events wait for their reader, and
 * let agentd wait when there are many: `result()` without an iterator gives them up. Leaving the loop early does not stop
 * the work; `abort()` does.
 */
export class Run implements AsyncIterable<SessionEvent> {
  readonly #host: RunHost;
  readonly #queue: EventQueue<SessionEvent>;
  readonly #tally = new Tally();
  readonly #result: Promise<RunResult>;
  readonly #disposition: Promise<Disposition>;
  readonly #isOver: Promise<void>;
  #finish: (outcome: { result: RunResult } | { error: AgentdError }) => void = () => {};
  #isIterated = false;
  #isDone = false;
  #isAccepted = false;
  #isStopped = false;
  /** What came before the answer, from the begin of a run on; of use only if the prompt had to be sent again. */
  #early: SessionEvent[] | undefined;

  constructor(host: RunHost, signal?: AbortSignal) {
    this.#host = host;
    this.#queue = new EventQueue(host.flow, host.highWaterMark);
    this.#result = new Promise((resolve, reject) => {
      this.#finish = (outcome) => {
        if (this.#isDone) return;
        this.#isDone = true;
        stop();
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.result);
      };
    });
    // A caller that only iterates learns of a failure by the events.
    this.#result.catch(() => {});
    this.#isOver = this.#result.then(() => {}, () => {});
    let stop = (): void => {};
    if (signal?.aborted) {
      this.#disposition = Promise.reject(stopped(this.#tally, signal.reason));
      this.#disposition.catch((error: AgentdError) => this.#fail(error));
      return;
    }
    const unlisten = host.channel.listen({
      event: (event) => this.#take(event),
      ended: (error) => this.#fail(error ?? new AgentdError("closed", "The session was closed.")),
    });
    const onAbort = (): void => void this.abort().catch((error: AgentdError) => this.#fail(error));
    signal?.addEventListener("abort", onAbort, { once: true });
    stop = () => {
      unlisten();
      signal?.removeEventListener("abort", onAbort);
    };
    if (this.#isDone) stop();
    this.#disposition = host.send((accepted, wasRepeated) => this.#accepted(accepted, wasRepeated)).then(
      (accepted) => (accepted as Accepted).disposition,
    );
    this.#disposition.catch((error: AgentdError) => this.#fail(error));
  }

  /** Whether the prompt has begun a run or waits in a queue; rejects when it was refused. */
  accepted(): Promise<Disposition> {
    return this.#disposition;
  }

  /**
   * The outcome, once the session has settled.
   *
   * Rejects with an AgentdError when the prompt is refused, the model fails (`model_failed` or a closer code), a budget is used
   * up (`limit_reached`) or the run is stopped (`aborted`); its `result` then holds what came.
   */
  async result(): Promise<RunResult> {
    if (!this.#isIterated) void this.#queue.return();
    const release = this.#host.flow.hold();
    try {
      return await this.#result;
    } finally {
      release();
    }
  }

  /** The additions to the text of all answers, as they come. */
  async *text(): AsyncGenerator<string> {
    for await (const event of this) {
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") {
        yield event.assistantMessageEvent.delta;
      }
    }
  }

  /** Stops the work, and resolves when the session has settled. A prompt that is refused stops nothing: the work is another one's. */
  async abort(): Promise<void> {
    this.#isStopped = true;
    try {
      await this.#disposition;
    } catch {
      // `result()` tells why.
      return;
    }
    while (!this.#isDone) {
      try {
        await this.#host.abort();
        return;
      } catch (error) {
        // Lost with the connection: the next one takes it, unless the run is over.
        if (!(error instanceof AgentdError && error.code === "connection_lost" && !this.#host.channel.hasEnded)) throw error;
      }
    }
  }

  [Symbol.asyncIterator](): AsyncIterator<SessionEvent> {
    if (this.#isIterated) throw new TypeError("A run can be iterated over once.");
    this.#isIterated = true;
    return this.#queue;
  }

  /** Stops the work, if it is not over. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isDone) await this.abort();
    await this.#isOver;
  }

  #take(event: SessionEvent): void {
    if (this.#isAccepted) {
      this.#use(event);
    } else if (event.type === "agent_start") {
      this.#early = [event];
    } else {
      this.#early?.push(event);
    }
  }

  #accepted({ disposition }: Accepted, wasRepeated: boolean): void {
    this.#isAccepted = true;
    const early = wasRepeated ? (this.#early ?? []) : [];
    this.#early = undefined;
    for (const event of early) this.#use(event);
    if (disposition === "handled") this.#settle(false);
    // The run that the first sending began may be over.
    else if (wasRepeated) void this.#lookAgain();
  }

  #use(event: SessionEvent): void {
    if (this.#isDone) return;
    this.#queue.push(event);
    if (event.type === "message_end" && event.message.role === "assistant") this.#tally.answer(event.message);
    else if (event.type === "tool_execution_start") this.#tally.toolCall();
    else if (event.type === "agent_settled") this.#settle(event.aborted);
    else if (event.type === "resync" && event.isOtherDaemon) {
      this.#fail(interrupted(this.#tally));
    } else if (event.type === "resync" && !event.state.isStreaming) void this.#lookAgain();
  }

  /** Asks whether the run is over, where its last events may be lost, and takes the outcome from the messages. */
  async #lookAgain(): Promise<void> {
    try {
      const state = await this.#host.state();
      if (this.#isDone || state.isStreaming) return;
      const messages = await this.#host.messages();
      if (this.#isDone) return;
      const last = messages.findLast((message): message is AssistantMessage | UserMessage =>
        message.role === "assistant" || message.role === "user");
      if (last?.role !== "assistant") {
        this.#fail(interrupted(this.#tally));
        return;
      }
      if (this.#tally.result().message?.timestamp !== last.timestamp) this.#tally.answer(last);
      this.#settle(last.stopReason === "aborted");
    } catch (error) {
      this.#fail(error as AgentdError);
    }
  }

  #settle(isAborted: boolean): void {
    const result = this.#tally.result();
    this.#queue.finish();
    const { message } = result;
    if (isAborted || this.#isStopped) {
      this.#finish({ error: stopped(this.#tally) });
    } else if (message?.stopReason === "error") {
      const code = message.code ?? "model_failed";
      this.#finish({ error: new AgentdError(code, message.errorMessage ?? "The model failed.", { command: "prompt", result }) });
    } else {
      this.#finish({ result });
    }
  }

  #fail(error: AgentdError): void {
    this.#queue.finish({ error });
    this.#finish({ error });
  }
}

function interrupted(tally: Tally): AgentdError {
  return new AgentdError("connection_lost", "The daemon ended while it was at work.", {
    hint: "What was finished is in the session: read its messages.",
    command: "prompt",
    result: tally.result(),
  });
}

function stopped(tally: Tally, cause?: unknown): AgentdError {
  return new AgentdError("aborted", "The run was stopped.", { command: "prompt", result: tally.result(), cause });
}
