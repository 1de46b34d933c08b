/**
 * The border between the host and the modules that extensions import.
 *
 * The host implements `HostServices` and hands it to `createModules` (`src/modules/index.ts`). Modules
 * reach the daemon only through this interface.
 */

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
}
