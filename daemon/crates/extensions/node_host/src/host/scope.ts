/** Which extension's code runs, and for which request of the daemon. */
import { AsyncLocalStorage } from "node:async_hooks";

export interface Scope {
  ext?: string;
  /** Id of the request that is being served. */
  within?: number;
}

const storage = new AsyncLocalStorage<Scope>();

export function runInScope<T>(scope: Scope, run: () => T): T {
  return storage.run(scope, run);
}

export function currentScope(): Scope | undefined {
  return storage.getStore();
}
