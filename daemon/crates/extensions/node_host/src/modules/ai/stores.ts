/** Stores that keep what they hold in memory. */

interface Credential {
  type: string;
  [key: string]: unknown;
}

/** Credentials by provider. Changes of one provider's credential come one after the other. */
export class InMemoryCredentialStore {
  #credentials = new Map<string, Credential>();
  #chains = new Map<string, Promise<unknown>>();

  async read(providerId: string): Promise<Credential | undefined> {
    return this.#credentials.get(providerId);
  }

  async list(): Promise<{ providerId: string; type: string }[]> {
    return [...this.#credentials].map(([providerId, { type }]) => ({ providerId, type }));
  }

  modify(
    providerId: string,
    change: (current: Credential | undefined) => Promise<Credential | undefined>,
  ): Promise<Credential | undefined> {
    return this.#enqueue(providerId, async () => {
      const next = await change(this.#credentials.get(providerId));
      if (next !== undefined) this.#credentials.set(providerId, next);
      return this.#credentials.get(providerId);
    });
  }

  delete(providerId: string): Promise<void> {
    return this.#enqueue(providerId, async () => {
      this.#credentials.delete(providerId);
    });
  }

  #enqueue<T>(providerId: string, task: () => Promise<T>): Promise<T> {
    const result = (this.#chains.get(providerId) ?? Promise.resolve()).then(task);
    // A failed change does not keep the next one from its turn.
    this.#chains.set(providerId, result.catch(() => undefined));
    return result;
  }
}

/** Catalogues by provider. */
export class InMemoryModelsStore {
  #entries = new Map<string, unknown>();

  async read(providerId: string): Promise<unknown> {
    return structuredClone(this.#entries.get(providerId));
  }

  async write(providerId: string, entry: unknown): Promise<void> {
    this.#entries.set(providerId, structuredClone(entry));
  }

  async delete(providerId: string): Promise<void> {
    this.#entries.delete(providerId);
  }
}

type SessionCleanup = (sessionId?: string) => void;
const cleanups = new Set<SessionCleanup>();

/** Registers what is to be called when a session's resources are given up; returns how to take it back. */
export function registerSessionResourceCleanup(cleanup: SessionCleanup): () => void {
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
  };
}

export function cleanupSessionResources(sessionId?: string): void {
  for (const cleanup of [...cleanups]) cleanup(sessionId);
}
