/**
 * Exports that exist by name and do nothing else.
 *
 * Extensions import many names at once and use few of them, so that a name that is missing would keep the
 * whole extension from loading. Such an export throws when it is called, constructed, or extended and
 * constructed; the load report names those that an extension imports.
 */

/** What is thrown by an export that the host does not have. */
export class NotAvailableError extends Error {
  readonly code = "not_available";

  constructor(what: string) {
    super(`${what} is not available in agentd`);
    this.name = "NotAvailableError";
  }
}

/** Names of unavailable exports by package, filled as the modules are made. */
const registered = new Map<string, Set<string>>();

function register(specifier: string, name: string): void {
  const names = registered.get(specifier) ?? new Set();
  registered.set(specifier, names.add(name));
}

/** Makes a function that throws. It can be called, constructed and extended. */
export function unavailable(specifier: string, name: string): (...args: never[]) => never {
  register(specifier, name);
  const stub = function (): never {
    throw new NotAvailableError(name);
  };
  Object.defineProperty(stub, "name", { value: name });
  return new Proxy(stub, {
    get(target, key, receiver) {
      if (key in target || typeof key === "symbol") return Reflect.get(target, key, receiver) as unknown;
      // Static methods, `then` apart: a module must not look like a promise.
      if (key === "then") return undefined;
      return () => {
        throw new NotAvailableError(`${name}.${key}`);
      };
    },
  });
}

/** Makes several such exports at once. */
export function unavailableAll(specifier: string, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, unavailable(specifier, name)]));
}

/** Every unavailable export, by the package that has it, sorted by name. */
export function unavailableExports(): Record<string, string[]> {
  return Object.fromEntries([...registered].map(([specifier, names]) => [specifier, [...names].sort()]));
}
