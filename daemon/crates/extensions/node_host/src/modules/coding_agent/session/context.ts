/** The context that a model gets of a session's entries. Pure. */
import { branchOf, contextEntriesOf, type SessionEntry } from "../../../session/entries.ts";

export type AgentMessage = { role: string; [key: string]: unknown };

export interface SessionProjection {
  entries: { sourceEntry: SessionEntry; messages: AgentMessage[] }[];
  messages: AgentMessage[];
  thinkingLevel: string;
  model: { provider: string; modelId: string } | null;
}

/** The messages that an entry stands for, without regard to edits. */
export function sessionEntryToContextMessages(entry: SessionEntry): AgentMessage[] {
  const timestamp = Date.parse(entry.timestamp);
  switch (entry.type) {
    case "message":
      return [entry.message as AgentMessage];
    case "custom_message":
      return [
        {
          role: "custom",
          customType: entry.customType,
          content: entry.content,
          display: entry.display,
          details: entry.details,
          timestamp,
        },
      ];
    case "branch_summary":
      if (!entry.summary) return [];
      return [{ role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp }];
    case "compaction": {
      const summary = {
        role: "compactionSummary",
        summary: entry.summary,
        tokensBefore: entry.tokensBefore,
        timestamp,
      };
      return entry.systemMessage ? [entry.systemMessage as AgentMessage, summary] : [summary];
    }
    default:
      return [];
  }
}

const EDITABLE = new Set(["user", "assistant", "toolResult", "custom"]);

interface Replacement {
  content: unknown;
}

/** The messages of an entry after its last edit. */
function projected(entry: SessionEntry, edit: SessionEntry | undefined): AgentMessage[] {
  const messages = sessionEntryToContextMessages(entry);
  if (!edit) return messages;
  const replacement = edit.replacement as Replacement | null;
  if (replacement === null) return [];
  return messages.map((message) => {
    if (!EDITABLE.has(message.role)) return message;
    const { content } = replacement;
    const blocks = typeof content === "string" && (message.role === "assistant" || message.role === "toolResult");
    return { ...message, content: blocks ? [{ type: "text", text: content }] : content };
  });
}

/** Reads entries with the last edit of each that is among them. */
export function editedMessages(entries: readonly SessionEntry[]): (entry: SessionEntry) => AgentMessage[] {
  const edits = new Map<string, SessionEntry>();
  for (const entry of entries) if (entry.type === "context_edit") edits.set(String(entry.targetId), entry);
  return (entry) => projected(entry, edits.get(entry.id));
}

function indexOf(entries: SessionEntry[]): Map<string, SessionEntry> {
  return new Map(entries.map((entry) => [entry.id, entry]));
}

/** The way from the root to the leaf; an unknown leaf stands for the last entry. */
function pathTo(
  entries: SessionEntry[],
  leafId: string | null | undefined,
  byId: Map<string, SessionEntry> = indexOf(entries),
): SessionEntry[] {
  if (leafId === null) return [];
  const leaf = (leafId === undefined ? undefined : byId.get(leafId)) ?? entries.at(-1);
  return leaf ? branchOf(byId, leaf.id) : [];
}

/** The entries of the branch that count: from the last compaction on, with those that it kept. */
export function buildContextEntries(
  entries: SessionEntry[],
  leafId?: string | null,
  byId?: Map<string, SessionEntry>,
): SessionEntry[] {
  return contextEntriesOf(pathTo(entries, leafId, byId));
}

function settingsOf(path: SessionEntry[]): Pick<SessionProjection, "thinkingLevel" | "model"> {
  let thinkingLevel = "off";
  let model: SessionProjection["model"] = null;
  for (const entry of path) {
    if (entry.type === "thinking_level_change") thinkingLevel = String(entry.thinkingLevel);
    else if (entry.type === "model_change") {
      model = { provider: String(entry.provider), modelId: String(entry.modelId) };
    } else if (entry.type === "message") {
      const message = entry.message as AgentMessage;
      if (message.role === "assistant") model = { provider: String(message.provider), modelId: String(message.model) };
    }
  }
  return { thinkingLevel, model };
}

/** The context of a branch, each message with the entry that it comes from. */
export function buildSessionProjection(
  entries: SessionEntry[],
  leafId?: string | null,
  byId?: Map<string, SessionEntry>,
): SessionProjection {
  const path = pathTo(entries, leafId, byId);
  const selected = contextEntriesOf(path);
  const messagesOf = editedMessages(selected);
  const projection = selected.map((entry, index) => ({
    sourceEntry: entry,
    // Compactions before the last one are within what it kept and say nothing.
    messages: entry.type === "compaction" && index > 0 ? [] : messagesOf(entry),
  }));
  return { entries: projection, messages: projection.flatMap(({ messages }) => messages), ...settingsOf(path) };
}

/** The context of a branch. */
export function buildSessionContext(
  entries: SessionEntry[],
  leafId?: string | null,
  byId?: Map<string, SessionEntry>,
): Omit<SessionProjection, "entries"> {
  const { messages, thinkingLevel, model } = buildSessionProjection(entries, leafId, byId);
  return { messages, thinkingLevel, model };
}

/** The last compaction of a list, or null. */
export function getLatestCompactionEntry(entries: SessionEntry[]): SessionEntry | null {
  return entries.findLast((entry) => entry.type === "compaction") ?? null;
}
