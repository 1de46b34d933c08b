/** Our modules, made for a fake daemon. */
import { createModules } from "../../src/modules/index.ts";
import type { Exports, Modules } from "./reference.ts";
import { FakeServices } from "./services.ts";

export function makeModules(services: FakeServices = new FakeServices()): Modules {
  return createModules(services);
}

export function ourModule(name: string, services?: FakeServices): Exports {
  const exports = makeModules(services)[`@earendil-works/${name}`];
  if (!exports) throw new Error(`There is no module ${name}`);
  return exports;
}

/** A function of a module, with a type for tests. */
export function pickFunction<T>(exports: Exports, name: string): T {
  const value = exports[name];
  if (typeof value !== "function") throw new Error(`${name} is not a function`);
  return value as T;
}
