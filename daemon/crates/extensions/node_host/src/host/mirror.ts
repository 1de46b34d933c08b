/** What the host knows of the session without asking: `core`, the entries, and values read before. */
import { isObject, type DaemonRecord, type JsonObject } from "../protocol/records.ts";
import type { ModelInfo } from "../models/types.ts";
import { EntryStore, type EntriesValue } from "../session/entry_store.ts";

export interface Core {
  idle?: boolean;
  run?: { id: unknown; aborted?: boolean } | null;
  pendingCount?: number;
  model?: ModelInfo | null;
  thinkingLevel?: string;
  contextUsage?: ContextUsage | null;
  sessionId?: string;
  sessionFile?: string | null;
  sessionDir?: string;
  sessionName?: string | null;
  cwd?: string;
  leafId?: string | null;
  entryCount?: number;
  trusted?: boolean;
  activeTools?: string[];
  hasUI?: boolean;
  mode?: string;
}

export interface ContextUsage {
  tokens: number | null;
  contextWindow: number;
  percent: number | null;
}

type ReadTopic = (topic: string, etag: unknown) => unknown;

interface CachedTopic {
  etag: unknown;
  value: unknown;
}

export class Mirror {
  private state: Core = {};
  private entries: EntryStore | undefined;
  private readonly topics = new Map<string, CachedTopic>();
  private run: { id: unknown; controller: AbortController } | undefined;

  constructor(private readonly read: ReadTopic) {}

  get core(): Core {
    return this.state;
  }

  /** Signal of the run, from `agent_start` to `agent_end`. */
  get signal(): AbortSignal | undefined {
    return this.run?.controller.signal;
  }

  /** Takes the whole of `core`. */
  bind(core: JsonObject): void {
    this.state = {};
    this.patchCore(core);
  }

  /** Forgets what belongs to a session that was replaced. */
  reset(): void {
    this.entries = undefined;
    this.topics.clear();
    this.patchCore({ run: null });
  }

  /** Applies a `state` note. False: the record is another one. */
  apply(record: DaemonRecord): boolean {
    if (record.type !== "state") return false;
    const patch = record["patch"];
    if (!isObject(patch)) return true;
    if (record["topic"] === "core") this.patchCore(patch);
    else if (record["topic"] === "entries") this.patchEntries(patch);
    return true;
  }

  /** The entries; read once, then kept current by patches. */
  entryStore(): EntryStore {
    if (this.entries === undefined) {
      const { value } = this.read("entries", undefined) as { value?: EntriesValue };
      // A reset that came before the answer is older than the answer.
      this.entries = new EntryStore(value ?? { header: null, entries: [], leafId: null });
    }
    return this.entries;
  }

  /** The current value of a topic that is not pushed. */
  topic(name: string): unknown {
    const known = this.topics.get(name);
    const { etag, value } = this.read(name, known?.etag) as { etag?: unknown; value?: unknown };
    if (value === undefined && known !== undefined) return known.value;
    this.topics.set(name, { etag, value });
    return value;
  }

  private patchCore(patch: JsonObject): void {
    const next: JsonObject = { ...this.state };
    for (const [key, value] of Object.entries(patch)) {
      if (value === null) delete next[key];
      else next[key] = value;
    }
    this.state = next as Core;
    if ("run" in patch) this.followRun();
  }

  private followRun(): void {
    const run = this.state.run ?? undefined;
    if (run === undefined) {
      this.run = undefined;
      return;
    }
    const followed = this.run?.id === run.id ? this.run : undefined;
    this.run = followed ?? { id: run.id, controller: new AbortController() };
    if (run.aborted) this.run.controller.abort();
  }

  private patchEntries(patch: JsonObject): void {
    if (patch["reset"] === true) {
      this.entries = new EntryStore(patch as unknown as EntriesValue);
      return;
    }
    this.entries?.append(patch as unknown as Partial<EntriesValue>);
  }
}
