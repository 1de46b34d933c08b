/**
 * The host of an agent that an extension of this process runs.
 *
 * It is a host like the one of the process: the daemon loads and binds its extensions and asks their handlers, through a channel. Only that its
 * extensions are there before their session is, as pi has it; what they register waits until the daemon loads them.
 */
import type { ChannelHost, ChannelLink } from "../connection/channel.ts";
import type { EventBus } from "../extension/event_bus.ts";
import type { Extension, ExtensionSource } from "../extension/extension.ts";
import { Generation } from "../extension/generation.ts";
import { type Actor, actorOf } from "../extension/port.ts";
import type { LoadReport } from "../loader/loader.ts";
import { messageOf } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/records.ts";
import type {
  AgentExtension,
  AgentExtensionError,
  AgentExtensionSource,
  AgentHost,
  AgentListener,
  AgentPlace,
  Hello,
  HostServices,
  OpenedAgent,
} from "../services.ts";
import type { Caller } from "./calls.ts";
import { Host } from "./host.ts";

/** The epoch of a host that was just made. */
const FIRST_EPOCH = 1;

/** A read whose answer comes behind the patches of all that was changed before. */
const KNOWN_SINCE = { topic: "scopedModels" };

/** Events whose handlers the opener of the session runs by itself. */
const OF_THE_OPENER = new Set(["session_shutdown"]);

/** Makes the host of an agent, with a channel of `parent`'s connection. */
export function createAgentHost(parent: Host, place: AgentPlace): AgentHost {
  const { channel, host } = parent.channels.add((link) => new NestedHost(parent, link, place));
  host.channel = channel;
  return host.asAgent();
}

class NestedHost extends Host implements ChannelHost {
  channel = 0;
  private readonly place: Hello;
  /** Registrations that the daemon has not asked for yet. */
  private postponed: (() => void)[] = [];
  private isLoaded = false;
  private isOpen = false;
  private agent: string | undefined;
  private tellBound: () => void = () => undefined;
  /** Its session can be read. */
  private readonly whenBound = new Promise<void>((resolve) => {
    this.tellBound = resolve;
  });
  private nextName = 0;

  constructor(
    private readonly parent: Host,
    link: ChannelLink,
    place: AgentPlace,
  ) {
    super(link, parent.factories, place.bus as EventBus | undefined);
    this.place = { ...parent.hello, epoch: FIRST_EPOCH, cwd: place.cwd, sessionId: "", mode: "print", hasUI: false };
    this.prepare(this.place);
    this.generation = new Generation(FIRST_EPOCH);
  }

  override get isNested(): boolean {
    return true;
  }

  override get hello(): Hello {
    return this.greeting ?? this.place;
  }

  /** Before the daemon has loaded the extensions, what their code asks for is asked of the session of the opener. */
  override services(): HostServices {
    const own = super.services();
    const before = this.parent.services();
    const now = () => (this.isLoaded ? own : before);
    return {
      ...own,
      get hello() {
        return own.hello;
      },
      call: (method, params, opts) => now().call(method, params, opts),
      callSync: (method, params) => now().callSync(method, params),
      readTopic: (topic) => now().readTopic(topic),
    };
  }

  override note(actor: Actor, type: string, fields: JsonObject): void {
    if (this.isLoaded) super.note(actor, type, fields);
    else this.postponed.push(() => super.note(actor, type, fields));
  }

  override async load(generation: Generation, source: ExtensionSource): Promise<LoadReport> {
    const extension = [...generation.extensions.values()].find((loaded) => loaded.source.entry === source.entry);
    if (extension === undefined) return { ext: source.ext, ok: false, error: `It was not loaded: ${source.path}`, ms: 0 };
    generation.extensions.delete(extension.id);
    this.callbacks.rename(extension.id, source.ext);
    extension.source.ext = source.ext;
    // In the order of the daemon.
    generation.extensions.set(source.ext, extension);
    return { ext: source.ext, ok: true, ms: 0 };
  }

  override loaded(): void {
    this.isLoaded = true;
    const postponed = this.postponed;
    this.postponed = [];
    for (const note of postponed) note();
  }

  override hasBound(): void {
    this.tellBound();
  }

  override hears(event: string): boolean {
    return !OF_THE_OPENER.has(event);
  }

  override shutDown(): void {
    this.closed();
  }

  closed(): void {
    this.parent.channels.remove(this.channel);
    this.generation?.invalidate();
  }

  asAgent(): AgentHost {
    const host = this;
    return {
      get isOpen() {
        return host.isOpen;
      },
      load: (source) => host.preload(source, (named) => host.loader.load(host.current(), named, host.hello.cwd, undefined)),
      loadInline: (source, factory) => host.preload(source, (named) => host.loader.loadFactory(host.current(), named, factory)),
      pendingProviders: () => host.pendingProviders(),
      open: (params, extensions, listener) => host.open(params, extensions, listener),
      bind: (binding, event) => host.bind(binding, event),
      command: (command, wait = false) => host.command(command, wait),
      commandSync: (command) => host.commandSync(command),
      call: (method, params) => host.calls.call(host.caller(), method, params),
      callSync: (method, params) => host.calls.callSync(host.caller(), method, params),
      readTopic: (topic) => super.services().readTopic(topic),
      entries: () => host.mirror.entryStore(),
      close: async () => {
        if (host.agent !== undefined) await host.parent.services().call("agents.close", { agent: host.agent });
        else host.closed();
      },
      hasHandlers: (event) => [...host.current().handlers.values()].some((handler) => handler.event === event),
      emit: (event, onError) => host.emit(event, onError),
      tool: (name) => [...host.current().extensions.values()].map((extension) => extension.tools.get(name)).find((tool) => tool !== undefined),
    };
  }

  private current(): Generation {
    const { generation } = this;
    if (generation === undefined || generation.isStale) throw new Error("The session of this agent has ended");
    return generation;
  }

  private caller(): Caller {
    return { epoch: this.generation?.epoch ?? FIRST_EPOCH };
  }

  private async preload(source: AgentExtensionSource, load: (named: ExtensionSource) => Promise<LoadReport>): Promise<AgentExtension | { error: string }> {
    const named: ExtensionSource = { ...source, ext: `#${this.nextName++}` };
    const { ok, error } = await load(named);
    const extension = this.current().extensions.get(named.ext);
    if (!ok || extension === undefined) return { error: error ?? "it failed" };
    return shown(extension);
  }

  private pendingProviders() {
    const found: ReturnType<AgentHost["pendingProviders"]> = [];
    for (const [name, registered] of this.current().providers) {
      const isNative = typeof (registered as { getModels?: unknown }).getModels === "function";
      found.push({ name, ...(isNative ? { provider: registered } : { config: registered }), extensionPath: "<agent>" });
    }
    return found;
  }

  private async open(params: object, extensions: readonly AgentExtension[], listener: AgentListener): Promise<OpenedAgent> {
    if (this.isOpen) throw new Error("The extensions of a resource loader serve one session: reload() it for another one");
    this.isOpen = true;
    const generation = this.current();
    const wanted = new Set<unknown>(extensions);
    for (const extension of [...generation.extensions.values()]) {
      if (!wanted.has(extension)) this.drop(generation, extension);
    }
    const list = extensions.map((extension) => {
      const { source } = extension as unknown as Extension;
      return { path: source.path, entry: source.entry, baseDir: source.baseDir ?? "", sourceInfo: source.sourceInfo };
    });
    const asked = { ...params, channel: this.channel, extensions: list };
    let opened: OpenedAgent;
    try {
      opened = (await this.parent.services().call("agents.open", asked)) as OpenedAgent;
    } catch (error) {
      this.closed();
      throw error;
    }
    this.agent = opened.agent;
    this.parent.agents.listen(opened.agent, { ...listener, onEnded: (reason) => this.end(reason, listener) });
    await this.whenBound;
    return opened;
  }

  private end(reason: string, listener: AgentListener): void {
    this.tellBound();
    listener.onEnded(reason);
  }

  /** Sends a command. What it changes is known here when it is answered. */
  private async command(command: object, wait: boolean): Promise<unknown> {
    const answer = await this.parent.services().call("agents.command", { agent: this.agent, command, wait });
    await this.calls.call(this.caller(), "read", KNOWN_SINCE).catch(() => undefined);
    return answer;
  }

  private commandSync(command: object): unknown {
    const answer = this.parent.services().callSync("agents.command", { agent: this.agent, command });
    this.calls.callSync(this.caller(), "read", KNOWN_SINCE);
    return answer;
  }

  private drop(generation: Generation, extension: Extension): void {
    generation.extensions.delete(extension.id);
    extension.discard();
  }

  private async bind(binding: { mode: string; ui?: unknown }, event: object): Promise<void> {
    const isFirst = this.binding === undefined;
    this.binding = binding;
    if (isFirst) await this.calls.call(this.caller(), "session.begin", event);
  }

  private async emit(event: { type: string }, onError: (error: AgentExtensionError) => void): Promise<unknown> {
    const generation = this.current();
    let last: unknown;
    for (const extension of generation.extensions.values()) {
      for (const handler of [...generation.handlers.values()]) {
        if (handler.ext !== extension || handler.event !== event.type) continue;
        try {
          const ctx = this.contexts.event(actorOf(extension));
          last = (await this.scopes.run({ ext: extension.id }, () => handler.run(event, ctx))) ?? last;
        } catch (error) {
          onError({ extensionPath: extension.path, event: event.type, error: messageOf(error) });
        }
      }
    }
    return last;
  }
}

/** An extension with the members that pi's loaders show. */
function shown(extension: Extension): AgentExtension {
  const { source } = extension;
  return Object.assign(extension, { resolvedPath: source.entry, sourceInfo: source.sourceInfo });
}
