/** The host: owns the state of the process and answers the daemon's requests. */
import { Channels } from "../connection/channel.ts";
import type { HostLink } from "../connection/host_link.ts";
import { Contexts } from "../extension/context.ts";
import { EventBus } from "../extension/event_bus.ts";
import type { ExtensionSource } from "../extension/extension.ts";
import { Generation } from "../extension/generation.ts";
import type { Actor, Binding, HostPort } from "../extension/port.ts";
import { ProviderRegistrar } from "../extension/providers.ts";
import { STALE } from "../extension/texts.ts";
import { Hooks } from "../hooks/serve.ts";
import type { DeliveryState } from "../hooks/delivery.ts";
import { Loader, type LoadReport } from "../loader/loader.ts";
import type { ModuleTable } from "../loader/jiti.ts";
import type { UnavailableNames } from "../loader/missing.ts";
import { MessageStore } from "../messages/store.ts";
import { CallError, errorRecord, messageOf, stackOf } from "../protocol/errors.ts";
import { type DaemonRecord, isObject, type JsonObject, type ResultRecord } from "../protocol/records.ts";
import type { AgentHost, AgentPlace, CallOptions, Hello, HostServices } from "../services.ts";
import { Callbacks } from "./callbacks.ts";
import { type Caller, Calls } from "./calls.ts";
import { Mirror } from "./mirror.ts";
import { Outbound } from "./outbound.ts";
import { Requests } from "./requests.ts";
import { AgentSessions } from "./agent_sessions.ts";
import { Scopes } from "./scope.ts";
import { serve } from "./serve.ts";

/** What extensions import, made by the other half of the host. */
export interface ModuleFactories {
  createModules(services: HostServices): ModuleTable;
  createTheme(ansi: boolean): unknown;
  /** Exports that throw when used, by specifier. */
  unavailable(): UnavailableNames;
  /** The messages that a model sees of these. */
  convertToLlm(messages: unknown[]): unknown[];
  /** The host of an agent of an extension. */
  createAgentHost(parent: Host, place: AgentPlace): AgentHost;
}

export class Host implements HostPort {
  readonly bus: EventBus;
  readonly scopes = new Scopes();
  readonly channels: Channels;
  readonly agents: AgentSessions;
  binding: Binding | undefined;
  readonly callbacks = new Callbacks();
  readonly requests = new Requests();
  readonly registrar = new ProviderRegistrar(this);
  readonly contexts = new Contexts(this, this.registrar);
  readonly out: Outbound;
  readonly calls: Calls;
  readonly mirror: Mirror;
  readonly messages = new MessageStore();
  readonly hooks: Hooks;
  theme: unknown;
  loader!: Loader;
  /** The epoch that lives; absent before the first load and between `unload` and the next. */
  generation: Generation | undefined;
  protected greeting: Hello | undefined;
  private nextH = 1;
  private modules: ModuleTable | undefined;

  constructor(
    link: HostLink,
    readonly factories: ModuleFactories,
    bus: EventBus = new EventBus(),
  ) {
    this.bus = bus;
    this.out = new Outbound(link);
    this.mirror = new Mirror((topic, etag) => this.read(topic, etag));
    this.channels = new Channels(link, (record) => this.takePatch(record));
    this.agents = new AgentSessions(this);
    this.calls = new Calls(link, this.out, (record) => this.takePatch(record), this.scopes);
    const state: DeliveryState = {
      store: this.messages,
      partial: undefined,
      renderPrompt: (options) => this.renderPrompt(options),
      boundaryContext: (event, drafts) => this.boundaryContext(event, drafts),
    };
    this.hooks = new Hooks(state, this.contexts, this.callbacks, this.scopes);
  }

  get hello(): Hello {
    if (this.greeting === undefined) throw new Error("agentd has not sent its greeting yet");
    return this.greeting;
  }

  greet(hello: Hello): void {
    this.greeting = hello;
    this.out.setMaxLineBytes(hello.limits.maxLineBytes);
    this.calls.setSyncCallMs(hello.limits.syncCallMs);
    this.prepare(hello);
  }

  /** Makes what depends on where the host is. */
  protected prepare(hello: Hello): void {
    if (this.loader !== undefined) return;
    this.theme = this.factories.createTheme(hello.ansi);
    this.loader = new Loader(this, this.registrar, {
      modules: () => this.moduleTable(),
      unavailable: () => this.factories.unavailable(),
      cacheDir: hello.cacheDir,
    });
  }

  /** Takes a patch of a mirror, of a channel too; false: the record is another one. */
  takePatch(record: DaemonRecord): boolean {
    return this.mirror.apply(record) || this.channels.takePatchOf(record);
  }

  /** Takes the next record of the daemon. */
  receive(record: DaemonRecord): void {
    if (record.type === "result") this.calls.settle(record as unknown as ResultRecord);
    else if (this.takeNote(record) || record.id === undefined) return;
    else void this.answer(record, record.id);
  }

  /** The generation of a request. Throws when its epoch is not the living one. */
  living(request: DaemonRecord): Generation {
    const { generation } = this;
    const { epoch } = request;
    if (generation === undefined || generation.isStale || generation.epoch !== epoch) throw new CallError(STALE, "stale");
    return generation;
  }

  /** The generation of a `load`: the living one of the same epoch, or a new one. */
  generationFor(epoch: number): Generation {
    if (this.generation === undefined || this.generation.isStale || this.generation.epoch !== epoch) {
      this.generation?.invalidate();
      this.generation = new Generation(epoch);
    }
    return this.generation;
  }

  /** Answers a request of `shutdown`. */
  shutDown(): void {
    // The process ends after the answer is written.
    setImmediate(() => process.exit(0));
  }

  /** Whether its session was opened by an extension of this process. */
  get isNested(): boolean {
    return false;
  }

  load(generation: Generation, source: ExtensionSource, within: number | undefined): Promise<LoadReport> {
    return this.loader.load(generation, source, this.hello.cwd, within);
  }

  /** All extensions of a request are loaded. */
  loaded(): void {}

  /** Actions are legal from here on. */
  hasBound(): void {}

  /** Whether handlers of an event are run when the daemon asks for it. */
  hears(_event: string): boolean {
    return true;
  }

  unload(epoch: number): void {
    if (this.generation?.epoch === epoch) this.generation.invalidate();
    this.callbacks.forgetEpoch(epoch);
    this.messages.clear();
    this.mirror.reset();
  }

  nextHandler(): number {
    return this.nextH++;
  }

  async call(actor: Actor, method: string, params: object, opts?: CallOptions): Promise<unknown> {
    try {
      return await this.calls.call(callerOf(actor), method, params, opts);
    } catch (error) {
      throw withStaleText(error);
    }
  }

  callSync(actor: Actor, method: string, params: object): unknown {
    try {
      return this.calls.callSync(callerOf(actor), method, params);
    } catch (error) {
      throw withStaleText(error);
    }
  }

  note(actor: Actor, type: string, fields: JsonObject): void {
    this.out.send({ type, epoch: actor.generation.epoch, ext: actor.ext, ...fields });
  }

  reportError(actor: Actor, event: string, error: unknown): void {
    this.note(actor, "error", { event, message: messageOf(error), stack: stackOf(error) });
  }

  /** Reports what nobody caught. The extension is known when the failure came from its code. */
  reportUncaught(error: unknown): void {
    const record: JsonObject = { type: "error", event: "uncaught", message: messageOf(error), stack: stackOf(error) };
    const epoch = this.generation?.epoch ?? this.greeting?.epoch;
    if (epoch !== undefined) record["epoch"] = epoch;
    record["ext"] = this.scopes.current()?.ext ?? "<host>";
    try {
      this.out.send(record);
    } catch (failure) {
      // Nothing above this can report it.
      console.error("agentd host: an uncaught error could not be reported:", failure);
    }
  }

  private async answer(record: DaemonRecord, id: number): Promise<void> {
    const signal = this.requests.begin(id);
    try {
      this.out.result(id, await serve(this, record, signal));
    } catch (error) {
      this.out.failure(id, errorRecord(error));
    } finally {
      this.requests.end(id);
    }
  }

  /** Takes a note; some have the id of what they belong to. False: not a note that this host knows. */
  private takeNote(record: DaemonRecord): boolean {
    if (this.takePatch(record) || this.channels.receive(record) || this.agents.receive(record)) return true;
    const id = record.id ?? 0;
    switch (record.type) {
      case "cancel":
        this.requests.cancel(id, record["reason"]);
        return true;
      case "call.event":
        this.calls.event(id, record["event"]);
        return true;
      case "call.update":
        this.calls.event(id, record["partial"]);
        return true;
      case "forget":
        this.forget(record);
        return true;
      case "bus":
        this.bus.emit(String(record["channel"]), record["data"]);
        return true;
      default:
        return false;
    }
  }

  private forget(record: DaemonRecord): void {
    if (Array.isArray(record["m"])) this.messages.forget(record["m"]);
    if (Array.isArray(record["cb"])) for (const cb of record["cb"]) this.callbacks.forget(Number(cb));
  }

  private read(topic: string, etag: unknown): unknown {
    const actor: Caller = { epoch: this.generation?.epoch ?? this.hello.epoch };
    const params: JsonObject = { topic };
    if (etag !== undefined) params["etag"] = etag;
    const value = this.calls.callSync(actor, "read", params);
    return isObject(value) ? value : {};
  }

  private renderPrompt(options: unknown): string {
    const actor: Caller = { epoch: this.generation?.epoch ?? this.hello.epoch };
    return String(this.calls.callSync(actor, "read.prompt", { systemPromptOptions: options }));
  }

  private boundaryContext(event: string, drafts: unknown): JsonObject {
    const actor: Caller = { epoch: this.generation?.epoch ?? this.hello.epoch };
    const read = this.calls.callSync(actor, "read.boundary", { event, entries: drafts });
    const context = isObject(read) ? read : {};
    const entries = Array.isArray(context["contextEntries"]) ? (context["contextEntries"] as JsonObject[]) : [];
    const contextMessages = entries.flatMap((entry) => (Array.isArray(entry["messages"]) ? entry["messages"] : []));
    return { ...context, contextMessages, llmMessages: this.factories.convertToLlm(contextMessages) };
  }

  moduleTable(): ModuleTable {
    this.modules ??= this.factories.createModules(this.services());
    return this.modules;
  }

  services(): HostServices {
    const caller = (): Caller => ({ epoch: this.generation?.epoch ?? this.hello.epoch });
    const encode = (params: object): object => {
      const { epoch } = caller();
      return this.callbacks.encode(params, { ext: this.scopes.current()?.ext, epoch }) as object;
    };
    const host = this;
    return {
      get hello() {
        return host.hello;
      },
      call: async (method, params, opts) => {
        try {
          return await host.calls.call(caller(), method, encode(params), opts);
        } catch (error) {
          throw withStaleText(error);
        }
      },
      callSync: (method, params) => {
        try {
          return host.calls.callSync(caller(), method, encode(params));
        } catch (error) {
          throw withStaleText(error);
        }
      },
      note: (record) => host.out.send({ epoch: caller().epoch, ext: host.scopes.current()?.ext, ...record }),
      readTopic: (topic) => {
        if (topic === "core") return host.mirror.core;
        if (topic !== "entries") return host.mirror.topic(topic);
        const { header, entries, leafId } = host.mirror.entryStore();
        return { header, entries, leafId };
      },
      currentExt: () => host.scopes.current()?.ext,
      createAgentHost: (place) => host.agents.create(place),
    };
  }
}

function callerOf(actor: Actor): Caller {
  const caller: Caller = { epoch: actor.generation.epoch };
  if (actor.ext !== undefined) caller.ext = actor.ext;
  return caller;
}

function withStaleText(error: unknown): unknown {
  return error instanceof CallError && error.code === "stale" ? new CallError(STALE, "stale") : error;
}
