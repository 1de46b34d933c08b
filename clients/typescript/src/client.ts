import { setTimeout as delay } from "node:timers/promises";

import { type CallOptions, Calls, type Data, type Order, type RawOrder } from "./calls.js";
import { Channel } from "./channel.js";
import { AgentdError } from "./error.js";
import { DEFAULT_HIGH_WATER_MARK, EventQueue } from "./event_queue.js";
import type { ClientEvent, ResyncEvent } from "./events.js";
import { Flow } from "./flow.js";
import type { AttachedSession, Command, DaemonInfo, Event, ExtensionUiRequest, OpenSessionCommand, Response, Role } from "./protocol.js";
import { type QuestionHandlers, Questions } from "./questions.js";
import { Session, type SessionHost } from "./session.js";
import { type SocketOptions, openSocket } from "./socket.js";
import { type ProcessOptions, startProcess } from "./stdio.js";
import { Tools } from "./tools.js";
import type { Transport, TransportListener } from "./transport.js";

/** What both kinds of clients can be told. */
export interface ClientOptions extends QuestionHandlers {
  /** The client's name, for lists and logs; default `agentd-client`. */
  name?: string;
  /** Its version. */
  version?: string;
  /** `observe`: only look and follow; default `control`. */
  role?: Role;
  /** The number of unread events at which agentd has to wait; default 1024. */
  highWaterMark?: number;
  /** The longest line that is read, in bytes; default 256 MiB. */
  maxLineBytes?: number;
  /** Gets errors that no call can give: those of question handlers, and answers that were refused. Without it they are thrown as uncaught. */
  onError?(error: unknown): void;
}

/** How to start an agentd of one's own. */
export interface SpawnOptions extends ClientOptions, ProcessOptions {}

/** How to reach the user's daemon. */
export interface ConnectOptions extends ClientOptions, SocketOptions {
  /** How often a lost connection is tried again, with growing pauses of at most 2 seconds; default 10, 0: never. */
  reconnectAttempts?: number;
}

/** How a session is opened. */
export interface OpenOptions extends Omit<OpenSessionCommand, "id" | "type" | "cwd" | "env" | "attach"> {
  /** The folder to work in; default the current one. */
  cwd?: string;
  /** The environment of the session, with the keys of providers; default this process's. `null`: the daemon's. */
  env?: NodeJS.ProcessEnv | null;
}

/** The session and what opens it again in another daemon. */
interface Followed {
  channel: Channel;
  session: Session;
  /** The fields of `open_session`; absent for a session that was attached or was there from the start. */
  opened: Omit<OpenSessionCommand, "id" | "type"> | undefined;
}

type Opener = (listener: TransportListener) => Promise<Transport>;

const PROTOCOL = 1;

/** A connection to agentd: its own process, or the daemon that all clients of the user share. */
export class Agentd {
  readonly #options: ClientOptions;
  readonly #opener: Opener;
  readonly #reconnectAttempts: number;
  readonly #calls: Calls;
  readonly #flow: Flow;
  readonly #tools: Tools;
  readonly #questions: Questions;
  readonly #host: SessionHost;
  readonly #followed = new Map<string, Followed>();
  readonly #queues = new Set<EventQueue<ClientEvent>>();
  #transport: Transport | undefined;
  #daemon: DaemonInfo | undefined;
  /** What the daemon said about the connection, before it ended it. */
  #refusal: AgentdError | undefined;
  #isReconnecting = false;
  #end: AgentdError | undefined;

  /** Starts `agentd --stdio`, which ends with this client. `currentSession()` is the session that its flags opened. */
  static async spawn(options: SpawnOptions = {}): Promise<Agentd> {
    const opener: Opener = (listener) => startProcess(options, listener, options.maxLineBytes);
    return new Agentd(options, opener, 0).#begin();
  }

  /** Connects to the user's daemon, and starts it with the option `start`. A lost connection is restored. */
  static async connect(options: ConnectOptions = {}): Promise<Agentd> {
    const opener: Opener = (listener) => openSocket(options, listener, options.maxLineBytes);
    return new Agentd(options, opener, options.reconnectAttempts ?? 10).#begin();
  }

  private constructor(options: ClientOptions, opener: Opener, reconnectAttempts: number) {
    this.#options = options;
    this.#opener = opener;
    this.#reconnectAttempts = reconnectAttempts;
    this.#flow = new Flow((isPaused) => this.#transport?.setPaused(isPaused));
    this.#calls = new Calls(() => this.#flow.callsChanged(this.#calls.size));
    const report = (error: unknown): void => {
      if (options.onError) options.onError(error);
      else queueMicrotask(() => { throw error; });
    };
    const call = (order: RawOrder, more?: CallOptions): Promise<unknown> => this.#send(order, more);
    this.#tools = new Tools({ call, report });
    this.#questions = new Questions(options, { call, report, sendLine: (line) => this.#transport?.write(JSON.stringify(line)) });
    this.#host = {
      call,
      flow: this.#flow,
      highWaterMark: options.highWaterMark ?? DEFAULT_HIGH_WATER_MARK,
      addTool: (sessionId, tool) => this.#tools.add(sessionId, tool),
      removeTool: (sessionId, name) => this.#tools.remove(sessionId, name),
      left: (sessionId) => this.#forget(sessionId),
    };
  }

  /** The daemon: its version, its process. */
  get daemon(): DaemonInfo {
    if (!this.#daemon) throw new AgentdError("closed", "There is no connection yet.");
    return this.#daemon;
  }

  /** Opens a new or stored session, or joins an open one. */
  async openSession(options: OpenOptions = {}): Promise<Session> {
    const { cwd = process.cwd(), env = process.env, ...fields } = options;
    const opened = { ...fields, cwd, ...(env === null ? {} : { env: withValues(env) }) };
    let found: Session | undefined;
    await this.#send({ type: "open_session", ...opened }, {
      // The session's events follow the answer at once.
      onAnswer: (data) => {
        const { sessionId, epoch, seq, pendingUi } = data as Data<"open_session">;
        found = this.#follow(sessionId, epoch, seq, pendingUi ?? [], opened);
      },
    });
    return found as Session;
  }

  /** Joins a session by its id. */
  async attachSession(sessionId: string): Promise<Session> {
    let found: Session | undefined;
    await this.#send({ type: "attach_session", sessionId }, {
      onAnswer: (data) => {
        const { epoch, seq, pendingUi } = data as AttachedSession;
        found = this.#follow(sessionId, epoch, seq, pendingUi, undefined);
      },
    });
    return found as Session;
  }

  /** The session that `agentd --stdio` has opened by its flags. */
  async currentSession(): Promise<Session> {
    const { sessionId } = await this.call({ type: "get_state" });
    return this.#followed.get(sessionId)?.session ?? (await this.attachSession(sessionId));
  }

  /** All events of this client, from now on: of all sessions that it follows, of `watch_sessions`, and of the connection. */
  events(): EventQueue<ClientEvent> {
    const queue: EventQueue<ClientEvent> = new EventQueue(
      {
        fullnessChanged: (which, isFull) => this.#flow.fullnessChanged(which, isFull),
        left: (which) => {
          this.#queues.delete(queue);
          this.#flow.left(which);
        },
      },
      this.#host.highWaterMark,
    );
    this.#queues.add(queue);
    if (this.#end) queue.finish({ error: this.#end });
    return queue;
  }

  /** Sends any command, and gives the `data` of its answer. */
  call<One extends Order>(order: One): Promise<Data<One["type"] & Command["type"]>> {
    return this.#send(order) as Promise<Data<One["type"] & Command["type"]>>;
  }

  /** Ends the connection. An agentd of one's own ends with it, sessions of the daemon go on. */
  async close(): Promise<void> {
    const error = new AgentdError("closed", "The client was closed.");
    const transport = this.#transport;
    this.#conclude(error, true);
    await transport?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #begin(): Promise<this> {
    try {
      await this.#connect();
    } catch (error) {
      await this.#transport?.close();
      throw error;
    }
    return this;
  }

  #send(order: RawOrder, options?: CallOptions): Promise<unknown> {
    if (this.#end) {
      const { code, message, hint } = this.#end;
      return Promise.reject(new AgentdError(code, message, { hint, command: order.type, cause: this.#end }));
    }
    return this.#calls.send(order, options);
  }

  /** Connects, introduces this client, and takes up the sessions again. */
  async #connect(): Promise<void> {
    const listener: TransportListener = {
      line: (text) => { if (this.#transport === transport || !transport) this.#take(text); },
      ended: (error) => { if (this.#transport === transport) this.#lost(error); },
    };
    let transport: Transport | undefined;
    transport = await this.#opener(listener);
    if (this.#end) {
      await transport.close();
      throw this.#end;
    }
    this.#transport = transport;
    this.#calls.connected((line) => transport.write(line));
    this.#flow.reset();
    const { name = "agentd-client", version, role } = this.#options;
    const hello = {
      type: "hello",
      protocol: PROTOCOL,
      client: { name, ...(version === undefined ? {} : { version }) },
      capabilities: { sessions: true, ...this.#questions.capabilities },
      ...(role === undefined ? {} : { role }),
    };
    const { daemon } = (await this.#calls.send(hello, { isUrgent: true })) as Data<"hello">;
    const isOther = this.#daemon !== undefined && this.#daemon.epoch !== daemon.epoch;
    this.#daemon = daemon;
    for (const followed of [...this.#followed.values()]) await this.#takeUp(followed, isOther);
    this.#calls.ready();
  }

  /** Follows a session again from where it was lost. */
  async #takeUp({ channel, opened }: Followed, isOther: boolean): Promise<void> {
    const { sessionId, epoch, seq } = channel;
    const order =
      isOther && opened
        ? // Another daemon has to open it with the flags and the environment that it had.
          { type: "open_session", ...reopening(opened), sessionId }
        : { type: "attach_session", sessionId, since: { epoch, seq } };
    try {
      if (isOther && opened?.ephemeral) throw new AgentdError("session_not_found", "The session was kept in memory, and is gone.");
      await this.#calls.send(order, { isUrgent: true, onAnswer: (data) => this.#resume(channel, data as AttachedSession, isOther) });
      const registration = this.#tools.registration(sessionId);
      if (registration) await this.#calls.send(registration, { isUrgent: true });
    } catch (error) {
      if (!(error instanceof AgentdError) || error.code === "connection_lost") throw error;
      this.#followed.delete(sessionId);
      channel.end(error);
    }
  }

  /** The answer to `attach_session` or `open_session` after a loss. */
  #resume(channel: Channel, data: AttachedSession | Data<"open_session">, isOtherDaemon: boolean): void {
    const isReplayed = "replayed" in data && data.replayed;
    channel.moveTo(data.epoch, data.seq);
    if (!isReplayed) {
      const { sessionId } = channel;
      const state = "state" in data ? data.state : data;
      const inFlight = "inFlight" in data ? data.inFlight : undefined;
      const event: ResyncEvent = { type: "resync", sessionId, state, isOtherDaemon, ...(inFlight ? { inFlight } : {}) };
      channel.deliver(event);
      for (const queue of this.#queues) queue.push(event);
    }
    for (const question of data.pendingUi ?? []) this.#questions.ask(question, channel.sessionId);
  }

  #follow(sessionId: string, epoch: string, seq: number, pendingUi: ExtensionUiRequest[], opened: Followed["opened"]): Session {
    let followed = this.#followed.get(sessionId);
    if (followed) {
      followed.opened ??= opened;
    } else {
      const channel = new Channel(sessionId, epoch, seq);
      followed = { channel, session: new Session(channel, this.#host), opened };
      this.#followed.set(sessionId, followed);
    }
    for (const question of pendingUi) this.#questions.ask(question, sessionId);
    return followed.session;
  }

  #forget(sessionId: string, error?: AgentdError): void {
    const followed = this.#followed.get(sessionId);
    this.#followed.delete(sessionId);
    this.#tools.forget(sessionId);
    followed?.channel.end(error);
  }

  #take(text: string): void {
    const line = parsed(text);
    if (line.type === "response") {
      // A failure without an `id` is about the connection, such as the limit of clients; the end of it follows.
      if (!this.#calls.answer(line) && !line.success) {
        this.#refusal = new AgentdError(line.code, line.error, { hint: line.hint, command: line.command });
      }
      return;
    }
    const { type } = line;
    if (type === "tool_request") void this.#tools.request(line);
    else if (type === "tool_cancel") this.#tools.cancel(line);
    else if (type === "extension_ui_request") this.#questions.ask(line, line.sessionId ?? "");
    else if (type === "ui_request_resolved") this.#questions.resolved(line.id, line.by);
    else if (type === "lagged") void this.#catchUp(line.sessionId);
    const followed = line.sessionId === undefined ? undefined : this.#followed.get(line.sessionId);
    followed?.channel.deliver(line);
    for (const queue of this.#queues) queue.push(line);
    if (type === "session_closed" && followed) this.#forget(line.sessionId);
  }

  /** Attaches again after this client was too slow for its session. */
  async #catchUp(sessionId: string): Promise<void> {
    const followed = this.#followed.get(sessionId);
    if (!followed) return;
    const { channel } = followed;
    const order = { type: "attach_session", sessionId, since: { epoch: channel.epoch, seq: channel.seq } };
    try {
      await this.#send(order, { onAnswer: (data) => this.#resume(channel, data as AttachedSession, false) });
    } catch (error) {
      // With a lost connection it is taken up again in any case.
      if (!(error instanceof AgentdError) || !["connection_lost", "closed"].includes(error.code)) this.#forget(sessionId, error as AgentdError);
    }
  }

  #lost(end: AgentdError): void {
    const error = this.#refusal ?? end;
    this.#refusal = undefined;
    this.#transport = undefined;
    this.#tools.cancelAll(error);
    // Without a daemon that was ever reached, the caller of `connect` gets the error.
    const isRestorable = this.#reconnectAttempts > 0 && !this.#end;
    this.#calls.lost(error);
    if (!isRestorable) this.#conclude(error, false);
    else if (this.#daemon && !this.#isReconnecting) void this.#reconnect(error);
  }

  async #reconnect(lost: AgentdError): Promise<void> {
    this.#isReconnecting = true;
    this.#tell("lost");
    let last = lost;
    for (let attempt = 0; attempt < this.#reconnectAttempts && !this.#end; attempt += 1) {
      if (attempt > 0) await delay(Math.min(50 * 2 ** attempt, 2000));
      try {
        await this.#connect();
        this.#isReconnecting = false;
        this.#tell("restored");
        return;
      } catch (error) {
        last = error instanceof AgentdError ? error : new AgentdError("protocol", String(error), { cause: error });
      }
    }
    this.#isReconnecting = false;
    this.#conclude(new AgentdError("connection_lost", `${lost.message} It could not be reached again: ${last.message}`, { hint: last.hint, cause: last }), false);
  }

  #tell(state: "lost" | "restored"): void {
    for (const queue of this.#queues) queue.push({ type: "connection", state });
  }

  /** Ends everything that waits; in order, iterators end without an error. */
  #conclude(error: AgentdError, isOrderly: boolean): void {
    if (this.#end) return;
    this.#end = error;
    this.#transport = undefined;
    this.#calls.failAll(error);
    this.#tools.cancelAll(error);
    this.#questions.closeAll(error);
    for (const id of [...this.#followed.keys()]) this.#forget(id, isOrderly ? undefined : error);
    for (const queue of [...this.#queues]) queue.finish(isOrderly ? {} : { error });
  }
}

function parsed(text: string): Event | Response {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch (error) {
    throw new AgentdError("protocol", `agentd sent a line that is no JSON: ${text.slice(0, 100)}`, { cause: error });
  }
  if (typeof line !== "object" || line === null || typeof (line as { type?: unknown }).type !== "string") {
    throw new AgentdError("protocol", `agentd sent a line without a type: ${text.slice(0, 100)}`);
  }
  return line as Event | Response;
}

/** The fields that open the same session again: it is known by its id, and keeps the name that it has. */
function reopening(opened: Omit<OpenSessionCommand, "id" | "type">): Omit<OpenSessionCommand, "id" | "type"> {
  const { path: _path, continue: _continue, name: _name, ifIdle: _ifIdle, ...rest } = opened;
  return rest;
}

function withValues(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
