/** Requests of the daemon by type. */
import { CallError } from "../protocol/errors.ts";
import { type DaemonRecord, listField, objectField } from "../protocol/records.ts";
import type { Host } from "./host.ts";
import { serveBind, serveHello, serveLoad, serveShutdown, serveUnload } from "./serve_life.ts";
import { serveCommand, serveCompletion, serveShortcut } from "./serve_commands.ts";
import { serveOps } from "./serve_ops.ts";
import { serveOauth, serveProviderCall, serveRefresh, serveRoute, serveStream } from "./serve_providers.ts";
import { serveExecute, serveLoadout, servePrepare, serveReaches } from "./serve_tools.ts";

type Serve = (host: Host, request: DaemonRecord, signal: AbortSignal) => unknown;

const SERVED: Record<string, Serve> = {
  hello: serveHello,
  load: serveLoad,
  bind: serveBind,
  unload: serveUnload,
  ping: () => null,
  shutdown: serveShutdown,
  hook: serveHook,
  "tool.execute": serveExecute,
  "tool.prepare": servePrepare,
  "tool.reaches": serveReaches,
  "tool.loadout": serveLoadout,
  "command.run": serveCommand,
  "command.complete": serveCompletion,
  "shortcut.run": serveShortcut,
  "ops.call": serveOps,
  "provider.stream": serveStream,
  "provider.refresh": serveRefresh,
  "provider.oauth": serveOauth,
  "provider.auth": serveProviderCall,
  "provider.classify": serveProviderCall,
  "provider.images": serveProviderCall,
  "provider.filter": serveProviderCall,
  "vmodel.route": serveRoute,
};

function serveHook(host: Host, request: DaemonRecord, signal: AbortSignal): unknown {
  const generation = host.living(request);
  const { type } = objectField(request, "event");
  if (!host.hears(String(type))) return { returns: listField(request, "handlers").map((h) => ({ h })) };
  return host.hooks.serve(generation, request, signal);
}

export async function serve(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<unknown> {
  const run = Object.hasOwn(SERVED, request.type) ? SERVED[request.type] : undefined;
  if (run === undefined) throw new CallError(`This host does not know the request "${request.type}"`, "unsupported");
  return run(host, request, signal);
}
