/** The part of `pi` that registers: handlers, tools, commands, flags, shortcuts, renderers. */
import { isObject, type JsonObject } from "../protocol/records.ts";
import type { Command, Extension, Flag, Shortcut, ToolDefinition } from "./extension.ts";
import { actorOf, type HostPort } from "./port.ts";

/** Data fields of a tool definition that cross to the daemon. */
const TOOL_DATA = [
  "name",
  "label",
  "description",
  "parameters",
  "promptSnippet",
  "promptGuidelines",
  "executionMode",
  "outputSchema",
  "constrainedSampling",
  "annotations",
  "namespace",
  "exposure",
  "defaultActive",
] as const;

const TOOL_FUNCTIONS = ["prepareArguments", "prepareLoadout", "reachesTools", "renderCall", "renderResult"] as const;

type EventHandler = (event: unknown, ctx: unknown) => unknown;

export function createRegistrations(host: HostPort, extension: Extension) {
  const { generation } = extension;
  const actor = actorOf(extension);
  const register = (kind: string, fields: JsonObject) => host.note(actor, "register", { kind, ...fields });
  const unregister = (kind: string, fields: JsonObject) => host.note(actor, "unregister", { kind, ...fields });

  return {
    on(event: string, handler: EventHandler): () => void {
      extension.assertActive();
      const h = host.nextHandler();
      generation.handlers.set(h, { ext: extension, event, run: (payload, ctx) => handler(payload, ctx) });
      register("handler", { h, event });
      return () => {
        if (generation.handlers.delete(h)) unregister("handler", { h });
      };
    },

    registerTool(tool: ToolDefinition): void {
      extension.assertActive();
      if (!isObject(tool.parameters)) {
        throw new Error(`Tool "${tool.name}" registered by extension "${extension.path}" must define an object parameter schema.`);
      }
      extension.tools.set(tool.name, tool);
      const def: JsonObject = {};
      for (const field of TOOL_DATA) if (tool[field] !== undefined) def[field] = tool[field];
      register("tool", { def, has: TOOL_FUNCTIONS.filter((name) => typeof tool[name] === "function") });
    },

    registerCommand(name: string, command: Command): void {
      extension.assertActive();
      if (typeof name !== "string" || name.length === 0) {
        throw new Error(
          `Command registered by extension "${extension.path}" must have a non-empty string name. Use pi.registerCommand("name", { description, handler }).`,
        );
      }
      if (typeof command?.handler !== "function") {
        throw new Error(`Command "/${name}" registered by extension "${extension.path}" must define handler().`);
      }
      extension.commands.set(name, command);
      register("command", { name, description: command.description, completes: typeof command.getArgumentCompletions === "function" });
    },

    registerShortcut(key: string, shortcut: Shortcut): void {
      extension.assertActive();
      extension.shortcuts.set(key, shortcut);
      register("shortcut", { key, description: shortcut?.description });
    },

    registerFlag(name: string, flag: Flag): void {
      extension.assertActive();
      if (flag.default !== undefined && typeof flag.default !== flag.type) {
        throw new Error(`Invalid default for flag "${name}": expected ${flag.type}, got ${typeof flag.default}`);
      }
      extension.flags.set(name, flag);
      if (flag.default !== undefined && !generation.flagValues.has(name)) {
        if (!extension.loading) generation.flagValues.set(name, flag.default);
        else if (!extension.pendingFlags.has(name)) extension.pendingFlags.set(name, flag.default);
      }
      register("flag", { name, valueType: flag.type, default: flag.default, description: flag.description });
    },

    getFlag(name: string): boolean | string | undefined {
      extension.assertActive();
      if (!extension.flags.has(name)) return undefined;
      return generation.flagValues.has(name) ? generation.flagValues.get(name) : extension.pendingFlags.get(name);
    },

    registerMessageRenderer(customType: string, _renderer: unknown): void {
      extension.assertActive();
      register("renderer", { what: "message", customType });
    },

    registerEntryRenderer(customType: string, _renderer: unknown): void {
      extension.assertActive();
      register("renderer", { what: "entry", customType });
    },

    registerToolRenderer(_resolver: unknown): void {
      extension.assertActive();
      register("renderer", { what: "tool" });
    },

    registerMarkdownTransformer(_transformer: unknown, _options?: unknown): void {
      extension.assertActive();
      register("renderer", { what: "markdown" });
    },
  };
}
