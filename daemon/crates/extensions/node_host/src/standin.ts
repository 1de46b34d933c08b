/** Small modules for tests until the real ones are merged. */
import * as typebox from "typebox";
import type { ModuleTable } from "./loader/jiti.ts";
import type { UnavailableNames } from "./loader/missing.ts";
import type { HostServices } from "./services.ts";

export function createModules(services: HostServices): ModuleTable {
  const StringEnum = (values: readonly string[], options: object = {}) => ({ type: "string", enum: values, ...options });
  const anything = (known: Record<string, unknown>) =>
    new Proxy(known, { get: (target, name) => (name in target ? target[name as string] : typeof name === "string" && name !== "then" ? class {} : undefined), has: () => true });
  const agent = anything({ getAgentDir: () => services.hello.agentDir, CONFIG_DIR_NAME: ".pi", VERSION: "1.5.2", defineTool: (tool: unknown) => tool });
  const ai = anything({ Type: typebox.Type, StringEnum });
  const table: ModuleTable = { typebox: typebox as unknown as Record<string, unknown>, "@sinclair/typebox": typebox as unknown as Record<string, unknown> };
  for (const scope of ["@earendil-works", "@mariozechner"]) {
    table[`${scope}/pi-coding-agent`] = agent;
    table[`${scope}/pi-ai`] = ai;
    table[`${scope}/pi-ai/compat`] = ai;
    table[`${scope}/pi-agent-core`] = anything({});
    table[`${scope}/pi-tui`] = anything({});
  }
  return table;
}

export function createTheme(_ansi: boolean): unknown {
  return { fg: (_color: string, text: string) => text, bold: (text: string) => text };
}

export function unavailable(): UnavailableNames {
  return {};
}
