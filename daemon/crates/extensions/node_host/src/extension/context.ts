/** `ctx`: what handlers, tools, commands and routers get. Getters are current, and throw when stale. */
import { isObject, type JsonObject } from "../protocol/records.ts";
import { ModelRegistry } from "../models/registry.ts";
import type { ModelInfo, ModelsValue, ScopedModel } from "../models/types.ts";
import type { CallOptions } from "../services.ts";
import { createSessionView, type SessionView } from "../session/view.ts";
import { customMessage } from "./actions.ts";
import type { Actor, HostPort } from "./port.ts";
import type { ProviderRegistrar } from "./providers.ts";
import { createStartupUi, createUi, type Ui } from "./ui.ts";

/** The objects that contexts of one extension share. */
interface Parts {
  ui: Ui;
  sessionManager: SessionView;
  modelRegistry: ModelRegistry;
}

interface CompactOptions {
  customInstructions?: string;
  onComplete?(result: unknown): void;
  onError?(error: Error): void;
}

interface ReplaceOptions {
  parentSession?: string;
  position?: "before" | "at";
  setup?(session: unknown): unknown;
  withSession?(ctx: unknown): unknown;
}

export class Contexts {
  private readonly parts = new WeakMap<object, Map<string | undefined, Parts>>();

  constructor(
    private readonly host: HostPort,
    private readonly registrar: ProviderRegistrar,
  ) {}

  /** Context of handlers, shortcuts and routers. */
  event(actor: Actor) {
    const { host } = this;
    const { generation } = actor;
    const parts = this.partsOf(actor);
    const core = () => {
      generation.assertActive();
      return host.mirror.core;
    };
    return {
      get ui() {
        core();
        return (host.binding?.ui as Ui | undefined) ?? parts.ui;
      },
      get mode() {
        return host.binding?.mode ?? core().mode ?? host.hello.mode;
      },
      get hasUI() {
        return host.binding?.ui !== undefined || (core().hasUI ?? host.hello.hasUI);
      },
      get cwd() {
        return core().cwd ?? host.hello.cwd;
      },
      get sessionManager() {
        core();
        return parts.sessionManager;
      },
      get modelRegistry() {
        core();
        return parts.modelRegistry;
      },
      get model(): ModelInfo | undefined {
        return core().model ?? undefined;
      },
      get scopedModels(): readonly ScopedModel[] {
        core();
        const models = host.mirror.topic("scopedModels");
        return Array.isArray(models) ? models : [];
      },
      get thinkingLevel() {
        return core().thinkingLevel ?? "off";
      },
      get signal() {
        core();
        return host.mirror.signal;
      },
      isIdle: () => core().idle ?? true,
      isProjectTrusted: () => core().trusted ?? host.hello.trusted,
      abort: () => {
        core();
        host.callSync(actor, "agent.abort", {});
      },
      hasPendingMessages: () => (core().pendingCount ?? 0) > 0,
      shutdown: () => {
        core();
        host.callSync(actor, "agent.shutdown", {});
      },
      getContextUsage: () => core().contextUsage ?? undefined,
      compact: (options: CompactOptions = {}) => {
        core();
        host.callSync(actor, "agent.compact", this.compactParams(actor, options));
      },
      getSystemPrompt: (): string => {
        core();
        const prompt = host.mirror.topic("prompt");
        return isObject(prompt) ? String(prompt["systemPrompt"] ?? "") : "";
      },
    };
  }

  /** Context of a tool call; `signal` is the default of nested calls. */
  tool(actor: Actor, toolCallId: string, signal: AbortSignal) {
    const { host } = this;
    const { generation } = actor;
    const executeTool = async (name: string, args: unknown, options: { signal?: AbortSignal; onUpdate?(partial: unknown): void } = {}) => {
      generation.assertActive();
      const opts: CallOptions = { signal: options.signal ?? signal };
      if (options.onUpdate !== undefined) opts.onEvent = options.onUpdate;
      return host.call(actor, "tool.call", { toolCallId, name, args }, opts);
    };
    return Object.defineProperties(this.event(actor), {
      tools: {
        get: () => {
          generation.assertActive();
          return callableTools(host);
        },
      },
      executeTool: { value: executeTool },
    });
  }

  /** Context of command handlers. */
  command(actor: Actor) {
    const { host } = this;
    const { generation } = actor;
    const call = (method: string, params: object) => {
      generation.assertActive();
      return host.call(actor, method, params);
    };
    return withOwn(this.event(actor), {
      getSystemPromptOptions: () => {
        generation.assertActive();
        return host.callSync(actor, "read.promptOptions", {});
      },
      waitForIdle: async () => void (await call("session.waitIdle", {})),
      newSession: async (options: ReplaceOptions = {}) =>
        call("session.new", { parentSession: options.parentSession, ...this.replaceCallbacks(actor, options) }),
      fork: async (entryId: string, options: ReplaceOptions = {}) =>
        call("session.fork", { entryId, position: options.position, ...this.replaceCallbacks(actor, options) }),
      switchSession: async (path: string, options: ReplaceOptions = {}) =>
        call("session.switch", { path, ...this.replaceCallbacks(actor, options) }),
      navigateTree: async (targetId: string, options: JsonObject = {}) => call("session.navigate", { targetId, ...options }),
      reload: async () => void (await call("session.reload", {})),
    });
  }

  /** Context of `withSession`, whose sends can be awaited. */
  replaced(actor: Actor) {
    const { host } = this;
    const { generation } = actor;
    const send = async (method: string, params: object): Promise<void> => {
      generation.assertActive();
      await host.call(actor, method, { ...params, wait: true });
    };
    return withOwn(this.command(actor), {
      sendMessage: (message: JsonObject, options: JsonObject = {}) =>
        send("session.sendMessage", { message: customMessage(message), options }),
      sendUserMessage: (content: unknown, options: JsonObject = {}) => send("session.sendUserMessage", { content, options }),
    });
  }

  /** Context of `project_trust`, before there is a session. */
  trust() {
    const { hello } = this.host;
    return { cwd: hello.cwd, mode: hello.mode, hasUI: false, ui: createStartupUi() };
  }

  /** Context of `before_agent_start`, whose prompt contains the changes so far. */
  beforeAgentStart(actor: Actor, systemPrompt: () => string) {
    return withOwn(this.event(actor), {
      getSystemPrompt: () => {
        actor.generation.assertActive();
        return systemPrompt();
      },
    });
  }

  private compactParams(actor: Actor, options: CompactOptions): JsonObject {
    const { customInstructions, onComplete, onError } = options;
    const params: JsonObject = { customInstructions };
    if (onComplete !== undefined || onError !== undefined) {
      const methods = {
        complete: (result: unknown) => onComplete?.call(options, result),
        error: (error: unknown) => onError?.call(options, asError(error)),
      };
      const owner = { ext: actor.ext, epoch: actor.generation.epoch };
      params["cb"] = this.host.callbacks.add(methods.complete, owner, { kind: "compact", methods, once: true }).cb;
    }
    return params;
  }

  private replaceCallbacks(actor: Actor, options: ReplaceOptions): JsonObject {
    const owner = { ext: actor.ext, epoch: actor.generation.epoch };
    const params: JsonObject = {};
    for (const kind of ["setup", "withSession"] as const) {
      const run = options[kind];
      if (typeof run === "function") params[kind] = this.host.callbacks.add(run.bind(options), owner, { kind, once: true }).cb;
    }
    return params;
  }

  private partsOf(actor: Actor): Parts {
    let byExt = this.parts.get(actor.generation);
    if (byExt === undefined) {
      byExt = new Map();
      this.parts.set(actor.generation, byExt);
    }
    let parts = byExt.get(actor.ext);
    if (parts === undefined) {
      parts = this.createParts(actor);
      byExt.set(actor.ext, parts);
    }
    return parts;
  }

  private createParts(actor: Actor): Parts {
    const { host, registrar } = this;
    return {
      ui: createUi(host, actor),
      sessionManager: createSessionView(host.mirror, {
        projection: () => host.callSync(actor, "read.projection", {}),
        writeFile: () => void host.callSync(actor, "session.writeFile", {}),
      }),
      modelRegistry: new ModelRegistry({
        models: () => (host.mirror.topic("models") ?? { models: [], providers: {} }) as ModelsValue,
        call: (method, params, opts) => host.call(actor, method, params, opts),
        registerProvider: (providerOrName, config) => registrar.registerProvider(actor, providerOrName, config),
        unregisterProvider: (name) => registrar.unregisterProvider(actor, name),
        registerVirtualModel: (model) => registrar.registerVirtualModel(actor, model),
        unregisterVirtualModel: (provider, id) => registrar.unregisterVirtualModel(actor, provider, id),
        registeredProviders: () => actor.generation.providers,
      }),
    };
  }
}

/** Adds members while the getters of `base` stay getters. */
function withOwn<B extends object, M extends object>(base: B, members: M): B & M {
  return Object.defineProperties(base, Object.getOwnPropertyDescriptors(members)) as B & M;
}

function asError(error: unknown): Error {
  if (error instanceof Error) return error;
  return new Error(isObject(error) ? String(error["message"]) : String(error));
}

/** Tools that `executeTool` can call: active ones, and those that are never declared to the model. */
function callableTools(host: HostPort): JsonObject[] {
  const tools = host.mirror.topic("tools");
  if (!Array.isArray(tools)) return [];
  const active = new Set(host.mirror.core.activeTools ?? []);
  return tools.filter((tool: JsonObject) => {
    const exposure = tool["exposure"] ?? "direct";
    if (exposure === "direct") return active.has(String(tool["name"]));
    return exposure === "codemode" || exposure === "deferred";
  });
}
