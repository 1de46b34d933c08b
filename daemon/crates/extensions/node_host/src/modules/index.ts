/** The modules that extensions import in place of pi's. */
import type { HostServices } from "../services.ts";
import { createAgentCoreModule } from "./agent_core/index.ts";
import { createAiModules } from "./ai/index.ts";
import { PI_ATTRIBUTION } from "./ai/identity.ts";
import { createCodingAgentModule } from "./coding_agent/index.ts";
import { createTuiModule } from "./tui/index.ts";
import { typeboxModules } from "./typebox.ts";
import { unavailableExports } from "./unavailable.ts";

export { convertToLlm } from "./coding_agent/messages.ts";
export { createTheme } from "./theme.ts";

/** The scopes under which pi's packages are known: the present one and the one before. */
const SCOPES = ["@earendil-works", "@mariozechner"] as const;

/** Every module by every specifier that names it. Both scopes share their modules. */
export function createModules(services: HostServices): Record<string, Record<string, unknown>> {
  const modules = typeboxModules();
  const ai = createAiModules(services);
  const packages: Record<string, Record<string, unknown>> = {
    "pi-agent-core": createAgentCoreModule(PI_ATTRIBUTION, ai[""]?.["streamSimple"] as never),
    "pi-coding-agent": createCodingAgentModule(services),
    "pi-tui": createTuiModule(),
    ...Object.fromEntries(Object.entries(ai).map(([entry, exports]) => [`pi-ai${entry}`, exports])),
  };
  for (const scope of SCOPES) {
    for (const [name, exports] of Object.entries(packages)) modules[`${scope}/${name}`] = exports;
  }
  return modules;
}

/** Names of the exports that throw when used, by every specifier that has them. */
export function unavailable(): Record<string, string[]> {
  const names: Record<string, string[]> = {};
  for (const [specifier, list] of Object.entries(unavailableExports())) {
    for (const scope of SCOPES) names[specifier.replace(SCOPES[0], scope)] = list;
  }
  for (const scope of SCOPES) {
    const main = names[`${scope}/pi-ai`] ?? [];
    names[`${scope}/pi-ai/compat`] = main;
    names[`${scope}/pi-ai/models`] = main.filter((name) =>
      ["createModels", "createProvider"].includes(name),
    );
  }
  return names;
}
