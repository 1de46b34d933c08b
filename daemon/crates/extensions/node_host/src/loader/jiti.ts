/** Imports TypeScript and JavaScript of extensions, with the host's modules in place of pi's. */
import { createRequire } from "node:module";
import { realpathSync } from "node:fs";
import { createJiti, type JitiOptions } from "jiti";

/** Modules by specifier. */
export type ModuleTable = Record<string, Record<string, unknown>>;

type Transform = NonNullable<JitiOptions["transform"]>;

let babel: Transform | undefined;

/** The transformer is large, and is not needed while the disk cache has everything. */
const transform: Transform = (options) => {
  babel ??= createRequire(import.meta.url)("./babel.cjs") as Transform;
  return babel(options);
};

/** The default export of `entry`, in a fresh instance of it and of its relative imports. */
export async function importEntry(entry: string, modules: ModuleTable, cacheDir: string): Promise<unknown> {
  const jiti = createJiti(import.meta.url, {
    moduleCache: false,
    tryNative: false,
    fsCache: cacheDir,
    virtualModules: modules,
    transform,
  });
  return jiti.import(realpathSync(entry), { default: true });
}
