/** The queue of changes to one file. It is the daemon's, so that built-in tools wait in it too. */
import type { HostServices } from "../../../services.ts";

type Queue = <T>(filePath: string, change: () => Promise<T>) => Promise<T>;

/** Runs changes of a file one after the other; those of different files run at once. */
export function mutationQueue(services: HostServices): Queue {
  return async (filePath, change) => {
    const lock = (await services.call("lock.acquire", { path: filePath })) as { token: unknown };
    try {
      return await change();
    } finally {
      await services.call("lock.release", { token: lock.token });
    }
  };
}
