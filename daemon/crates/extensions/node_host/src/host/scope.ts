/**
 * Which extension's code runs, and for which request of the daemon.
 *
 * Each host has scopes of its own: code that runs for a request of one connection is in no request of another.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export interface Scope {
  ext?: string;
  /** Id of the request that is being served. */
  within?: number;
}

export class Scopes {
  private readonly storage = new AsyncLocalStorage<Scope>();

  run<T>(scope: Scope, run: () => T): T {
    return this.storage.run(scope, run);
  }

  current(): Scope | undefined {
    return this.storage.getStore();
  }
}
