/** `createAgentSession`: opens the session of an agent in the daemon, with what an extension hands over. */
import { existsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import type { ModelInfo } from "../../../models/types.ts";
import { isObject, type JsonObject } from "../../../protocol/records.ts";
import type { AgentExtension, AgentHost, HostServices } from "../../../services.ts";
import { NotAvailableError } from "../../unavailable.ts";
import { SessionFileManager } from "../session/manager.ts";
import { AgentSession, disposedSessionsEnded } from "./agent_session.ts";
import { LiveSession } from "./live_session.ts";
import type { AgentModels } from "./model_runtime.ts";
import { hostOf, type LoaderChoice, type LoadExtensionsResult } from "./resource_loader.ts";
import type { SettingsManagerLike } from "./settings_manager.ts";

interface Loader {
  getExtensions(): LoadExtensionsResult;
  getSkills(): { skills: { disableModelInvocation?: boolean }[] };
  getPrompts(): { prompts: { name: string; filePath: string }[] };
  getAgentsFiles(): { agentsFiles: object[] };
  getSystemPrompt(): string | undefined;
  getAppendSystemPrompt(): string[];
  choiceForAgent?(): LoaderChoice;
}

export interface CreateSessionOptions {
  cwd?: string;
  agentDir?: string;
  modelRuntime?: AgentModels;
  model?: ModelInfo;
  thinkingLevel?: string;
  scopedModels?: { model: ModelInfo; thinkingLevel?: string }[];
  noTools?: "all" | "builtin";
  tools?: string[];
  excludeTools?: string[];
  customTools?: JsonObject[];
  resourceLoader?: Loader;
  sessionManager?: unknown;
  settingsManager?: SettingsManagerLike;
  sessionStartEvent?: JsonObject;
}

/** What makes the parts that a caller leaves out. */
export interface Defaults {
  services: HostServices;
  modelRuntime(): Promise<AgentModels>;
  settingsManager(cwd: string): SettingsManagerLike;
  sessionManager(cwd: string): SessionFileManager;
  resourceLoader(options: { cwd: string; settingsManager: unknown }): Loader & { reload(): Promise<void> };
}

/** What the host itself puts into a session: its own handlers, and the tools of the caller. */
const OWN_EXTENSION = "<sdk>";

export async function createAgentSession(defaults: Defaults, options: CreateSessionOptions = {}) {
  const { services } = defaults;
  const given = options.sessionManager;
  if (given !== undefined && !(given instanceof SessionFileManager)) {
    throw new NotAvailableError("createAgentSession({ sessionManager }) with an object of another class than SessionManager");
  }
  const cwd = resolve(options.cwd ?? given?.getCwd() ?? services.hello.cwd);
  if (options.agentDir !== undefined && resolve(options.agentDir) !== resolve(services.hello.agentDir)) {
    throw new NotAvailableError("createAgentSession({ agentDir }) with another folder than that of the daemon");
  }
  const settingsManager = options.settingsManager ?? defaults.settingsManager(cwd);
  const modelRuntime = options.modelRuntime ?? (await defaults.modelRuntime());
  const manager = given ?? defaults.sessionManager(cwd);
  let loader = options.resourceLoader;
  if (loader === undefined) {
    const made = defaults.resourceLoader({ cwd, settingsManager });
    await made.reload();
    loader = made;
  }
  const extensionsResult = loader.getExtensions();
  const host = hostFor(services, extensionsResult.extensions, cwd);
  const own = await host.loadInline(ownSource(), ownExtension(loader, modelRuntime, host, options.customTools ?? []));
  if ("error" in own) throw new Error(own.error);
  const live = new LiveSession(host);
  let session: AgentSession | undefined;
  const params = { cwd, ...ofModels(options, modelRuntime), ...ofTools(options), ...ofLoader(loader), settings: settingsManager.overridesForAgent(), session: manager.forAgent() };
  const listener = AgentSession.listener(() => session);
  await disposedSessionsEnded();
  await host.open(params, [...extensionsResult.extensions, own], listener);
  const filling = manager.attach(live, host);
  if (filling !== undefined) await host.call("session.fill", filling);
  session = new AgentSession(host, live, {
    sessionManager: manager,
    settingsManager,
    modelRuntime,
    resourceLoader: loader,
    scopedModels: options.scopedModels ?? [],
    startEvent: startEvent(options.sessionStartEvent),
  });
  return { session, extensionsResult, modelFallbackMessage: undefined };
}

/** The host that has loaded the extensions, or one without any. */
function hostFor(services: HostServices, extensions: readonly AgentExtension[], cwd: string): AgentHost {
  const hosts = new Set(extensions.map((extension) => hostOf(extension)));
  const [host, second] = hosts;
  if (second !== undefined || (extensions.length > 0 && host === undefined)) {
    throw new NotAvailableError("createAgentSession({ resourceLoader }) with extensions that no DefaultResourceLoader has loaded");
  }
  return host ?? services.createAgentHost({ cwd });
}

function ownSource() {
  const sourceInfo = { path: OWN_EXTENSION, source: "sdk", scope: "temporary", origin: "top-level" };
  return { path: OWN_EXTENSION, entry: OWN_EXTENSION, sourceInfo };
}

/** Registers what the caller has handed over, and puts the loader's lists in the place of what the daemon finds. */
function ownExtension(loader: Loader, models: AgentModels, host: AgentHost, tools: readonly JsonObject[]) {
  return (api: unknown): void => {
    const pi = api as Record<string, (...args: unknown[]) => unknown>;
    const registered = new Set(host.pendingProviders().map(({ name }) => name));
    for (const { name, value } of models.registrations()) {
      if (registered.has(name)) continue;
      if (isObject(value) && typeof value["getModels"] === "function") pi["registerProvider"]?.(value);
      else pi["registerProvider"]?.(name, value);
    }
    for (const model of models.virtualModels()) pi["registerVirtualModel"]?.(model);
    for (const tool of tools) pi["registerTool"]?.(tool);
    const lists = overriddenLists(loader);
    if (lists === undefined) return;
    pi["on"]?.("before_agent_start", (event: unknown) => {
      const options = isObject(event) ? event["systemPromptOptions"] : undefined;
      if (isObject(options)) Object.assign(options, lists());
    });
  };
}

/** The lists of a loader that are other than what the daemon finds. */
function overriddenLists(loader: Loader): (() => JsonObject) | undefined {
  const choice = loader.choiceForAgent?.();
  const skills = choice === undefined || choice.overridden.skills;
  const files = choice === undefined || choice.overridden.agentsFiles;
  if (!skills && !files) return undefined;
  const shown = () => loader.getSkills().skills.filter((skill) => skill.disableModelInvocation !== true);
  return () => ({
    ...(skills ? { skills: shown() } : {}),
    ...(files ? { contextFiles: loader.getAgentsFiles().agentsFiles } : {}),
  });
}

function ofLoader(loader: Loader): JsonObject {
  const systemPrompt = loader.getSystemPrompt();
  const prompts = loader.getPrompts().prompts;
  const choice: LoaderChoice = loader.choiceForAgent?.() ?? {
    noContextFiles: true,
    skills: { paths: [], none: true },
    prompts: { paths: prompts.map(({ filePath }) => filePath), none: true },
    overridden: { skills: true, agentsFiles: true },
  };
  const lost = prompts.find(({ filePath }) => typeof filePath !== "string" || !existsSync(filePath));
  if (lost !== undefined) throw new NotAvailableError(`A prompt template without a file ("${lost.name}")`);
  return {
    noContextFiles: choice.noContextFiles,
    skills: { ...choice.skills, none: choice.skills.none || choice.overridden.skills },
    prompts: choice.prompts,
    ...(systemPrompt === undefined ? {} : { systemPrompt }),
    appendSystemPrompt: loader.getAppendSystemPrompt(),
  };
}

function ofModels(options: CreateSessionOptions, models: AgentModels): JsonObject {
  const { model, thinkingLevel, scopedModels } = options;
  const apiKey = model === undefined ? undefined : models.keyOf(model.provider);
  const pattern = (scoped: { model: ModelInfo; thinkingLevel?: string }) =>
    `${scoped.model.provider}/${scoped.model.id}${scoped.thinkingLevel === undefined ? "" : `:${scoped.thinkingLevel}`}`;
  return {
    ...(model === undefined ? {} : { model: { provider: model.provider, id: model.id } }),
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
    ...(scopedModels === undefined || scopedModels.length === 0 ? {} : { models: scopedModels.map(pattern) }),
    ...(apiKey === undefined ? {} : { apiKey }),
  };
}

function ofTools({ tools, excludeTools, noTools }: CreateSessionOptions): JsonObject {
  const allowed = tools ?? (noTools === "all" ? [] : undefined);
  return {
    ...(allowed === undefined ? {} : { tools: allowed }),
    ...(excludeTools === undefined ? {} : { excludeTools }),
    noBuiltinTools: tools === undefined && noTools === "builtin",
  };
}

function startEvent(event: JsonObject | undefined): JsonObject {
  const { reason = "startup", previousSessionFile } = event ?? {};
  const file = typeof previousSessionFile === "string" && isAbsolute(previousSessionFile) ? { previousSessionFile } : {};
  return { reason, ...file };
}
