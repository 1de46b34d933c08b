/** The exports of pi-coding-agent. */
import { dirname, join, resolve } from "node:path";
import type { HostServices } from "../../services.ts";
import { PI_AI_VERSION } from "../ai/identity.ts";
import { createTheme, Theme } from "../theme.ts";
import { unavailableAll } from "../unavailable.ts";
import { AgentSession } from "./agent/agent_session.ts";
import { ExtensionRunner } from "./agent/extension_runner.ts";
import { createAgentSession, type CreateSessionOptions, type Defaults } from "./agent/create_session.ts";
import { modelRuntimeFor } from "./agent/model_runtime.ts";
import { resolveCliModel } from "./agent/resolve_model.ts";
import { createExtensionRuntime, resourceLoaderFor } from "./agent/resource_loader.ts";
import { settingsManagerFor } from "./agent/settings_manager.ts";
import { copyToClipboard } from "./clipboard.ts";
import * as compaction from "./compaction.ts";
import { componentExports } from "./components.ts";
import { createEventBus } from "./event_bus.ts";
import { parseFrontmatter, stripFrontmatter } from "./frontmatter.ts";
import * as guards from "./guards.ts";
import { detectSupportedImageMimeTypeFromFile, formatDimensionNote, imageFunctions } from "./images.ts";
import { getLanguageFromPath } from "./languages.ts";
import { convertToLlm, serializeConversation } from "./messages.ts";
import * as resources from "./resources.ts";
import {
  buildContextEntries,
  buildSessionContext,
  buildSessionProjection,
  getLatestCompactionEntry,
  sessionEntryToContextMessages,
} from "./session/context.ts";
import { CURRENT_SESSION_VERSION, migrateSessionEntries, parseSessionEntries } from "./session/format.ts";
import { sessionManagerFor } from "./session/statics.ts";
import { keyText, Themed } from "./themed.ts";
import { toolFactories } from "./tools/create.ts";
import { generateDiffString, generateUnifiedPatch } from "./tools/edit_text.ts";
import { createLocalBashOperations, getPowerShellConfig, getShellConfig } from "./tools/local_shell.ts";
import * as truncate from "./truncate.ts";

export const CODING_AGENT_PACKAGE = "@earendil-works/pi-coding-agent";

/** Exports that run programs, packages or screens in the process. */
const UNAVAILABLE = [
  "AgentSessionRuntime",
  "DefaultPackageManager",
  "InteractiveMode",
  "ModelRegistry",
  "ProjectTrustStore",
  "RpcClient",
  "compact",
  "createAgentSessionFromServices",
  "createAgentSessionRuntime",
  "createAgentSessionServices",
  "createCodemodeExtension",
  "createLocalPowerShellOperations",
  "createMcpExtension",
  "createPowerShellTool",
  "createPowerShellToolDefinition",
  "createToolSearchExtension",
  "discoverAndLoadExtensions",
  "generateBranchSummary",
  "generateSummary",
  "generateSummaryWithUsage",
  "main",
  "parseArgs",
  "readStoredCredential",
  "resolveModelScopeWithDiagnostics",
  "runPrintMode",
  "runRpcMode",
  "wrapRegisteredTool",
  "wrapRegisteredTools",
];

/** Entry type by which routers keep their state. */
const VIRTUAL_MODEL_STATE_ENTRY = "pi.virtual-model-state";

/** The folder of the program that extensions start as a child agent; it stands for pi's package. */
function packageDir(): string {
  return dirname(process.argv[1] ?? process.execPath);
}

export function createCodingAgentModule(services: HostServices): Record<string, unknown> {
  const { hello } = services;
  const theme = createTheme(hello.ansi);
  const themed = new Themed(theme);
  const SessionManager = sessionManagerFor(() => hello.agentDir);
  const SettingsManager = settingsManagerFor(
    () => hello.agentDir,
    (cwd) => services.hello.trusted && resolve(cwd) === resolve(services.hello.cwd),
  );
  const ModelRuntime = modelRuntimeFor(services);
  const DefaultResourceLoader = resourceLoaderFor(services);
  const defaults: Defaults = {
    services,
    modelRuntime: () => ModelRuntime.create(),
    settingsManager: (cwd) => SettingsManager.create(cwd),
    sessionManager: (cwd) => SessionManager.create(cwd),
    resourceLoader: (options) => new DefaultResourceLoader(options),
  };
  return {
    ...unavailableAll(CODING_AGENT_PACKAGE, UNAVAILABLE),
    ...compaction,
    ...componentExports(theme, themed),
    ...guards,
    ...imageFunctions(services),
    ...resources,
    ...toolFactories(services),
    ...truncate,
    CONFIG_DIR_NAME: hello.configDirName,
    CURRENT_SESSION_VERSION,
    AgentSession,
    DefaultResourceLoader,
    ExtensionRunner,
    ModelRuntime,
    SessionManager,
    SettingsManager,
    Theme,
    VERSION: PI_AI_VERSION,
    VIRTUAL_MODEL_STATE_ENTRY,
    buildContextEntries,
    buildSessionContext,
    buildSessionProjection,
    convertToLlm,
    copyToClipboard,
    createAgentSession: (options?: CreateSessionOptions) => createAgentSession(defaults, options),
    createEventBus,
    createExtensionRuntime: () => createExtensionRuntime(),
    createLocalBashOperations,
    detectSupportedImageMimeTypeFromFile,
    formatDimensionNote,
    generateDiffString,
    generateUnifiedPatch,
    getAgentDir: () => hello.agentDir,
    getDocsPath: () => join(packageDir(), "docs"),
    getExamplesPath: () => join(packageDir(), "examples"),
    getLanguageFromPath,
    getLatestCompactionEntry,
    getMarkdownTheme: () => themed.markdownTheme(),
    getPackageDir: packageDir,
    getPowerShellConfig,
    getReadmePath: () => join(packageDir(), "README.md"),
    getSelectListTheme: () => themed.selectListTheme(),
    getSettingsListTheme: () => themed.settingsListTheme(),
    getShellConfig,
    highlightCode: (code: string, language?: string) => themed.highlightCode(code, language),
    // There is one theme, which is there from the beginning.
    initTheme: () => undefined,
    keyHint: (keybinding: string, description: string) => themed.keyHint(keybinding, description),
    keyText,
    migrateSessionEntries: (entries: Parameters<typeof migrateSessionEntries>[0]) => void migrateSessionEntries(entries),
    parseFrontmatter,
    parseSessionEntries,
    rawKeyHint: (key: string, description: string) => themed.rawKeyHint(key, description),
    resolveCliModel,
    renderDiff: (diff: string, options?: object) => themed.renderDiff(diff, options),
    serializeConversation,
    sessionEntryToContextMessages,
    stripFrontmatter,
  };
}
