/** Requests for tools of extensions. */
import type { Extension, ToolDefinition } from "../extension/extension.ts";
import type { Generation } from "../extension/generation.ts";
import { actorOf } from "../extension/port.ts";
import { CallError } from "../protocol/errors.ts";
import { type DaemonRecord, isObject, type JsonObject, stringField } from "../protocol/records.ts";
import type { Host } from "./host.ts";
import type { Scope } from "./scope.ts";

interface Found {
  extension: Extension;
  tool: ToolDefinition;
}

/** The first registration of a name wins, unless the request names the extension. */
function find(generation: Generation, request: DaemonRecord): Found {
  const name = stringField(request, "tool");
  for (const extension of generation.extensions.values()) {
    if (request["ext"] !== undefined && request["ext"] !== extension.id) continue;
    const tool = extension.tools.get(name);
    if (tool !== undefined) return { extension, tool };
  }
  throw new CallError(`Tool "${name}" is not registered`, "invalid");
}

export function scopeOf(extension: Extension | undefined, request: DaemonRecord): Scope {
  const scope: Scope = {};
  if (extension !== undefined) scope.ext = extension.id;
  if (request.id !== undefined) scope.within = request.id;
  return scope;
}

export async function serveExecute(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<unknown> {
  const generation = host.living(request);
  const { extension, tool } = find(generation, request);
  const toolCallId = stringField(request, "toolCallId");
  let settled = false;
  const onUpdate = (partial: unknown) => {
    if (!settled) host.out.send({ type: "tool.update", call: request.id, partial });
  };
  const ctx = host.contexts.tool(actorOf(extension), toolCallId, signal);
  try {
    return await host.scopes.run(scopeOf(extension, request), () => tool.execute(toolCallId, request["params"], signal, onUpdate, ctx));
  } finally {
    settled = true;
  }
}

export function servePrepare(host: Host, request: DaemonRecord): unknown {
  const { extension, tool } = find(host.living(request), request);
  return host.scopes.run(scopeOf(extension, request), () => tool.prepareArguments?.(request["args"]) ?? request["args"]);
}

export function serveReaches(host: Host, request: DaemonRecord): unknown {
  const { extension, tool } = find(host.living(request), request);
  return host.scopes.run(scopeOf(extension, request), () => tool.reachesTools?.(request["input"]));
}

export function serveLoadout(host: Host, request: DaemonRecord): unknown {
  const { extension, tool } = find(host.living(request), request);
  const loadout = withLookups(isObject(request["loadout"]) ? request["loadout"] : {});
  return host.scopes.run(scopeOf(extension, request), () => tool.prepareLoadout?.(loadout));
}

/** The loadout as pi hands it over: lists of tools, and lookups by name. */
function withLookups(data: JsonObject): JsonObject {
  const registered = Array.isArray(data["registered"]) ? (data["registered"] as JsonObject[]) : [];
  const byName = new Map(registered.map((tool) => [tool["name"], tool]));
  return {
    declared: data["declared"] ?? [],
    callable: data["callable"] ?? [],
    registered,
    getExposure: (name: string) => byName.get(name)?.["exposure"] ?? "direct",
    getNamespace: (name: string) => byName.get(name)?.["namespace"],
    getPromptGuidelines: (name: string) => byName.get(name)?.["promptGuidelines"] ?? [],
  };
}
