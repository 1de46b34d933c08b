/** Packages that are set up when they are first needed: most extensions need none of them. */

// esbuild bundles `require` of a package and runs the package's code at the first call.
declare const require: (name: string) => unknown;

/** Makes a value at its first use. */
export function lazy<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

export const loadMarked = lazy(() => require("marked") as typeof import("marked"));
export const loadYaml = lazy(() => require("yaml") as typeof import("yaml"));

type Class = new (...args: never[]) => object;

/** A class that is loaded when it is constructed, extended and constructed, or looked into. */
export function lazyClass<T extends Class>(load: () => T): T {
  // A plain function may have another `prototype` told for it than its own, which a class may not.
  const target = function (): void {} as unknown as T;
  return new Proxy(target, {
    construct: (_target, args, newTarget) => Reflect.construct(load(), args, newTarget) as object,
    get: (_target, key) => Reflect.get(load(), key) as unknown,
    has: (_target, key) => Reflect.has(load(), key),
  });
}
