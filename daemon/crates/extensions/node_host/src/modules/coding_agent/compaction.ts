/** Sizes of transcripts in tokens, and where to cut them. Pure. */
import type { Content, Usage } from "../ai/types.ts";
import type { SessionEntry } from "../../session/entries.ts";
import { editedMessages, sessionEntryToContextMessages } from "./session/context.ts";

export interface CompactionSettings {
  enabled: boolean;
  reserveTokens: number;
  keepRecentTokens: number;
}

export const DEFAULT_COMPACTION_SETTINGS: CompactionSettings = {
  enabled: true,
  reserveTokens: 16384,
  keepRecentTokens: 20000,
};

const CHARACTERS_PER_TOKEN = 4;
const IMAGE_CHARACTERS = 4800;

type AgentMessage = { role: string; [key: string]: unknown };

export function calculateContextTokens(usage: Usage): number {
  return usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
}

export function shouldCompact(contextTokens: number, contextWindow: number, settings: CompactionSettings): boolean {
  return settings.enabled && contextTokens > contextWindow - settings.reserveTokens;
}

/** Kinds of blocks that count in messages of a role. */
const COUNTED: Record<string, readonly string[]> = {
  assistant: ["text", "thinking", "toolCall"],
};
const COUNTED_ELSEWHERE = ["text", "image"];

function charactersOf(role: string, content: unknown): number {
  if (typeof content === "string") return content.length;
  if (!Array.isArray(content)) return 0;
  const counted = COUNTED[role] ?? COUNTED_ELSEWHERE;
  return (content as Content[]).reduce((sum, block) => {
    if (!counted.includes(block.type)) return sum;
    switch (block.type) {
      case "text":
        return sum + block.text.length;
      case "image":
        return sum + IMAGE_CHARACTERS;
      case "thinking":
        return sum + block.thinking.length;
      case "toolCall":
        return sum + block.name.length + JSON.stringify(block.arguments).length;
    }
  }, 0);
}

function textLength(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}

/** Tokens of a message, estimated by its characters. */
export function estimateTokens(message: AgentMessage): number {
  switch (message.role) {
    case "bashExecution":
      return Math.ceil((textLength(message.command) + textLength(message.output)) / CHARACTERS_PER_TOKEN);
    case "branchSummary":
    case "compactionSummary":
      return Math.ceil(textLength(message.summary) / CHARACTERS_PER_TOKEN);
    default:
      return Math.ceil(charactersOf(message.role, message.content) / CHARACTERS_PER_TOKEN);
  }
}

function assistantUsage(entry: SessionEntry): Usage | undefined {
  if (entry.type !== "message") return undefined;
  const message = entry.message as { role?: string; stopReason?: string; usage?: Usage };
  if (message.role !== "assistant" || message.stopReason === "aborted" || message.stopReason === "error") return undefined;
  return message.usage && calculateContextTokens(message.usage) > 0 ? message.usage : undefined;
}

/** Usage of the last answer that was completed. */
export function getLastAssistantUsage(entries: SessionEntry[]): Usage | undefined {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const usage = assistantUsage(entries[index] as SessionEntry);
    if (usage) return usage;
  }
  return undefined;
}

/** Roles of messages before which a transcript may be cut. */
const CUT_ROLES = new Set(["user", "assistant", "bashExecution", "custom", "branchSummary", "compactionSummary"]);
const TURN_START_ROLES = new Set(["user", "bashExecution", "custom", "branchSummary"]);

function roleOf(entry: SessionEntry | undefined): string | undefined {
  return entry && sessionEntryToContextMessages(entry)[0]?.role;
}

/** Index of the message that began the turn of an entry, or -1. */
export function findTurnStartIndex(entries: SessionEntry[], entryIndex: number, startIndex: number): number {
  for (let index = entryIndex; index >= startIndex; index -= 1) {
    const role = roleOf(entries[index]);
    if (role !== undefined && TURN_START_ROLES.has(role)) return index;
  }
  return -1;
}

export interface CutPointResult {
  firstKeptEntryIndex: number;
  turnStartIndex: number;
  isSplitTurn: boolean;
}

/** Where to cut so that about so many tokens of the end are kept. Tool results stay with their calls. */
export function findCutPoint(
  entries: SessionEntry[],
  startIndex: number,
  endIndex: number,
  keepRecentTokens: number,
): CutPointResult {
  const cuts: number[] = [];
  for (let index = startIndex; index < endIndex; index += 1) {
    const role = roleOf(entries[index]);
    if (role !== undefined && CUT_ROLES.has(role) && entries[index]?.type !== "compaction") cuts.push(index);
  }
  if (cuts.length === 0) return { firstKeptEntryIndex: startIndex, turnStartIndex: -1, isSplitTurn: false };
  let at = cuts[0] as number;
  let tokens = 0;
  for (let index = endIndex - 1; index >= startIndex; index -= 1) {
    const own = sessionEntryToContextMessages(entries[index] as SessionEntry).reduce((sum, message) => sum + estimateTokens(message), 0);
    tokens += own;
    if (own === 0 || tokens < keepRecentTokens) continue;
    at = cuts.find((cut) => cut >= index) ?? (cuts.at(-1) as number);
    break;
  }
  // Entries that no model reads belong to what follows them.
  while (at > startIndex) {
    const before = entries[at - 1] as SessionEntry;
    if (before.type === "compaction" || roleOf(before) !== undefined) break;
    at -= 1;
  }
  const role = roleOf(entries[at]);
  const isTurnStart = role !== undefined && TURN_START_ROLES.has(role);
  const turnStartIndex = isTurnStart ? -1 : findTurnStartIndex(entries, at, startIndex);
  return { firstKeptEntryIndex: at, turnStartIndex, isSplitTurn: turnStartIndex !== -1 };
}

interface FileOperations {
  read: Set<string>;
  written: Set<string>;
  edited: Set<string>;
}

function collectFileOperations(message: AgentMessage, operations: FileOperations): void {
  const calls: { name: string; arguments?: Record<string, unknown> }[] = [];
  if (message.role === "assistant" && Array.isArray(message.content)) {
    for (const block of message.content as Content[]) if (block.type === "toolCall") calls.push(block);
  }
  const nested = message.nestedCalls as { calls?: typeof calls } | undefined;
  calls.push(...(nested?.calls ?? []));
  for (const call of calls) {
    const path = call.arguments?.path;
    if (typeof path !== "string") continue;
    if (call.name === "read") operations.read.add(path);
    else if (call.name === "write") operations.written.add(path);
    else if (call.name === "edit") operations.edited.add(path);
  }
}

/** Messages of a branch that is to be summarised, newest first as far as they fit, and the files it touched. */
export function prepareBranchEntries(
  entries: SessionEntry[],
  tokenBudget = 0,
): { messages: AgentMessage[]; fileOps: FileOperations; totalTokens: number } {
  const fileOps: FileOperations = { read: new Set(), written: new Set(), edited: new Set() };
  for (const entry of entries) {
    if (entry.type === "branch_summary" && !entry.fromHook) {
      const details = entry.details as { readFiles?: string[]; modifiedFiles?: string[] } | undefined;
      for (const path of details?.readFiles ?? []) fileOps.read.add(path);
      for (const path of details?.modifiedFiles ?? []) fileOps.edited.add(path);
    }
    for (const message of sessionEntryToContextMessages(entry)) collectFileOperations(message, fileOps);
  }
  const read = editedMessages(entries);
  const messages: AgentMessage[] = [];
  let totalTokens = 0;
  for (const entry of [...entries].reverse()) {
    // A compaction stands for its summary; its system message is no part of the conversation.
    const own = read(entry).filter(
      ({ role }) => role !== "toolResult" && (entry.type !== "compaction" || role !== "system"),
    );
    const tokens = own.reduce((sum, message) => sum + estimateTokens(message), 0);
    if (tokenBudget > 0 && totalTokens + tokens > tokenBudget) break;
    messages.unshift(...own);
    totalTokens += tokens;
  }
  return { messages, fileOps, totalTokens };
}

interface BranchReader {
  getBranch(fromId?: string): SessionEntry[];
}

/** The entries that navigation from one place of the tree to another leaves behind. */
export function collectEntriesForBranchSummary(
  session: BranchReader,
  oldLeafId: string | null,
  targetId: string,
): { entries: SessionEntry[]; commonAncestorId: string | null } {
  if (oldLeafId === null) return { entries: [], commonAncestorId: null };
  const kept = new Set(session.getBranch(targetId).map(({ id }) => id));
  const branch = session.getBranch(oldLeafId);
  const shared = branch.findLastIndex(({ id }) => kept.has(id));
  return { entries: branch.slice(shared + 1), commonAncestorId: branch[shared]?.id ?? null };
}
