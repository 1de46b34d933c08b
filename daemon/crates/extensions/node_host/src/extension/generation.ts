/** What one epoch holds: its extensions and everything that they registered. */
import { CallError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/records.ts";
import type { Extension } from "./extension.ts";
import { STALE } from "./texts.ts";

export interface Handler {
  ext: Extension;
  event: string;
  run(event: unknown, ctx: unknown): unknown;
}

export interface McpServer {
  name: string;
  config: JsonObject;
  extensionPath: string;
}

export class Generation {
  /** In load order. */
  readonly extensions = new Map<string, Extension>();
  readonly handlers = new Map<number, Handler>();
  readonly flagValues = new Map<string, boolean | string>();
  readonly mcpServers = new Map<string, McpServer>();
  /** Registered providers: configs by name, or provider objects by id. */
  readonly providers = new Map<string, unknown>();
  /** True from `bind` on: actions are legal. */
  bound = false;
  private stale = false;
  private readonly subscriptions = new Set<() => void>();

  constructor(readonly epoch: number) {}

  get isStale(): boolean {
    return this.stale;
  }

  assertActive(): void {
    if (this.stale) throw new CallError(STALE, "stale");
  }

  invalidate(): void {
    this.stale = true;
    for (const unsubscribe of this.subscriptions) unsubscribe();
    this.subscriptions.clear();
    this.handlers.clear();
  }

  /** Keeps a subscription of the event bus until the generation is stale. */
  track(unsubscribe: () => void): () => void {
    const tracked = () => {
      if (this.subscriptions.delete(tracked)) unsubscribe();
    };
    this.subscriptions.add(tracked);
    return tracked;
  }

  setFlags(flags: JsonObject): void {
    for (const [name, value] of Object.entries(flags)) {
      if (typeof value === "boolean" || typeof value === "string") this.flagValues.set(name, value);
    }
  }
}
