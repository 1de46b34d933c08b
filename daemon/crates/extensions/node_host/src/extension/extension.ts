/** One loaded extension: what it registered, and its phase. */
import type { JsonObject } from "../protocol/records.ts";
import { failedToLoad } from "./texts.ts";
import type { Generation } from "./generation.ts";

/** What the daemon says of an extension to load. */
export interface ExtensionSource {
  /** The daemon's name for it, stable within an epoch. */
  ext: string;
  /** What errors name. */
  path: string;
  /** File to import. */
  entry: string;
  baseDir?: string;
  sourceInfo?: JsonObject;
}

export interface ToolDefinition extends JsonObject {
  name: string;
  execute(toolCallId: string, params: unknown, signal: AbortSignal | undefined, onUpdate: (partial: unknown) => void, ctx: unknown): unknown;
  prepareArguments?(args: unknown): unknown;
  prepareLoadout?(loadout: unknown): unknown;
  reachesTools?(input: unknown): unknown;
}

export interface Command {
  description?: string;
  getArgumentCompletions?(prefix: string): unknown;
  handler(args: string, ctx: unknown): unknown;
}

export interface Shortcut {
  description?: string;
  handler(ctx: unknown): unknown;
}

export interface Flag {
  type: "boolean" | "string";
  default?: boolean | string;
  description?: string;
}

export type Phase = "loading" | "active" | "failed";

export class Extension {
  readonly tools = new Map<string, ToolDefinition>();
  readonly commands = new Map<string, Command>();
  readonly shortcuts = new Map<string, Shortcut>();
  readonly flags = new Map<string, Flag>();
  /** Flag defaults, until the factory succeeded. */
  readonly pendingFlags = new Map<string, boolean | string>();
  private phase: Phase = "loading";
  private changes: (() => void)[] = [];
  private undo: (() => void)[] = [];

  constructor(
    readonly source: ExtensionSource,
    readonly generation: Generation,
  ) {}

  get id(): string {
    return this.source.ext;
  }

  get path(): string {
    return this.source.path;
  }

  get loading(): boolean {
    return this.phase === "loading";
  }

  /** Throws unless the extension may use its API. */
  assertActive(): void {
    if (this.phase === "failed") throw new Error(failedToLoad(this.path));
    this.generation.assertActive();
  }

  /** Runs `change` now, or after the factory succeeded. */
  apply(change: () => void): void {
    if (this.phase === "loading") this.changes.push(change);
    else change();
  }

  /** Runs `undo` if the factory fails. */
  onFailure(undo: () => void): void {
    if (this.phase === "loading") this.undo.push(undo);
  }

  /** The factory succeeded. `onError` gets what a postponed change threw. */
  commit(onError: (error: unknown) => void): void {
    this.generation.assertActive();
    for (const [name, value] of this.pendingFlags) {
      if (!this.generation.flagValues.has(name)) this.generation.flagValues.set(name, value);
    }
    this.phase = "active";
    for (const change of this.changes) {
      try {
        change();
      } catch (error) {
        onError(error);
      }
    }
    this.forgetPending();
  }

  /** The factory failed: what it registered is gone. */
  discard(): void {
    this.phase = "failed";
    for (const undo of this.undo) undo();
    this.forgetPending();
    for (const [h, handler] of this.generation.handlers) {
      if (handler.ext === this) this.generation.handlers.delete(h);
    }
  }

  private forgetPending(): void {
    this.changes = [];
    this.undo = [];
    this.pendingFlags.clear();
  }
}
