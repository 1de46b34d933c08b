/** The part of `pi` that acts on the session. */
import { cloneJson } from "../host/json.ts";
import { CallError } from "../protocol/errors.ts";
import { isObject, type JsonObject } from "../protocol/records.ts";
import { type ModelInfo, modelRef } from "../models/types.ts";
import { type ExecOptions, type ExecResult, execProgram } from "./exec.ts";
import type { Extension, ToolDefinition } from "./extension.ts";
import { actorOf, type HostPort } from "./port.ts";
import { NOT_INITIALIZED, NOT_INITIALIZED_MODEL, STALE } from "./texts.ts";

export function createActions(host: HostPort, extension: Extension) {
  const { generation } = extension;
  const actor = actorOf(extension);

  const assertActive = () => extension.assertActive();
  const assertBound = () => {
    assertActive();
    if (!generation.bound) throw new Error(NOT_INITIALIZED);
  };
  const callSync = (method: string, params: object) => {
    assertBound();
    return host.callSync(actor, method, params);
  };
  /** Failures of sending are reported, not thrown. */
  const send = (event: string, method: string, params: object) => {
    try {
      callSync(method, params);
    } catch (error) {
      if (!generation.bound || generation.isStale) throw error;
      if (error instanceof CallError && error.code === "stale") throw new CallError(STALE, "stale");
      host.reportError({ ...actor, ext: "<runtime>" }, event, error);
    }
  };

  return {
    sendMessage(message: JsonObject, options: JsonObject = {}): void {
      send("send_message", "session.sendMessage", { message: customMessage(message), options });
    },

    sendUserMessage(content: unknown, options: JsonObject = {}): void {
      send("send_user_message", "session.sendUserMessage", { content, options });
    },

    appendEntry(customType: string, data?: unknown): void {
      callSync("session.appendEntry", { customType, data });
    },

    setSessionName(name: string): void {
      callSync("session.setName", { name });
    },

    getSessionName(): string | undefined {
      assertBound();
      return host.mirror.core.sessionName ?? undefined;
    },

    setLabel(entryId: string, label: string | undefined): void {
      callSync("session.setLabel", { entryId, label: label ?? null });
    },

    exec(command: string, args: string[], options?: ExecOptions): Promise<ExecResult> {
      assertActive();
      return execProgram(command, args, options?.cwd ?? host.mirror.core.cwd ?? host.hello.cwd, options);
    },

    getActiveTools(): string[] {
      assertBound();
      return [...(host.mirror.core.activeTools ?? [])];
    },

    setActiveTools(names: string[]): void {
      callSync("tools.setActive", { names });
    },

    getAllTools(): JsonObject[] {
      assertBound();
      const tools = host.mirror.topic("tools");
      return Array.isArray(tools) ? tools.map((tool: JsonObject) => withReach(tool, findTool(extension, String(tool["name"])))) : [];
    },

    getSettings(): unknown {
      assertBound();
      return cloneJson(host.mirror.topic("settings"));
    },

    getCommands(): unknown[] {
      assertBound();
      const commands = host.mirror.topic("commands");
      return Array.isArray(commands) ? cloneJson(commands) : [];
    },

    async setModel(model: ModelInfo): Promise<boolean> {
      assertActive();
      if (!generation.bound) throw new Error(NOT_INITIALIZED_MODEL);
      return (await host.call(actor, "model.set", modelRef(model))) === true;
    },

    getThinkingLevel(): string {
      assertBound();
      return host.mirror.core.thinkingLevel ?? "off";
    },

    setThinkingLevel(level: string): void {
      callSync("thinking.set", { level });
    },
  };
}

/** The fields of a custom message that cross; missing content is empty. */
export function customMessage(message: JsonObject): JsonObject {
  const { customType, content, display, details } = message;
  return { customType, content: content ?? [], display, details };
}

function findTool(extension: Extension, name: string): ToolDefinition | undefined {
  for (const other of extension.generation.extensions.values()) {
    const tool = other.tools.get(name);
    if (tool !== undefined) return tool;
  }
  return undefined;
}

/** Functions do not cross, so those of tools of this host are put back. */
function withReach(tool: JsonObject, definition: ToolDefinition | undefined): JsonObject {
  if (!isObject(tool) || typeof definition?.reachesTools !== "function") return tool;
  return { ...tool, reachesTools: (input: unknown) => definition.reachesTools?.(input) };
}
