/** `SessionManager` as extensions know it: the manager with its ways to make one. */
import { existsSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { SessionEntry } from "../../../session/entries.ts";
import { directoryNameOf, type FileEntry, loadEntriesFromFile, readHeader } from "./format.ts";
import { findMostRecentSession, listSessions, sessionFiles, type SessionInfo } from "./listing.ts";
import { type NewSessionOptions, type Place, SessionFileManager } from "./manager.ts";

type Progress = (loaded: number, total: number) => void;

/** Makes the class for an agent folder, which is asked for when it is needed. */
export function sessionManagerFor(agentDir: () => string): typeof SessionFileManager & { create(cwd: string): SessionFileManager } {
  const root = (): string => join(agentDir(), "sessions");
  const defaultDir = (cwd: string): string => join(root(), directoryNameOf(cwd));

  const placeOf = (cwd: string, sessionDir: string | undefined, persist = true): Place => {
    const own = defaultDir(cwd);
    const folder = sessionDir === undefined ? own : resolve(sessionDir);
    return { cwd, sessionDir: persist ? folder : "", isDefaultDir: folder === own, persist };
  };

  /** A folder that several working directories share is filtered by the one that is asked for. */
  const filterOf = (place: Place): string | undefined => (place.isDefaultDir ? undefined : place.cwd);

  return class SessionManager extends SessionFileManager {
    static create(cwd: string, sessionDir?: string, options?: NewSessionOptions): SessionManager {
      const manager = new SessionManager(placeOf(resolve(cwd), sessionDir));
      manager.newSession(options);
      return manager;
    }

    static open(path: string, sessionDir?: string, cwdOverride?: string): SessionManager {
      const file = resolve(path);
      const header = existsSync(file) ? readHeader(file) : undefined;
      const cwd = cwdOverride ?? (header?.cwd || process.cwd());
      const manager = new SessionManager(placeOf(cwd, sessionDir ?? dirname(file)));
      manager.setSessionFile(file);
      return manager;
    }

    static continueRecent(cwd: string, sessionDir?: string): SessionManager {
      const place = placeOf(resolve(cwd), sessionDir);
      const recent = findMostRecentSession(place.sessionDir, filterOf(place));
      const manager = new SessionManager(place);
      if (recent === undefined) manager.newSession();
      else manager.setSessionFile(recent);
      return manager;
    }

    static inMemory(cwd: string = process.cwd(), options?: NewSessionOptions, entries?: FileEntry[]): SessionManager {
      const manager = new SessionManager(placeOf(cwd, undefined, false));
      if (entries) manager.takeRecords(entries);
      else manager.newSession(options);
      return manager;
    }

    static forkFrom(
      sourcePath: string,
      targetCwd: string,
      sessionDir?: string,
      options: NewSessionOptions = {},
    ): SessionManager {
      const source = resolve(sourcePath);
      const entries = loadEntriesFromFile(source).filter((entry): entry is SessionEntry => entry.type !== "session");
      if (entries.length === 0) throw new Error(`Cannot fork: the session has no entries: ${source}`);
      const manager = new SessionManager(placeOf(resolve(targetCwd), sessionDir));
      manager.newSession({ ...options, parentSession: source });
      manager.copyEntries(entries);
      return manager;
    }

    static findById(cwd: string, id: string, sessionDir?: string): string | undefined {
      const place = placeOf(resolve(cwd), sessionDir);
      const filter = filterOf(place);
      return sessionFiles(place.sessionDir).find((path) => {
        const header = readHeader(path);
        return header?.id === id && (filter === undefined || header.cwd === filter);
      });
    }

    static async list(
      cwd: string,
      sessionDir?: string,
      onProgress?: Progress,
      signal?: AbortSignal,
    ): Promise<SessionInfo[]> {
      const place = placeOf(resolve(cwd), sessionDir);
      const sessions = await listSessions(sessionFiles(place.sessionDir), onProgress, signal);
      const filter = filterOf(place);
      return filter === undefined ? sessions : sessions.filter((session) => session.cwd === filter);
    }

    static listAll(
      first?: string | Progress,
      second?: Progress | AbortSignal,
      third?: AbortSignal,
    ): Promise<SessionInfo[]> {
      const folder = typeof first === "string" ? first : undefined;
      const onProgress = typeof first === "function" ? first : typeof second === "function" ? second : undefined;
      const signal = third ?? (second instanceof AbortSignal ? second : undefined);
      return listSessions(folder === undefined ? allFiles(root()) : sessionFiles(folder), onProgress, signal);
    }
  };
}

function allFiles(root: string): string[] {
  if (!existsSync(root)) return [];
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => sessionFiles(join(root, entry.name)));
}
