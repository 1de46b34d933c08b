/**
 * The reference: pi's own modules, for comparison.
 *
 * `AGENTD_PI_REFERENCE` names the folder of an installed package `@earendil-works/pi-coding-agent` 1.5.2.
 * Without it the comparisons are skipped; nothing of it is in this repository.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export type Exports = Record<string, unknown>;
export type Modules = Record<string, Exports>;

const VARIABLE = "AGENTD_PI_REFERENCE";

async function load(): Promise<Modules | undefined> {
  const folder = process.env[VARIABLE];
  if (!folder) return undefined;
  const chunks = join(folder, "dist", "bundle", "chunks");
  const file = readdirSync(chunks).find((name) => /^virtual-modules-.*\.js$/.test(name));
  if (file === undefined) throw new Error(`${VARIABLE} does not name pi's package: no virtual modules in ${chunks}`);
  const loaded = (await import(pathToFileURL(join(chunks, file)).href)) as { VIRTUAL_MODULES: Modules };
  return loaded.VIRTUAL_MODULES;
}

/** The reference's modules by specifier, or undefined when it is not at hand. */
export const reference = await load();

/** Option of a test that needs the reference. */
export const needsReference = reference ? {} : { skip: `set ${VARIABLE} to the folder of pi-coding-agent 1.5.2 to compare` };

export function referenceModule(name: string): Exports {
  const exports = reference?.[`@earendil-works/${name}`];
  if (!exports) throw new Error(`The reference has no module ${name}`);
  return exports;
}
