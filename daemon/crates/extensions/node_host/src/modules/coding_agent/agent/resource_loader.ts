/**
 * `DefaultResourceLoader`: what an agent of an extension has of extensions, skills, prompt templates and instructions.
 *
 * Extensions are loaded here, before there is a session. The daemon finds the other files by itself; overrides of them reach it with
 * the session (`create_session.ts`).
 */
import { existsSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { isObject, type JsonObject } from "../../../protocol/records.ts";
import type { AgentExtension, AgentHost, AgentPlace, HostServices } from "../../../services.ts";
import { parseFrontmatter } from "../frontmatter.ts";
import { createSyntheticSourceInfo } from "../guards.ts";
import { loadProjectContextFiles, loadSkills, type Skill } from "../resources.ts";

export interface LoadExtensionsResult {
  extensions: AgentExtension[];
  errors: { path: string; error: string }[];
  runtime: JsonObject;
}

export interface PromptTemplate {
  name: string;
  description: string;
  filePath: string;
  content: string;
  [name: string]: unknown;
}


type Skills = { skills: Skill[]; diagnostics: unknown[] };
type Prompts = { prompts: PromptTemplate[]; diagnostics: unknown[] };
type AgentsFiles = { agentsFiles: { path: string; content: string }[] };

type Factory = (pi: unknown) => unknown;
export type InlineExtension = Factory | { name?: string; factory: Factory };

export interface LoaderOptions {
  cwd: string;
  agentDir?: string;
  settingsManager?: unknown;
  eventBus?: AgentPlace["bus"];
  additionalExtensionPaths?: string[];
  additionalSkillPaths?: string[];
  additionalPromptTemplatePaths?: string[];
  extensionFactories?: InlineExtension[];
  noExtensions?: boolean;
  noSkills?: boolean;
  noPromptTemplates?: boolean;
  noContextFiles?: boolean;
  systemPrompt?: string;
  appendSystemPrompt?: string[];
  extensionsOverride?(base: LoadExtensionsResult): LoadExtensionsResult;
  skillsOverride?(base: Skills): Skills;
  promptsOverride?(base: Prompts): Prompts;
  agentsFilesOverride?(base: AgentsFiles): AgentsFiles;
  systemPromptOverride?(base: string | undefined): string | undefined;
  appendSystemPromptOverride?(base: string[]): string[];
  [name: string]: unknown;
}

/** What the daemon is told of a loader's files, where it does not find them by itself. */
export interface LoaderChoice {
  noContextFiles: boolean;
  skills: { paths: string[]; none: boolean };
  prompts: { paths: string[]; none: boolean };
  /** Lists that take the place of what the daemon finds. */
  overridden: { skills: boolean; agentsFiles: boolean };
}

const hosts = new WeakMap<object, AgentHost>();

/** The host that has loaded an extension. */
export function hostOf(extension: object): AgentHost | undefined {
  return hosts.get(extension);
}

/** The runtime of extensions, of which callers read what was registered before there is a session. */
export function createExtensionRuntime(host?: AgentHost): JsonObject {
  const pending = host?.pendingProviders() ?? [];
  return {
    flagValues: new Map<string, boolean | string>(),
    pendingProviderRegistrations: pending.filter(({ config }) => config !== undefined),
    pendingNativeProviderRegistrations: pending.filter(({ provider }) => provider !== undefined),
    pendingVirtualModelRegistrations: [],
  };
}

/** A text, or the file that holds it. */
function textOrFile(value: string | undefined): { text: string | undefined; path?: string } {
  if (value === undefined || value.includes("\n") || !existsSync(value)) return { text: value };
  try {
    return { text: readFileSync(value, "utf8"), path: resolve(value) };
  } catch {
    return { text: value };
  }
}

function templateOf(path: string): PromptTemplate {
  const { frontmatter, body } = parseFrontmatter(readFileSync(path, "utf8")) as { frontmatter: JsonObject; body: string };
  const description = typeof frontmatter["description"] === "string" ? frontmatter["description"] : (body.split("\n").find((line) => line.trim()) ?? "");
  return { name: basename(path, ".md"), description, filePath: path, content: body, sourceInfo: createSyntheticSourceInfo(path, { source: "path" }) };
}

/** Makes the class for a daemon. */
export function resourceLoaderFor(services: HostServices) {
  return class DefaultResourceLoader {
    /** Read by extensions that want instances of their own: each loader has them. */
    loaded = false;
    readonly #options: LoaderOptions;
    #extensions: LoadExtensionsResult = { extensions: [], errors: [], runtime: createExtensionRuntime() };
    #skills: Skills = { skills: [], diagnostics: [] };
    #prompts: Prompts = { prompts: [], diagnostics: [] };
    #agentsFiles: AgentsFiles = { agentsFiles: [] };
    #system: { text: string | undefined; path?: string } = { text: undefined };
    #appended: { text: string | undefined; path?: string }[] = [];

    constructor(options: LoaderOptions) {
      this.#options = { ...options, cwd: resolve(options.cwd ?? services.hello.cwd) };
    }

    async reload(): Promise<void> {
      await this.#loadExtensions();
      this.#loadFiles();
      this.loaded = true;
    }

    getExtensions(): LoadExtensionsResult {
      return this.#extensions;
    }

    getSkills(): Skills {
      return this.#skills;
    }

    getPrompts(): Prompts {
      return this.#prompts;
    }

    getThemes(): { themes: unknown[]; diagnostics: unknown[] } {
      return { themes: [], diagnostics: [] };
    }

    getAgentsFiles(): AgentsFiles {
      return this.#agentsFiles;
    }

    getSystemPrompt(): string | undefined {
      const { text } = this.#system;
      return this.#options.systemPromptOverride === undefined ? text : this.#options.systemPromptOverride(text);
    }

    getSystemPromptSource(): { path: string } | undefined {
      return this.#system.path === undefined ? undefined : { path: this.#system.path };
    }

    getAppendSystemPrompt(): string[] {
      const texts = this.#appended.flatMap(({ text }) => (text === undefined ? [] : [text]));
      return this.#options.appendSystemPromptOverride?.(texts) ?? texts;
    }

    getAppendSystemPromptSources(): { path: string }[] {
      return this.#appended.flatMap(({ path }) => (path === undefined ? [] : [{ path }]));
    }

    extendResources(): void {}

    /** What the daemon is told of the files. */
    choiceForAgent(): LoaderChoice {
      const { noContextFiles, noSkills, noPromptTemplates, additionalSkillPaths, skillsOverride, agentsFilesOverride } = this.#options;
      const ofFiles = this.#prompts.prompts.map(({ filePath }) => filePath);
      return {
        noContextFiles: noContextFiles === true || agentsFilesOverride !== undefined,
        skills: { paths: additionalSkillPaths ?? [], none: noSkills === true },
        // All of them by their files, so that what an override has left out is not there.
        prompts: { paths: ofFiles, none: noPromptTemplates === true || this.#options.promptsOverride !== undefined },
        overridden: { skills: skillsOverride !== undefined, agentsFiles: agentsFilesOverride !== undefined },
      };
    }

    async #loadExtensions(): Promise<void> {
      const { cwd, eventBus, noExtensions, additionalExtensionPaths = [], extensionFactories = [], extensionsOverride } = this.#options;
      const host = services.createAgentHost({ cwd, ...(eventBus === undefined ? {} : { bus: eventBus }) });
      const asked = { cwd, paths: additionalExtensionPaths, ambient: noExtensions !== true };
      const isNeeded = asked.ambient || asked.paths.length > 0;
      const found = isNeeded ? await services.call("agents.extensions", asked) : {};
      const { extensions: sources, errors: missing } = isObject(found) ? found : ({} as JsonObject);
      const result: LoadExtensionsResult = { extensions: [], errors: [], runtime: {} };
      if (Array.isArray(missing)) result.errors.push(...(missing as LoadExtensionsResult["errors"]));
      const add = (path: string, loaded: AgentExtension | { error: string }) => {
        if ("error" in loaded && typeof loaded.error === "string") result.errors.push({ path, error: loaded.error });
        else result.extensions.push(loaded as AgentExtension);
      };
      for (const source of Array.isArray(sources) ? (sources as Parameters<AgentHost["load"]>[0][]) : []) add(source.path, await host.load(source));
      let unnamed = 0;
      for (const inline of extensionFactories) {
        const { name, factory } = typeof inline === "function" ? { name: undefined, factory: inline } : inline;
        const path = `<inline:${name ?? String(++unnamed)}>`;
        const sourceInfo = { path, source: "inline", scope: "temporary", origin: "top-level" };
        add(path, await host.loadInline({ path, entry: path, sourceInfo }, factory));
      }
      result.runtime = createExtensionRuntime(host);
      this.#extensions = extensionsOverride?.(result) ?? result;
      for (const extension of this.#extensions.extensions) hosts.set(extension, host);
    }

    #loadFiles(): void {
      const options = this.#options;
      const { cwd } = options;
      const { agentDir } = services.hello;
      // Nothing of a project counts before its trust; of another folder the daemon knows.
      const isTrusted = services.hello.trusted && cwd === resolve(services.hello.cwd);
      const file = (name: string) => [...(isTrusted ? [join(cwd, ".pi", name)] : []), join(agentDir, name)].find((path) => existsSync(path));
      const system = options.systemPrompt ?? file("SYSTEM.md");
      this.#system = textOrFile(system);
      const appendedFile = file("APPEND_SYSTEM.md");
      const appended = options.appendSystemPrompt ?? (appendedFile === undefined ? [] : [appendedFile]);
      this.#appended = appended.map(textOrFile);
      const files: AgentsFiles = { agentsFiles: options.noContextFiles === true ? [] : loadProjectContextFiles({ cwd, agentDir }) };
      this.#agentsFiles = options.agentsFilesOverride?.(files) ?? files;
      const skills = loadSkills({ cwd, agentDir, skillPaths: options.additionalSkillPaths ?? [], includeDefaults: options.noSkills !== true });
      if (!isTrusted) skills.skills = skills.skills.filter((skill) => skill.sourceInfo.source !== "project");
      this.#skills = options.skillsOverride?.(skills) ?? skills;
      const prompts: Prompts = { prompts: (options.additionalPromptTemplatePaths ?? []).filter((path) => existsSync(path)).map((path) => templateOf(resolve(cwd, path))), diagnostics: [] };
      this.#prompts = options.promptsOverride?.(prompts) ?? prompts;
    }
  };
}
