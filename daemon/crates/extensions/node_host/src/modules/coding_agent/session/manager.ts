/**
 * A session that an extension reads or writes by itself.
 *
 * It works on files as pi does: nothing is written before the session has a message of the user or the model,
 * and then entry by entry. The session of the daemon itself is another one: `ctx.sessionManager` reads it.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { SessionEntry, TreeNode } from "../../../session/entries.ts";
import { EntryStore } from "../../../session/entry_store.ts";
import { uuidv7 } from "../../ai/uuid.ts";
import { NotAvailableError } from "../../unavailable.ts";
import {
  type AgentMessage,
  buildContextEntries,
  buildSessionContext,
  buildSessionProjection,
  type SessionProjection,
  sessionEntryToContextMessages,
} from "./context.ts";
import {
  assertValidSessionId,
  CURRENT_SESSION_VERSION,
  fileNameOf,
  type FileEntry,
  type Header,
  isHeader,
  loadEntriesFromFile,
  migrateSessionEntries,
  newEntryId,
} from "./format.ts";

export interface NewSessionOptions {
  id?: string;
  parentSession?: string;
}

/** Where a manager keeps its session. */
export interface Place {
  cwd: string;
  sessionDir: string;
  /** Whether the folder is the one of the working directory. */
  isDefaultDir: boolean;
  /** False: nothing is ever written. */
  persist: boolean;
}

function toLines(records: readonly FileEntry[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("");
}

const EDITABLE_ROLES = new Set(["user", "assistant", "toolResult", "custom"]);

/** What a session of the daemon is asked for. */
export interface SessionCalls {
  callSync(method: string, params: object): unknown;
}

interface AttachedSession {
  readonly store: EntryStore;
  calls: SessionCalls;
}

/** Has the daemon append an entry, if it is one that extensions may append. */
function appendLive(live: AttachedSession, type: string, payload: Record<string, unknown>): SessionEntry {
  const { calls } = live;
  if (type === "custom") calls.callSync("session.appendEntry", { customType: payload.customType, data: payload.data });
  else if (type === "label") calls.callSync("session.setLabel", { entryId: payload.targetId, label: payload.label ?? null });
  else if (type === "session_info") calls.callSync("session.setName", { name: payload.name });
  else throw new NotAvailableError(`Appending an entry "${type}" to the session of an agent`);
  // What a call has changed is known here before its answer.
  const { store } = live;
  const entry = store.leafId === null ? undefined : store.get(store.leafId);
  if (entry === undefined) throw new Error(`The entry "${type}" was not appended`);
  return entry;
}

export class SessionFileManager {
  #place: Place;
  #store!: EntryStore;
  #header!: Header;
  #file: string | undefined;
  /** Whether the file holds everything so far. */
  #flushed = false;

  /** The session of an agent that the daemon runs, once this manager is its own. */
  #live: AttachedSession | undefined;

  constructor(place: Place) {
    this.#place = place;
    if (place.persist) mkdirSync(place.sessionDir, { recursive: true });
  }

  get #current(): EntryStore {
    return this.#live?.store ?? this.#store;
  }

  /** How the daemon opens this session: its file, and who it is where that is new. Entries that only this process has are written first. */
  forAgent(): { file?: string; id: string; parent?: string } {
    if (this.#live !== undefined) throw new Error("This session is that of an agent already");
    const { id, parentSession } = this.#header;
    if (this.#file !== undefined && !this.#flushed && this.#store.entries.length > 0) {
      mkdirSync(dirname(this.#file), { recursive: true });
      writeFileSync(this.#file, toLines([this.#header, ...this.#store.entries]), { flag: "wx" });
      this.#flushed = true;
    }
    return { ...(this.#file === undefined ? {} : { file: this.#file }), id, ...(typeof parentSession === "string" ? { parent: parentSession } : {}) };
  }

  /** The daemon runs the session from here on. Returns what it is filled with, where it has entries of this process or another leaf. */
  attach(live: { readonly store: EntryStore }, calls: SessionCalls): { entries: SessionEntry[]; leafId: string | null } | undefined {
    const { entries, leafId } = this.#store;
    this.#live = {
      get store() {
        return live.store;
      },
      calls,
    };
    if (this.#file === undefined && entries.length > 0) return { entries, leafId };
    return entries.length > 0 && leafId !== (entries.at(-1)?.id ?? null) ? { entries: [], leafId } : undefined;
  }

  /** Begins a new session and returns its file. */
  newSession(options: NewSessionOptions = {}): string | undefined {
    this.#refuseLive("newSession");
    if (options.id !== undefined) assertValidSessionId(options.id);
    const id = options.id ?? uuidv7();
    const timestamp = new Date().toISOString();
    const header: Header = {
      type: "session",
      version: CURRENT_SESSION_VERSION,
      id,
      timestamp,
      cwd: this.#place.cwd,
      ...(options.parentSession === undefined ? {} : { parentSession: options.parentSession }),
    };
    this.#take(header, []);
    this.#flushed = false;
    this.#file = this.#place.persist ? join(this.#place.sessionDir, fileNameOf(timestamp, id)) : undefined;
    return this.#file;
  }

  /** Goes over to a file. One that does not exist is written when there is something to write. */
  setSessionFile(path: string): void {
    this.#refuseLive("setSessionFile");
    const file = resolve(path);
    if (!existsSync(file)) {
      this.newSession();
      this.#file = file;
      return;
    }
    const records = loadEntriesFromFile(file);
    if (records.length === 0) {
      if (statSync(file).size > 0) throw new Error(`Session file is not a valid pi session: ${file}`);
      this.newSession();
      this.#file = file;
      writeFileSync(file, toLines([this.#header]));
      this.#flushed = true;
      return;
    }
    const migrated = migrateSessionEntries(records);
    this.takeRecords(records);
    this.#file = file;
    this.#flushed = true;
    if (migrated) writeFileSync(file, toLines(records));
    else if (!readFileSync(file, "utf8").endsWith("\n")) appendFileSync(file, "\n");
  }

  /** Takes over all branches of another session and writes them. */
  copyEntries(entries: SessionEntry[]): void {
    this.#take(this.#header, entries);
    if (!this.#file) return;
    writeFileSync(this.#file, toLines([this.#header, ...entries]), { flag: "wx" });
    this.#flushed = true;
  }

  /** Takes over records that are held elsewhere. */
  takeRecords(records: FileEntry[]): void {
    const header = records.find(isHeader);
    if (!header) return void this.newSession();
    const entries = records.filter((record): record is SessionEntry => record.type !== "session");
    this.#take(header, entries);
  }

  #take(header: Header, entries: SessionEntry[]): void {
    this.#header = header;
    this.#store = new EntryStore({ header, entries, leafId: entries.at(-1)?.id ?? null });
  }

  #hasConversation(): boolean {
    return this.#current.entries.some((entry) => {
      const role = entry.type === "message" ? (entry.message as AgentMessage).role : undefined;
      return role === "user" || role === "assistant";
    });
  }

  #persist(entry: SessionEntry): void {
    if (!this.#file || !this.#hasConversation()) return;
    if (this.#flushed) {
      appendFileSync(this.#file, toLines([entry]));
      return;
    }
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(this.#file, toLines([this.#header, ...this.#current.entries]), { flag: "wx" });
    this.#flushed = true;
  }

  /** Appends an entry behind the leaf. When it cannot be written, it is taken back. */
  /** What would change the session of an agent in another way than its commands do. */
  #refuseLive(what: string): void {
    if (this.#live !== undefined) throw new NotAvailableError(`SessionManager.${what} of the session of an agent`);
  }

  #append(type: string, payload: Record<string, unknown>, payloadFirst = false): SessionEntry {
    if (this.#live !== undefined) return appendLive(this.#live, type, payload);
    const base = {
      id: newEntryId({ has: (id) => this.#current.get(id) !== undefined }),
      parentId: this.#current.leafId,
      timestamp: new Date().toISOString(),
    };
    const entry = (payloadFirst ? { type, ...payload, ...base } : { type, ...base, ...payload }) as SessionEntry;
    const before = { entries: [...this.#current.entries], leafId: this.#current.leafId };
    this.#current.append({ entries: [entry], leafId: entry.id });
    try {
      this.#persist(entry);
    } catch (error) {
      this.#store = new EntryStore({ header: this.#header, ...before });
      throw error;
    }
    return entry;
  }

  appendMessage(message: AgentMessage): string {
    return this.#append("message", { message }).id;
  }

  appendThinkingLevelChange(thinkingLevel: string): string {
    return this.#append("thinking_level_change", { thinkingLevel }).id;
  }

  appendModelChange(provider: string, modelId: string): string {
    return this.#append("model_change", { provider, modelId }).id;
  }

  appendUsage(kind: string, provider: string, model: string, usage: unknown, note?: string): SessionEntry {
    return this.#append("usage", { kind, provider, model, usage, note });
  }

  appendCompaction(
    summary: string,
    firstKeptEntryId: string | null,
    tokensBefore: number,
    details?: unknown,
    fromHook?: boolean,
    usage?: unknown,
  ): string {
    const payload = { summary, firstKeptEntryId, tokensBefore, details, usage, fromHook };
    if (firstKeptEntryId !== null) return this.#append("compaction", payload).id;
    // Null keeps nothing: the entry then names itself, so that its id must be known before it is appended.
    const id = newEntryId({ has: (taken) => this.#current.get(taken) !== undefined });
    return this.#append("compaction", { ...payload, firstKeptEntryId: id, id }).id;
  }

  appendCustomEntry(customType: string, data?: unknown): string {
    return this.#append("custom", { customType, data }, true).id;
  }

  appendCustomMessageEntry(customType: string, content: unknown, display: boolean, details?: unknown): string {
    return this.#append("custom_message", { customType, content, display, details }, true).id;
  }

  appendSessionInfo(name: string): string {
    return this.#append("session_info", { name: name.replace(/[\r\n]+/g, " ").trim() }).id;
  }

  appendContextEdit(targetId: string, replacement: { content: unknown } | null): string {
    const target = this.#current.get(targetId);
    if (!target) throw new Error(`Entry ${targetId} not found`);
    if (!this.#current.branch().includes(target)) throw new Error(`Entry ${targetId} is not on the active branch`);
    const message = sessionEntryToContextMessages(target)[0];
    if (!message || !EDITABLE_ROLES.has(message.role)) {
      throw new Error(`Entry ${targetId} does not contribute editable model content`);
    }
    const text = replacement?.content;
    const blocks = typeof text === "string" && (message.role === "assistant" || message.role === "toolResult");
    const stored = blocks ? { content: [{ type: "text", text }] } : replacement;
    return this.#append("context_edit", { targetId, replacement: stored }).id;
  }

  appendLabelChange(targetId: string, label: string | undefined): string {
    if (!this.#current.get(targetId)) throw new Error(`Entry ${targetId} not found`);
    return this.#append("label", { targetId, label }).id;
  }

  isPersisted(): boolean {
    return this.#place.persist;
  }

  getCwd(): string {
    return this.#place.cwd;
  }

  getSessionDir(): string {
    return this.#place.sessionDir;
  }

  usesDefaultSessionDir(): boolean {
    return this.#place.isDefaultDir;
  }

  getSessionId(): string {
    return this.#header.id;
  }

  getSessionFile(): string | undefined {
    return this.#file;
  }

  getHeader(): Header | null {
    return this.#header;
  }

  getEntryCount(): number {
    return this.#current.entries.length;
  }

  getEntries(): SessionEntry[] {
    return [...this.#current.entries];
  }

  getEntry(id: string): SessionEntry | undefined {
    return this.#current.get(id);
  }

  getChildren(parentId: string): SessionEntry[] {
    return this.#current.entries.filter((entry) => entry.parentId === parentId);
  }

  getLeafId(): string | null {
    return this.#current.leafId;
  }

  getLeafEntry(): SessionEntry | undefined {
    return this.#current.leafId === null ? undefined : this.#current.get(this.#current.leafId);
  }

  getLabel(id: string): string | undefined {
    return this.#current.label(id);
  }

  getSessionName(): string | undefined {
    const info = this.#current.entries.findLast((entry) => entry.type === "session_info");
    return (typeof info?.name === "string" && info.name.trim()) || undefined;
  }

  getBranch(fromId?: string): SessionEntry[] {
    return this.#current.branch(fromId);
  }

  getTree(): TreeNode[] {
    return this.#current.tree();
  }

  buildContextEntries(): SessionEntry[] {
    return buildContextEntries(this.#current.entries, this.#current.leafId);
  }

  buildSessionProjection(): SessionProjection {
    return buildSessionProjection(this.#current.entries, this.#current.leafId);
  }

  buildSessionContext(): Omit<SessionProjection, "entries"> {
    return buildSessionContext(this.#current.entries, this.#current.leafId);
  }

  /** Moves the leaf; the next entry begins a branch there. */
  branch(branchFromId: string): void {
    this.#refuseLive("branch");
    if (!this.#current.get(branchFromId)) throw new Error(`Entry ${branchFromId} not found`);
    this.#current.append({ leafId: branchFromId });
  }

  resetLeaf(): void {
    this.#refuseLive("resetLeaf");
    this.#current.append({ leafId: null });
  }

  branchWithSummary(
    branchFromId: string | null,
    summary: string,
    details?: unknown,
    fromHook?: boolean,
    usage?: unknown,
  ): string {
    if (branchFromId !== null && !this.#current.get(branchFromId)) throw new Error(`Entry ${branchFromId} not found`);
    const fromId = this.#current.leafId ?? "root";
    this.#current.append({ leafId: branchFromId });
    return this.#append("branch_summary", { fromId, summary, details, usage, fromHook }).id;
  }

  /** Goes over to a new session that holds only the way to a leaf, and returns its file. */
  createBranchedSession(leafId: string): string | undefined {
    const path = this.#current.branch(leafId);
    if (path.length === 0) throw new Error(`Entry ${leafId} not found`);
    const labels = path.flatMap(({ id }) => this.#labelOf(id));
    const parentSession = this.#file;
    const entries = withoutLabels(path);
    this.newSession(parentSession === undefined ? {} : { parentSession });
    const ids = new Set(entries.map(({ id }) => id));
    for (const label of labels) {
      const id = newEntryId(ids);
      ids.add(id);
      const parentId = entries.at(-1)?.id ?? null;
      entries.push({ type: "label", id, parentId, timestamp: label.timestamp, targetId: label.targetId, label: label.text });
    }
    this.#take(this.#header, entries);
    if (this.#file && this.#hasConversation()) {
      writeFileSync(this.#file, toLines([this.#header, ...entries]), { flag: "wx" });
      this.#flushed = true;
    }
    return this.#file;
  }

  #labelOf(id: string): { targetId: string; text: string; timestamp: string }[] {
    const entry = this.#current.entries.findLast((label) => label.type === "label" && label.targetId === id);
    if (typeof entry?.label !== "string" || entry.label === "") return [];
    return [{ targetId: id, text: entry.label, timestamp: entry.timestamp }];
  }
}

/** The entries of a path without its labels, linked over the gaps. */
function withoutLabels(path: SessionEntry[]): SessionEntry[] {
  const kept: SessionEntry[] = [];
  /** Ids of labels, with the entry that follows them. */
  const next = new Map<string, string>();
  let waiting: string[] = [];
  for (const entry of path) {
    if (entry.type === "label") {
      waiting.push(entry.id);
      continue;
    }
    for (const id of waiting) next.set(id, entry.id);
    waiting = [];
    kept.push({ ...entry, parentId: kept.at(-1)?.id ?? null });
  }
  return kept.map((entry) => {
    const first = entry.type === "compaction" ? next.get(String(entry.firstKeptEntryId)) : undefined;
    return first === undefined ? entry : { ...entry, firstKeptEntryId: first };
  });
}
