/**
 * The writable session that `newSession({setup})` hands to an extension.
 *
 * The extension fills it synchronously; what it appended goes to the daemon in one piece afterwards.
 */
import { randomUUID } from "node:crypto";
import type { SessionEntry } from "./entries.ts";
import { type EntriesValue, EntryStore } from "./entry_store.ts";

const ID_CHARACTERS = 8;

export interface SetupResult {
  entries: SessionEntry[];
  leafId: string | null;
}

export class SetupSession {
  private readonly store: EntryStore;
  private readonly appended: SessionEntry[] = [];

  constructor(initial: EntriesValue) {
    this.store = new EntryStore(initial);
  }

  result(): SetupResult {
    return { entries: this.appended, leafId: this.store.leafId };
  }

  getEntries(): SessionEntry[] {
    return [...this.store.entries];
  }

  getEntry(id: string): SessionEntry | undefined {
    return this.store.get(id);
  }

  getBranch(fromId?: string): SessionEntry[] {
    return this.store.branch(fromId);
  }

  getHeader(): unknown {
    return this.store.header;
  }

  getLeafId(): string | null {
    return this.store.leafId;
  }

  getLeafEntry(): SessionEntry | undefined {
    return this.store.leafId === null ? undefined : this.store.get(this.store.leafId);
  }

  getLabel(id: string): string | undefined {
    return this.store.label(id);
  }

  getSessionId(): string {
    return this.store.header?.id ?? "";
  }

  getCwd(): string {
    return this.store.header?.cwd ?? process.cwd();
  }

  appendMessage(message: object): string {
    return this.append("message", { message });
  }

  appendThinkingLevelChange(thinkingLevel: string): string {
    return this.append("thinking_level_change", { thinkingLevel });
  }

  appendModelChange(provider: string, modelId: string): string {
    return this.append("model_change", { provider, modelId });
  }

  appendCustomEntry(customType: string, data?: unknown): string {
    return this.append("custom", { customType, data });
  }

  appendCustomMessageEntry(customType: string, content: unknown, display: boolean, details?: unknown): string {
    return this.append("custom_message", { customType, content, display, details });
  }

  appendSessionInfo(name: string): string {
    return this.append("session_info", { name: name.replace(/[\r\n]+/g, " ").trim() });
  }

  appendLabelChange(targetId: string, label: string | undefined): string {
    if (this.store.get(targetId) === undefined) throw new Error(`Entry ${targetId} not found`);
    return this.append("label", { targetId, label });
  }

  appendContextEdit(targetId: string, replacement: unknown): string {
    if (this.store.get(targetId) === undefined) throw new Error(`Entry ${targetId} not found`);
    return this.append("context_edit", { targetId, replacement });
  }

  appendCompaction(
    summary: string,
    firstKeptEntryId: string | null,
    tokensBefore: number,
    details?: unknown,
    fromHook?: boolean,
    usage?: unknown,
  ): string {
    const id = this.newId();
    return this.append("compaction", { summary, firstKeptEntryId: firstKeptEntryId ?? id, tokensBefore, details, usage, fromHook }, id);
  }

  branch(id: string): void {
    if (this.store.get(id) === undefined) throw new Error(`Entry ${id} not found`);
    this.store.leafId = id;
  }

  resetLeaf(): void {
    this.store.leafId = null;
  }

  private append(type: string, payload: object, id = this.newId()): string {
    const entry = { type, id, parentId: this.store.leafId, timestamp: new Date().toISOString(), ...payload } as SessionEntry;
    this.store.append({ entries: [entry], leafId: id });
    this.appended.push(entry);
    return id;
  }

  private newId(): string {
    for (;;) {
      const id = randomUUID().slice(0, ID_CHARACTERS);
      if (this.store.get(id) === undefined) return id;
    }
  }
}
