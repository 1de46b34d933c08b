/** Sessions in folders. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { contentText } from "../../ai/transcript.ts";
import type { AgentMessage } from "./context.ts";
import { isHeader, parseSessionEntries, readHeader } from "./format.ts";

export interface SessionInfo {
  path: string;
  id: string;
  cwd: string;
  name?: string;
  parentSessionPath?: string;
  created: Date;
  modified: Date;
  messageCount: number;
  firstMessage: string;
  allMessagesText: string;
}

const NO_MESSAGES = "(no messages)";

/** Session files of a folder; none when it does not exist. */
export function sessionFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => join(folder, name));
}

/** The file that was changed last among the valid sessions of a folder, or undefined. */
export function findMostRecentSession(folder: string, cwd?: string): string | undefined {
  const byTime = sessionFiles(folder)
    .map((path) => ({ path, time: statSync(path).mtimeMs }))
    .sort((first, second) => second.time - first.time);
  return byTime.find(({ path }) => {
    const header = readHeader(path);
    return header !== undefined && (cwd === undefined || header.cwd === cwd);
  })?.path;
}

function messageText(message: AgentMessage): string {
  const content = message.content as string | { type: string; text?: string }[] | null | undefined;
  return content ? contentText(content, " ") : "";
}

/** What is told of a session in a list, or undefined when the file is no session. */
export async function describeSession(path: string): Promise<SessionInfo | undefined> {
  const records = parseSessionEntries(await readFile(path, "utf8"));
  const header = records[0];
  if (!isHeader(header)) return undefined;
  const messages = records.flatMap((record) => (record.type === "message" ? [record.message as AgentMessage] : []));
  const conversation = messages.filter(({ role }) => role === "user" || role === "assistant");
  const info = records.findLast((record) => record.type === "session_info");
  const name = typeof info?.name === "string" ? info.name.trim() : "";
  const created = new Date(header.timestamp);
  const last = conversation.at(-1)?.timestamp;
  const modified = typeof last === "number" ? new Date(last) : Number.isNaN(created.getTime()) ? (await stat(path)).mtime : created;
  const first = conversation.find(({ role }) => role === "user");
  return {
    path,
    id: header.id,
    cwd: header.cwd ?? "",
    ...(name ? { name } : {}),
    ...(header.parentSession === undefined ? {} : { parentSessionPath: header.parentSession }),
    created,
    modified,
    messageCount: messages.length,
    firstMessage: (first && messageText(first)) || NO_MESSAGES,
    allMessagesText: conversation.map(messageText).filter((text) => text !== "").join(" "),
  };
}

/** Describes sessions, the last modified first. */
export async function listSessions(
  paths: string[],
  onProgress?: (loaded: number, total: number) => void,
  signal?: AbortSignal,
): Promise<SessionInfo[]> {
  const sessions: SessionInfo[] = [];
  for (const [index, path] of paths.entries()) {
    signal?.throwIfAborted();
    const info = await describeSession(path);
    if (info) sessions.push(info);
    onProgress?.(index + 1, paths.length);
  }
  return sessions.sort((first, second) => second.modified.getTime() - first.modified.getTime());
}
