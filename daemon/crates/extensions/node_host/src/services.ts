/**
 * The border between the host and the modules that extensions import.
 *
 * The host implements `HostServices` and hands it to `createModules` (`src/modules/index.ts`). Modules
 * reach the daemon only through this interface.
 */

import type { EntryStore } from "./session/entry_store.ts";

/** The mode in which the daemon runs the session, as extensions see it. */
export type HostMode = "rpc" | "json" | "print";

/** First record of a connection, from the daemon. */
export interface Hello {
  protocol: number;
  daemon: { name: string; version: string };
  epoch: number;
  sessionId: string;
  cwd: string;
  /** Absolute path of the agent's directory. */
  agentDir: string;
  /** Name of the configuration folder of a project: `.pi`. */
  configDirName: string;
  mode: HostMode;
  hasUI: boolean;
  trusted: boolean;
  /** Variables to set in `process.env` before any extension is loaded. */
  env: Record<string, string>;
  limits: HostLimits;
  /** Folder of the disk cache of transformed sources. */
  cacheDir: string;
  /** False: style functions of the theme return their text unchanged. */
  ansi: boolean;
  features: string[];
}

/** Limits of a connection. */
export interface HostLimits {
  /** Longest line in bytes, without its LF, in either direction. */
  maxLineBytes: number;
  /** Longest wait of a synchronous call, in milliseconds. */
  syncCallMs: number;
}

/** Options of an asynchronous call. */
export interface CallOptions {
  /** Aborting it withdraws the call; the promise settles when the daemon answers. */
  signal?: AbortSignal;
  /** Receives what the daemon sends for this call before its result: stream events and partial results. */
  onEvent?: (event: unknown) => void;
}

/**
 * What modules can ask of the host.
 *
 * Calls made while an extension's code runs carry that extension and the request being served; both are
 * taken from the asynchronous context.
 */
export interface HostServices {
  /** The greeting of the daemon. `cwd`, `sessionId` and `trusted` follow the session when it is replaced. */
  readonly hello: Hello;
  /** Calls the daemon. Rejects with an Error whose `code` is that of the daemon, when it gave one. */
  call(method: string, params: object, opts?: CallOptions): Promise<unknown>;
  /**
   * Calls the daemon and blocks the thread until the answer is in. Throws like `call` rejects, and after
   * `limits.syncCallMs`.
   */
  callSync(method: string, params: object): unknown;
  /** Sends a record that is never answered. `epoch` and `ext` are added when absent. */
  note(record: object): void;
  /**
   * Current value of a topic: from the mirror when it is there, else by a synchronous read.
   * Topics are those of the protocol's `read`, and `core`.
   */
  readTopic(topic: string): unknown;
  /** Id of the extension whose code runs, when it is known. */
  currentExt(): string | undefined;
  /** Makes a host in this process for the extensions of a session that an extension opens. */
  createAgentHost(place: AgentPlace): AgentHost;
}

/** Where an agent of an extension works. */
export interface AgentPlace {
  cwd: string;
  /** The bus of its extensions; absent: one of their own. */
  bus?: { emit(channel: string, data: unknown): void; on(channel: string, handler: (data: unknown) => unknown): () => void };
}

/** An extension of an agent, as loaders show it. */
export interface AgentExtension {
  readonly path: string;
  readonly resolvedPath: string;
  readonly sourceInfo: unknown;
}

/** What an extension's file or function is called, and where it comes from. */
export interface AgentExtensionSource {
  path: string;
  entry: string;
  baseDir?: string;
  sourceInfo: Record<string, unknown>;
}

/** A failure of an extension of an agent. */
export interface AgentExtensionError {
  extensionPath: string;
  event: string;
  error: string;
}

/** What a session that was opened is called. */
export interface OpenedAgent {
  agent: string;
  sessionId: string;
  sessionFile?: string | null;
}

/** What the opener of an agent hears. */
export interface AgentListener {
  onEvent(event: Record<string, unknown>): void;
  /** Some events were not told. */
  onLagged(): void;
  /** The session is over: why. */
  onEnded(reason: string): void;
}

/**
 * The host of one agent: its extensions are loaded before its session is opened, as in pi. What reads the session is synchronous.
 */
export interface AgentHost {
  /** True once `open` was called. */
  readonly isOpen: boolean;
  /** Imports a file. A failure is returned. */
  load(source: AgentExtensionSource): Promise<AgentExtension | { error: string }>;
  /** Runs a function in the place of a file. */
  loadInline(source: AgentExtensionSource, factory: (pi: unknown) => unknown): Promise<AgentExtension | { error: string }>;
  /** Providers that extensions have registered, with the extension of each. */
  pendingProviders(): { name: string; config?: unknown; provider?: unknown; extensionPath: string }[];
  /** Opens the session, with these of its extensions, in this order. */
  open(params: object, extensions: readonly AgentExtension[], listener: AgentListener): Promise<OpenedAgent>;
  /** Lets the handlers of `session_start` run. */
  bind(binding: { mode: string; ui?: unknown }, event: object): Promise<void>;
  /** Sends a command of the protocol to the session; `wait`: answered once nothing works for it. */
  command(command: object, wait?: boolean): Promise<unknown>;
  commandSync(command: object): unknown;
  /** Calls of extensions, in the name of the session itself. */
  call(method: string, params: object): Promise<unknown>;
  callSync(method: string, params: object): unknown;
  /** Value of a topic of the session. */
  readTopic(topic: string): unknown;
  /** The entries of the session, which are kept current. */
  entries(): EntryStore;
  close(): Promise<void>;
  hasHandlers(event: string): boolean;
  /** Runs the handlers of an event here. Failures go to `onError`. */
  emit(event: { type: string }, onError: (error: AgentExtensionError) => void): Promise<unknown>;
  tool(name: string): unknown;
}
