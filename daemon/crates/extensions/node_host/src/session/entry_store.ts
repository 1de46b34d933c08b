/** The entries of the session, and what is derived from them. */
import { branchOf, contextEntriesOf, type SessionEntry, type SessionHeader, type TreeNode } from "./entries.ts";

/** Value of the topic `entries`. */
export interface EntriesValue {
  header: SessionHeader | null;
  entries: SessionEntry[];
  leafId: string | null;
}

interface Label {
  text: string;
  timestamp: string;
}

export class EntryStore {
  readonly header: SessionHeader | null;
  readonly entries: SessionEntry[] = [];
  leafId: string | null;
  private readonly byId = new Map<string, SessionEntry>();
  private readonly labels = new Map<string, Label>();

  constructor(value: EntriesValue) {
    this.header = value.header ?? null;
    this.leafId = value.leafId ?? null;
    for (const entry of value.entries ?? []) this.add(entry);
  }

  /** Takes a patch: appended entries, and the leaf after them. */
  append(patch: Partial<EntriesValue>): void {
    for (const entry of patch.entries ?? []) this.add(entry);
    if (patch.leafId !== undefined) this.leafId = patch.leafId;
  }

  get(id: string): SessionEntry | undefined {
    return this.byId.get(id);
  }

  /** Text of the last label of an entry, in the order of the file. */
  label(id: string): string | undefined {
    return this.labels.get(id)?.text;
  }

  branch(fromId?: string): SessionEntry[] {
    return branchOf(this.byId, fromId ?? this.leafId);
  }

  contextEntries(): SessionEntry[] {
    return contextEntriesOf(this.branch());
  }

  /** Roots are entries without a parent, with themselves as parent, or with an unknown one. */
  tree(): TreeNode[] {
    const nodes = new Map<string, TreeNode>();
    for (const entry of this.entries) nodes.set(entry.id, this.node(entry));
    const roots: TreeNode[] = [];
    for (const node of nodes.values()) {
      const { parentId, id } = node.entry;
      const parent = parentId === null || parentId === id ? undefined : nodes.get(parentId);
      (parent?.children ?? roots).push(node);
    }
    for (const node of nodes.values()) sortByTime(node.children);
    return roots;
  }

  private node(entry: SessionEntry): TreeNode {
    const node: TreeNode = { entry, children: [] };
    const label = this.labels.get(entry.id);
    if (label !== undefined) {
      node.label = label.text;
      node.labelTimestamp = label.timestamp;
    }
    return node;
  }

  private add(entry: SessionEntry): void {
    if (this.byId.has(entry.id)) return;
    this.entries.push(entry);
    this.byId.set(entry.id, entry);
    if (entry.type === "label") this.addLabel(entry);
  }

  private addLabel(entry: SessionEntry): void {
    const target = String(entry["targetId"]);
    const text = entry["label"];
    if (typeof text === "string" && text !== "") this.labels.set(target, { text, timestamp: entry.timestamp });
    else this.labels.delete(target);
  }
}

function sortByTime(nodes: TreeNode[]): void {
  if (nodes.length > 1) nodes.sort((a, b) => Date.parse(a.entry.timestamp) - Date.parse(b.entry.timestamp));
}
