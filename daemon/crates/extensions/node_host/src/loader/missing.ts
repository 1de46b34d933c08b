/** Notices which exports extensions use that exist by name only. */
import type { ModuleTable } from "./jiti.ts";

/** Names that throw when used, by specifier. */
export type UnavailableNames = Record<string, readonly string[]>;

/** The modules, with `onUse` called when an unavailable export is read. */
export function watchModules(modules: ModuleTable, unavailable: UnavailableNames, onUse: (text: string) => void): ModuleTable {
  const watched: ModuleTable = {};
  for (const [specifier, exports] of Object.entries(modules)) {
    const names = new Set(unavailable[specifier] ?? []);
    watched[specifier] = names.size === 0 ? exports : watch(exports, names, (name) => onUse(`${name} of ${shortName(specifier)} used but not available`));
  }
  return watched;
}

function watch(exports: Record<string, unknown>, names: ReadonlySet<string>, onUse: (name: string) => void): Record<string, unknown> {
  // The target is a plain copy: a proxy of a frozen namespace could not be read through freely.
  return new Proxy({ ...exports }, {
    get(target, name, receiver) {
      if (typeof name === "string" && names.has(name)) onUse(name);
      return Reflect.get(target, name, receiver);
    },
  });
}

function shortName(specifier: string): string {
  return specifier.replace(/^@[^/]+\//, "");
}
