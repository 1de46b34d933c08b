/** `ctx.sessionManager`: the session, read only. Every method is synchronous and current. */
import type { Mirror } from "../host/mirror.ts";
import type { SessionEntry, SessionHeader, TreeNode } from "./entries.ts";

/** What the daemon does and answers at once. */
export interface SessionReads {
  projection(): unknown;
  /** Has the file of the session made that otherwise comes with its first message. */
  writeFile(): void;
}

export interface SessionView {
  getCwd(): string;
  getSessionDir(): string;
  getSessionId(): string;
  getSessionFile(): string | undefined;
  getSessionName(): string | undefined;
  getHeader(): SessionHeader | null;
  getEntries(): SessionEntry[];
  getEntry(id: string): SessionEntry | undefined;
  getBranch(fromId?: string): SessionEntry[];
  getTree(): TreeNode[];
  getLeafId(): string | null;
  getLeafEntry(): SessionEntry | undefined;
  getLabel(id: string): string | undefined;
  buildContextEntries(): SessionEntry[];
  buildSessionProjection(): unknown;
}

export function createSessionView(mirror: Mirror, reads: SessionReads): SessionView {
  const store = () => mirror.entryStore();
  const view: SessionView = {
    getCwd: () => mirror.core.cwd ?? process.cwd(),
    getSessionDir: () => mirror.core.sessionDir ?? "",
    getSessionId: () => mirror.core.sessionId ?? "",
    getSessionFile: () => mirror.core.sessionFile ?? undefined,
    getSessionName: () => mirror.core.sessionName ?? undefined,
    getHeader: () => store().header,
    getEntries: () => [...store().entries],
    getEntry: (id) => store().get(id),
    getBranch: (fromId) => store().branch(fromId),
    getTree: () => store().tree(),
    getLeafId: () => store().leafId,
    getLeafEntry: () => {
      const { leafId } = store();
      return leafId === null ? undefined : store().get(leafId);
    },
    getLabel: (id) => store().label(id),
    buildContextEntries: () => store().contextEntries(),
    buildSessionProjection: () => reads.projection(),
  };
  // Not documented in pi, and used by published extensions that want their entries in a file.
  return Object.defineProperty(view, "_rewriteFile", { value: () => reads.writeFile() });
}
