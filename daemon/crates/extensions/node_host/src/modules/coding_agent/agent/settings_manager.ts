/**
 * `SettingsManager`: the settings of an agent, as its extension reads and overrides them.
 *
 * The daemon reads the files by itself; only what is said above them crosses when a session is opened. Nothing is written to the files.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isObject } from "../../../protocol/records.ts";
import { NotAvailableError } from "../../unavailable.ts";

type Settings = Record<string, unknown>;

interface CreateOptions {
  projectTrusted?: boolean;
}

interface SettingsError {
  scope: "global" | "project";
  path?: string;
  error: Error;
}

/** The value of each getter: its place in the settings, and its default. */
const VALUES: Record<string, [path: string, fallback?: unknown]> = {
  AutocompleteMaxVisible: ["autocompleteMaxVisible", 5],
  BlockImages: ["images.blockImages", false],
  BranchSummarySkipPrompt: ["branchSummary.skipPrompt", false],
  CacheWarmingMode: ["cacheWarming", "idle"],
  ClearOnShrink: ["terminal.clearOnShrink", false],
  CodeBlockIndent: ["markdown.codeBlockIndent", "  "],
  CollapseChangelog: ["collapseChangelog", false],
  CompactionEnabled: ["compaction.enabled", true],
  DefaultModel: ["defaultModel"],
  DefaultProjectTrust: ["defaultProjectTrust", "ask"],
  DefaultProvider: ["defaultProvider"],
  DefaultThinkingLevel: ["defaultThinkingLevel"],
  DefaultTools: ["defaultTools"],
  DoubleEscapeAction: ["doubleEscapeAction", "tree"],
  EditorPaddingX: ["editorPaddingX", 0],
  EnableAnalytics: ["enableAnalytics", false],
  EnableInstallTelemetry: ["enableInstallTelemetry", true],
  EnableSkillCommands: ["enableSkillCommands", true],
  EnabledModels: ["enabledModels"],
  ExtensionPaths: ["extensions", []],
  FollowUpMode: ["followUpMode", "one-at-a-time"],
  FullscreenCopyOnSelect: ["fullscreenCopyOnSelect", true],
  FullscreenExitOutput: ["fullscreenExitOutput", "transcript"],
  FullscreenScrollbar: ["fullscreenScrollbar", "auto"],
  FullscreenWheelScrollLines: ["fullscreenWheelScrollLines", "auto"],
  HideThinkingBlock: ["hideThinkingBlock", false],
  HttpIdleTimeoutMs: ["httpIdleTimeoutMs", 300_000],
  ImageAutoResize: ["images.autoResize", true],
  ImageWidthCells: ["terminal.imageWidthCells", 60],
  LastChangelogVersion: ["lastChangelogVersion"],
  MermaidRenderingMode: ["markdown.mermaid", "streaming"],
  NpmCommand: ["npmCommand"],
  OutputPad: ["outputPad", 1],
  Packages: ["packages", []],
  PromptTemplatePaths: ["prompts", []],
  QuietStartup: ["quietStartup", false],
  RetryEnabled: ["retry.enabled", true],
  SessionDir: ["sessionDir"],
  SessionShareDestination: ["sessionShareDestination", "auto"],
  ShellCommandPrefix: ["shellCommandPrefix"],
  ShellPath: ["shellPath"],
  ShowCacheMissNotices: ["showCacheMissNotices", false],
  ShowHardwareCursor: ["showHardwareCursor", false],
  ShowImages: ["terminal.showImages", true],
  ShowTerminalProgress: ["terminal.showTerminalProgress", false],
  SkillPaths: ["skills", []],
  SteeringMode: ["steeringMode", "one-at-a-time"],
  TerminalCapabilityOverrides: ["terminal.capabilities", {}],
  Theme: ["theme"],
  ThemePaths: ["themes", []],
  ThemeSetting: ["theme"],
  ThinkingBudgets: ["thinkingBudgets"],
  TrackingId: ["trackingId"],
  Transport: ["transport", "auto"],
  TreeFilterMode: ["treeFilterMode", "default"],
  TuiMode: ["tuiMode", "fullscreen"],
  Warnings: ["warnings", {}],
  WebSocketConnectTimeoutMs: ["webSocketConnectTimeoutMs"],
};

/** Settings about screens, files and installations, which mean nothing to an agent that an extension runs. */
const WITHOUT_EFFECT = new Set([
  ...["autocompleteMaxVisible", "cacheWarming", "collapseChangelog", "defaultProjectTrust", "doubleEscapeAction", "editorPaddingX"],
  ...["enableAnalytics", "enableInstallTelemetry", "enableSkillCommands", "externalEditor", "hideThinkingBlock", "lastChangelogVersion", "markdown"],
  ...["outputPad", "quietStartup", "sessionShareDestination", "showCacheMissNotices", "showHardwareCursor", "terminal", "theme", "themes"],
  ...["trackingId", "treeFilterMode", "tuiMode", "fullscreenCopyOnSelect", "fullscreenExitOutput", "fullscreenScrollbar", "warnings"],
  "fullscreenWheelScrollLines",
]);

const DEFAULT_RESERVE_TOKENS = 16_384;
const DEFAULT_KEEP_TOKENS = 20_000;

class SettingsValues {
  readonly #files: { global: string; project: string } | undefined;
  #trusted: boolean;
  #global: Settings = {};
  #project: Settings = {};
  #overrides: Settings;
  #errors: SettingsError[] = [];

  constructor(files: { global: string; project: string } | undefined, overrides: Settings, options: CreateOptions) {
    this.#files = files;
    this.#overrides = structuredClone(overrides);
    this.#trusted = options.projectTrusted ?? true;
    this.#read();
  }

  #read(): void {
    if (this.#files === undefined) return;
    this.#global = this.#file("global", this.#files.global);
    this.#project = this.#trusted ? this.#file("project", this.#files.project) : {};
  }

  #file(scope: SettingsError["scope"], path: string): Settings {
    if (!existsSync(path)) return {};
    try {
      const value: unknown = JSON.parse(readFileSync(path, "utf8").replace(/^\ufeff/, ""));
      if (!isObject(value)) throw new Error(`${path} is not an object`);
      return value;
    } catch (error) {
      this.#errors.push({ scope, path, error: error instanceof Error ? error : new Error(String(error)) });
      return {};
    }
  }

  getSettings(): Settings {
    return merged(merged(structuredClone(this.#global), this.#project), this.#overrides);
  }

  getGlobalSettings(): Settings {
    return this.#files === undefined ? structuredClone(this.#overrides) : structuredClone(this.#global);
  }

  getProjectSettings(): Settings {
    return structuredClone(this.#project);
  }

  isProjectTrusted(): boolean {
    return this.#trusted;
  }

  setProjectTrusted(trusted: boolean): void {
    this.#trusted = trusted;
    this.#read();
  }

  async reload(): Promise<void> {
    this.#read();
  }

  async flush(): Promise<void> {}

  drainErrors(): SettingsError[] {
    return this.#errors.splice(0);
  }

  applyOverrides(overrides: Settings): void {
    this.#overrides = merged(this.#overrides, overrides);
  }

  /** What a session is opened with above the files. */
  overridesForAgent(): Settings {
    return Object.fromEntries(Object.entries(this.#overrides).filter(([name, value]) => value !== undefined && !WITHOUT_EFFECT.has(name)));
  }

  /** The value at a path such as `compaction.enabled`. */
  valueAt(path: string): unknown {
    let value: unknown = this.getSettings();
    for (const name of path.split(".")) value = isObject(value) ? value[name] : undefined;
    return value;
  }

  /** Sets a value of settings in memory. Those of files are the user's. */
  setAt(path: string, value: unknown, setter: string): void {
    if (this.#files !== undefined) throw new NotAvailableError(`SettingsManager.${setter} (it writes settings.json)`);
    const names = path.split(".");
    let override: unknown = value;
    for (const name of names.toReversed()) override = { [name]: override };
    this.applyOverrides(override as Settings);
  }

  getModelThinkingLevel(provider: string, modelId: string): unknown {
    return this.getAllModelThinkingLevels()[`${provider}/${modelId}`];
  }

  getAllModelThinkingLevels(): Record<string, unknown> {
    const levels = this.valueAt("modelThinkingLevels");
    return isObject(levels) ? levels : {};
  }

  getCompactionReserveTokens(model?: { provider: string; id: string }): number {
    return this.#compactionTokens("reserveTokens", DEFAULT_RESERVE_TOKENS, model);
  }

  getCompactionKeepRecentTokens(model?: { provider: string; id: string }): number {
    return this.#compactionTokens("keepRecentTokens", DEFAULT_KEEP_TOKENS, model);
  }

  getCompactionSettings(model?: { provider: string; id: string }): object {
    return {
      enabled: this.valueAt("compaction.enabled") ?? true,
      reserveTokens: this.getCompactionReserveTokens(model),
      keepRecentTokens: this.getCompactionKeepRecentTokens(model),
    };
  }

  getBranchSummarySettings(): object {
    return {
      reserveTokens: this.valueAt("branchSummary.reserveTokens") ?? DEFAULT_RESERVE_TOKENS,
      skipPrompt: this.valueAt("branchSummary.skipPrompt") ?? false,
    };
  }

  getRetrySettings(): object {
    return {
      enabled: this.valueAt("retry.enabled") ?? true,
      maxRetries: this.valueAt("retry.maxRetries") ?? 3,
      baseDelayMs: this.valueAt("retry.baseDelayMs") ?? 2000,
      maxAgentDelayMs: this.valueAt("retry.maxAgentDelayMs") ?? 60_000,
    };
  }

  getProviderRetrySettings(): object {
    const provider = this.valueAt("retry.provider");
    return { maxRetryDelayMs: 60_000, ...(isObject(provider) ? provider : {}) };
  }

  getExternalEditorCommand(): string {
    return String(this.valueAt("externalEditor") ?? process.env["VISUAL"] ?? process.env["EDITOR"] ?? "nano");
  }

  getExtensionChangelogVersion(key: string): unknown {
    const versions = this.valueAt("extensionChangelogVersions");
    return isObject(versions) ? versions[key] : undefined;
  }

  #compactionTokens(name: string, fallback: number, model?: { provider: string; id: string }): number {
    const ofModel = this.valueAt("compaction.models");
    const own = model && isObject(ofModel) ? ofModel[`${model.provider}/${model.id}`] : undefined;
    const value = (isObject(own) ? own[name] : undefined) ?? this.valueAt(`compaction.${name}`);
    return typeof value === "number" ? value : fallback;
  }
}

/** Objects are merged; anything else takes the place of what was there. */
function merged(into: Settings, from: Settings): Settings {
  const result: Settings = { ...into };
  for (const [name, value] of Object.entries(from)) {
    const before = result[name];
    if (value === undefined) continue;
    result[name] = isObject(before) && isObject(value) ? merged(before, value) : structuredClone(value);
  }
  return result;
}

for (const [name, [path, fallback]] of Object.entries(VALUES)) {
  Object.defineProperty(SettingsValues.prototype, `get${name}`, {
    configurable: true,
    writable: true,
    value: function (this: SettingsValues): unknown {
      return this.valueAt(path) ?? structuredClone(fallback);
    },
  });
  Object.defineProperty(SettingsValues.prototype, `set${name}`, {
    configurable: true,
    writable: true,
    value: function (this: SettingsValues, value: unknown): void {
      this.setAt(path, value, `set${name}`);
    },
  });
}

export type SettingsManagerLike = SettingsValues;

/** Makes the class for an agent folder. Settings of a project count where it is trusted, unless the caller says otherwise. */
export function settingsManagerFor(agentDir: () => string, isTrusted: (cwd: string) => boolean) {
  return class SettingsManager extends SettingsValues {
    static create(cwd: string = process.cwd(), folder: string = agentDir(), options: CreateOptions = {}): SettingsManager {
      return new SettingsManager({ global: join(folder, "settings.json"), project: join(cwd, ".pi", "settings.json") }, {}, { projectTrusted: isTrusted(cwd), ...options });
    }

    static inMemory(settings: Settings = {}, options: CreateOptions = {}): SettingsManager {
      return new SettingsManager(undefined, settings, options);
    }

    static fromStorage(): never {
      throw new NotAvailableError("SettingsManager.fromStorage");
    }

    setDefaultModelAndProvider(provider: string, modelId: string): void {
      this.setAt("defaultProvider", provider, "setDefaultModelAndProvider");
      this.setAt("defaultModel", modelId, "setDefaultModelAndProvider");
    }
  };
}
