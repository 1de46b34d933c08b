/** Session files: their lines, old versions, and names. */
import { randomUUID } from "node:crypto";
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import type { SessionEntry, SessionHeader } from "../../../session/entries.ts";

export const CURRENT_SESSION_VERSION = 3;

/** A line of a session file: the header or an entry. */
export type FileEntry = (SessionHeader & { version?: number; parentSession?: string }) | SessionEntry;
export type Header = SessionHeader & { version?: number; parentSession?: string };

const SESSION_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const SHORT_ID = 8;
const ID_ATTEMPTS = 100;
/** Longest part of a file that is searched for its header. */
const HEADER_BYTES = 1024 * 1024;

export function assertValidSessionId(id: string): void {
  if (SESSION_ID.test(id)) return;
  throw new Error(
    "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character",
  );
}

/** A short id that is not taken yet. */
export function newEntryId(taken: { has(id: string): boolean }): string {
  for (let attempt = 0; attempt < ID_ATTEMPTS; attempt += 1) {
    const id = randomUUID().slice(0, SHORT_ID);
    if (!taken.has(id)) return id;
  }
  return randomUUID();
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseLine(line: string): FileEntry[] {
  if (line.trim() === "") return [];
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? [value as FileEntry] : [];
  } catch {
    // A line that was written half is skipped, as pi does.
    return [];
  }
}

/** The records of a session file's text; lines that are no JSON are left out. */
export function parseSessionEntries(content: string): FileEntry[] {
  return content.split("\n").flatMap(parseLine);
}

export function isHeader(entry: FileEntry | undefined): entry is Header {
  return entry?.type === "session" && typeof entry.id === "string";
}

/** The records of a file, or none when it is no session file. */
export function loadEntriesFromFile(path: string): FileEntry[] {
  const entries = parseSessionEntries(readFileSync(path, "utf8"));
  return isHeader(entries[0]) ? entries : [];
}

/** The header of a file, without reading all of it; undefined when it is no session file. */
export function readHeader(path: string): Header | undefined {
  const file = openSync(path, "r");
  try {
    let text = "";
    const buffer = Buffer.alloc(64 * 1024);
    while (text.length < HEADER_BYTES) {
      const count = readSync(file, buffer);
      if (count === 0) break;
      text += buffer.toString("latin1", 0, count);
      const complete = text.slice(0, text.lastIndexOf("\n") + 1);
      const first = parseSessionEntries(Buffer.from(complete, "latin1").toString("utf8"))[0];
      if (first) return isHeader(first) ? first : undefined;
    }
    const first = parseSessionEntries(Buffer.from(text, "latin1").toString("utf8"))[0];
    return isHeader(first) ? first : undefined;
  } finally {
    closeSync(file);
  }
}

/** Brings records to the present version, in place. */
export function migrateSessionEntries(entries: FileEntry[]): boolean {
  const header = entries.find(isHeader);
  const version = header?.version ?? 1;
  if (version >= CURRENT_SESSION_VERSION) return false;
  if (version < 2) linkEntries(entries);
  for (const entry of entries) {
    const message = entry.type === "message" ? (entry as SessionEntry).message : undefined;
    if (isRecord(message) && message.role === "hookMessage") message.role = "custom";
  }
  if (header) header.version = CURRENT_SESSION_VERSION;
  return true;
}

/** Version 1 is a list: each entry gets an id and the entry before it as its parent. */
function linkEntries(entries: FileEntry[]): void {
  const ids = new Set<string>();
  let parentId: string | null = null;
  for (const entry of entries) {
    if (entry.type === "session") continue;
    const linked = entry as SessionEntry;
    linked.id = newEntryId(ids);
    linked.parentId = parentId;
    ids.add(linked.id);
    parentId = linked.id;
  }
  for (const entry of entries) {
    if (entry.type !== "compaction") continue;
    const kept = entries[Number(entry.firstKeptEntryIndex)];
    if (kept && kept.type !== "session") entry.firstKeptEntryId = kept.id;
    delete entry.firstKeptEntryIndex;
  }
}

/** Name of the folder of a working directory's sessions. */
export function directoryNameOf(cwd: string): string {
  return `--${cwd.replace(/^[/\\]/, "").replace(/[/\\:]/g, "-")}--`;
}

/** Name of a new session's file. */
export function fileNameOf(timestamp: string, id: string): string {
  return `${timestamp.replace(/[:.]/g, "-")}_${id}.jsonl`;
}
