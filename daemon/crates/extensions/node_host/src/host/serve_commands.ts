/** Requests for commands and shortcuts of extensions. */
import type { Extension } from "../extension/extension.ts";
import type { Generation } from "../extension/generation.ts";
import { actorOf } from "../extension/port.ts";
import { CallError } from "../protocol/errors.ts";
import { type DaemonRecord, stringField } from "../protocol/records.ts";
import type { Host } from "./host.ts";
import { scopeOf } from "./serve_tools.ts";

function find<T>(generation: Generation, request: DaemonRecord, kind: string, key: string, of: (extension: Extension) => Map<string, T>) {
  for (const extension of generation.extensions.values()) {
    if (request["ext"] !== undefined && request["ext"] !== extension.id) continue;
    const found = of(extension).get(key);
    if (found !== undefined) return { extension, found };
  }
  throw new CallError(`${kind} "${key}" is not registered`, "invalid");
}

export async function serveCommand(host: Host, request: DaemonRecord): Promise<null> {
  const { extension, found } = find(host.living(request), request, "Command", stringField(request, "name"), (ext) => ext.commands);
  const ctx = host.contexts.command(actorOf(extension));
  await host.scopes.run(scopeOf(extension, request), () => found.handler(String(request["args"] ?? ""), ctx));
  return null;
}

export async function serveCompletion(host: Host, request: DaemonRecord): Promise<unknown> {
  const { extension, found } = find(host.living(request), request, "Command", stringField(request, "name"), (ext) => ext.commands);
  const prefix = String(request["prefix"] ?? "");
  return (await host.scopes.run(scopeOf(extension, request), () => found.getArgumentCompletions?.(prefix))) ?? null;
}

export async function serveShortcut(host: Host, request: DaemonRecord): Promise<null> {
  const { extension, found } = find(host.living(request), request, "Shortcut", stringField(request, "key"), (ext) => ext.shortcuts);
  await host.scopes.run(scopeOf(extension, request), () => found.handler(host.contexts.event(actorOf(extension))));
  return null;
}
