/** Entries of a session file, as far as the host looks into them. */
import type { JsonObject } from "../protocol/records.ts";

export interface SessionEntry extends JsonObject {
  type: string;
  id: string;
  parentId: string | null;
  timestamp: string;
}

export interface SessionHeader extends JsonObject {
  type: "session";
  id: string;
  timestamp: string;
  cwd: string;
}

export interface TreeNode {
  entry: SessionEntry;
  children: TreeNode[];
  label?: string;
  labelTimestamp?: string;
}

/** The way from `leafId` to the root, root first. A missing parent ends it. Pure. */
export function branchOf(byId: ReadonlyMap<string, SessionEntry>, leafId: string | null | undefined): SessionEntry[] {
  const branch: SessionEntry[] = [];
  const seen = new Set<string>();
  let id = leafId ?? undefined;
  while (id !== undefined && !seen.has(id)) {
    seen.add(id);
    const entry = byId.get(id);
    if (entry === undefined) break;
    branch.push(entry);
    id = entry.parentId ?? undefined;
  }
  return branch.reverse();
}

/**
 * The entries of a branch that count for the model: from the last compaction on, with the entries that
 * it kept. Pure.
 */
export function contextEntriesOf(branch: readonly SessionEntry[]): SessionEntry[] {
  const at = branch.findLastIndex((entry) => entry.type === "compaction");
  const compaction = branch[at];
  if (compaction === undefined) return [...branch];
  const firstKept = branch.findIndex((entry) => entry.id === compaction["firstKeptEntryId"]);
  const kept = firstKept === -1 || firstKept >= at ? [] : branch.slice(firstKept, at).filter((entry) => !isSystemMessage(entry));
  return [compaction, ...kept, ...branch.slice(at + 1)];
}

function isSystemMessage(entry: SessionEntry): boolean {
  return entry.type === "message" && (entry["message"] as { role?: unknown } | undefined)?.role === "system";
}
