/** Serves `ops.call`: functions that extensions handed over. */
import type { Actor } from "../extension/port.ts";
import { CallError } from "../protocol/errors.ts";
import { type DaemonRecord, isObject, numberField } from "../protocol/records.ts";
import type { EntriesValue } from "../session/entry_store.ts";
import { SetupSession } from "../session/setup.ts";
import type { Callback } from "./callbacks.ts";
import type { Host } from "./host.ts";
import type { Scope } from "./scope.ts";

export async function serveOps(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<unknown> {
  const cb = numberField(request, "cb");
  const callback = host.callbacks.get(cb);
  const args = Array.isArray(request["args"]) ? request["args"] : [];
  if (callback.once) host.callbacks.forget(cb);
  const value = await host.scopes.run(callbackScope(callback, request), () => runCallback(host, callback, request, args, signal));
  return host.callbacks.encode(value, callback);
}

export function callbackScope(callback: Callback, request: DaemonRecord): Scope {
  const scope: Scope = {};
  if (callback.ext !== undefined) scope.ext = callback.ext;
  if (request.id !== undefined) scope.within = request.id;
  return scope;
}

async function runCallback(host: Host, callback: Callback, request: DaemonRecord, args: unknown[], signal: AbortSignal): Promise<unknown> {
  const run = callback.run as (...args: unknown[]) => unknown;
  switch (callback.kind) {
    case "bashExec": {
      const [command, cwd, options] = args;
      return run(command, cwd, { ...(isObject(options) ? options : {}), signal, onData: dataSink(host, request) });
    }
    case "setup": {
      const session = new SetupSession((args[0] ?? { header: null, entries: [], leafId: null }) as EntriesValue);
      await run(session);
      return session.result();
    }
    case "withSession":
      await run(host.contexts.replaced(successor(host, callback)));
      return null;
    case "compact":
      return methodOf(callback, request)(...args);
    default:
      return methodOf(callback, request)(...withSignal(args, signal));
  }
}

/** The extension of the same name in the epoch that lives now. */
export function successor(host: Host, callback: Pick<Callback, "ext">): Actor {
  const { generation } = host;
  if (generation === undefined) throw new CallError("No session is loaded", "stale");
  const actor: Actor = { generation, ext: callback.ext };
  const extension = callback.ext === undefined ? undefined : generation.extensions.get(callback.ext);
  if (extension !== undefined) actor.extension = extension;
  return actor;
}

function methodOf(callback: Callback, request: DaemonRecord): (...args: unknown[]) => unknown {
  const method = request["method"];
  const run = typeof method === "string" ? callback.methods?.[method] : undefined;
  return (run ?? callback.run) as (...args: unknown[]) => unknown;
}

/** Output of a command goes to the daemon as it comes. */
function dataSink(host: Host, request: DaemonRecord): (data: Buffer | string) => void {
  return (data) => {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    host.out.send({ type: "ops.data", call: request.id, data: bytes.toString("base64") });
  };
}

/** `signal: true` in an argument stands for the signal that `cancel` aborts. */
export function withSignal(args: unknown[], signal: AbortSignal): unknown[] {
  return args.map((arg) => (isObject(arg) && arg["signal"] === true ? { ...arg, signal } : arg));
}
