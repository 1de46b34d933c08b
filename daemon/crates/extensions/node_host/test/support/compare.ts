/** Calls of the same function on both sides, and what differs. */
import assert from "node:assert/strict";
import type { Exports } from "./reference.ts";

type Callable = (...args: unknown[]) => unknown;

/** Numbers are compared to this many significant digits: sums may be made in another order. */
const DIGITS = 9;

function show(value: unknown): string {
  const text = JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "number" && !Number.isInteger(part) ? Number(part.toPrecision(DIGITS)) : part,
  ) as string | undefined;
  return text ?? "undefined";
}

function outcome(target: unknown, args: unknown[]): string {
  try {
    const own = args.some((arg) => typeof arg === "object") ? structuredClone(args) : args;
    return show((target as Callable)(...own));
  } catch (error) {
    return `throws ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Compares functions of two modules by their results, as JSON. */
export class Comparison {
  readonly #reference: Exports;
  readonly #ours: Exports;
  count = 0;

  constructor(reference: Exports, ours: Exports) {
    this.#reference = reference;
    this.#ours = ours;
  }

  same(name: string, ...args: unknown[]): void {
    this.count += 1;
    const expected = outcome(this.#reference[name], args);
    const actual = outcome(this.#ours[name], args);
    // The message is costly, and there are many comparisons.
    if (actual !== expected) assert.equal(actual, expected, `${name}(${args.map(show).join(", ")})`);
  }
}
