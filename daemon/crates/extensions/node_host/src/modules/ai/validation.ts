/** Coercion of a tool call's arguments to its JSON Schema, and validation. Pure. */
import type { Tool, ToolCall } from "./types.ts";

type Schema = boolean | SchemaObject;
interface SchemaObject {
  [key: string]: unknown;
}

/** One thing that is wrong, and where. */
interface Problem {
  path: string[];
  message: string;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "null":
      return value === null;
    case "integer":
      return typeof value === "number" && Number.isInteger(value);
    case "number":
      return typeof value === "number" && Number.isFinite(value);
    default:
      return typeof value === type;
  }
}

/** A value of the type that stands for the given one, or undefined when there is none. */
function coerceTo(value: unknown, type: string): unknown {
  switch (type) {
    case "number":
    case "integer": {
      const number =
        value === null ? 0 : typeof value === "boolean" || typeof value === "string" ? Number(value) : value;
      if (typeof number !== "number" || !Number.isFinite(number)) return undefined;
      return type === "integer" ? Math.trunc(number) : number;
    }
    case "boolean":
      if (value === null || value === 0) return false;
      if (value === 1) return true;
      if (typeof value !== "string") return undefined;
      if (/^(true|1)$/i.test(value)) return true;
      return /^(false|0|)$/i.test(value) ? false : undefined;
    case "string":
      return value === null || typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
    case "null":
      return value === "" || value === 0 || value === false || value === "null" ? null : undefined;
    case "array":
      return [value];
    default:
      return undefined;
  }
}

function typesOf(schema: SchemaObject): string[] {
  const type = schema.type;
  if (Array.isArray(type)) return type as string[];
  return typeof type === "string" ? [type] : [];
}

function list(value: unknown): Schema[] {
  return Array.isArray(value) ? (value as Schema[]) : [];
}

class Validator {
  readonly #root: SchemaObject;

  constructor(root: SchemaObject) {
    this.#root = root;
  }

  /** Returns the value as the schema wants it; what cannot be coerced stays. */
  coerce(schema: Schema, value: unknown): unknown {
    if (typeof schema === "boolean") return value;
    const target = this.#resolve(schema);
    if (!target) return value;
    const alternatives = [...list(target.anyOf), ...list(target.oneOf)];
    if (alternatives.length > 0) return this.#coerceAlternatives(alternatives, value);
    let result = value;
    for (const part of list(target.allOf)) result = this.coerce(part, result);
    const types = typesOf(target);
    if (types.length > 0 && !types.some((type) => hasType(result, type))) {
      for (const type of types) {
        const coerced = coerceTo(result, type);
        if (coerced === undefined) continue;
        result = coerced;
        break;
      }
    } else if (types.length === 0) {
      result = coerceToListed(target, result);
    }
    if (Array.isArray(result)) return this.#coerceItems(target, result);
    return isObject(result) ? this.#coerceMembers(target, result) : result;
  }

  #coerceAlternatives(alternatives: Schema[], value: unknown): unknown {
    for (const alternative of alternatives) if (this.check(alternative, value, []).length === 0) return value;
    for (const alternative of alternatives) {
      const coerced = this.coerce(alternative, value);
      if (this.check(alternative, coerced, []).length === 0) return coerced;
    }
    return value;
  }

  #coerceItems(schema: SchemaObject, values: unknown[]): unknown[] {
    const prefix = Array.isArray(schema.items) ? list(schema.items) : list(schema.prefixItems);
    const rest = Array.isArray(schema.items) ? undefined : (schema.items as Schema | undefined);
    return values.map((value, index) => {
      const item = prefix[index] ?? rest;
      return item === undefined ? value : this.coerce(item, value);
    });
  }

  #coerceMembers(schema: SchemaObject, value: Record<string, unknown>): Record<string, unknown> {
    const properties = isObject(schema.properties) ? (schema.properties as Record<string, Schema>) : {};
    const required = new Set(Array.isArray(schema.required) ? (schema.required as string[]) : []);
    const coerced: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(value)) {
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (property === undefined) {
        const extra = schema.additionalProperties as Schema | undefined;
        coerced[name] = isObject(extra) ? this.coerce(extra, member) : member;
        continue;
      }
      // Models write null for an optional property that they leave out.
      if (member === null && !required.has(name) && this.check(property, null, []).length > 0) continue;
      coerced[name] = this.coerce(property, member);
    }
    return coerced;
  }

  /** Everything that is wrong with a value. */
  check(schema: Schema, value: unknown, path: string[]): Problem[] {
    const problem = (message: string): Problem[] => [{ path, message }];
    if (schema === true) return [];
    if (schema === false) return problem("no value is allowed here");
    const target = this.#resolve(schema);
    if (!target) return problem(`unresolved reference ${String(schema.$ref)}`);
    const types = typesOf(target);
    if (types.length > 0 && !types.some((type) => hasType(value, type))) {
      return problem(`expected ${types.join(" or ")}, got ${typeName(value)}`);
    }
    return [
      ...this.#checkListed(target, value, path),
      ...this.#checkCombined(target, value, path),
      ...checkNumber(target, value, path),
      ...checkString(target, value, path),
      ...this.#checkArray(target, value, path),
      ...this.#checkObject(target, value, path),
    ];
  }

  #checkListed(schema: SchemaObject, value: unknown, path: string[]): Problem[] {
    const same = (other: unknown): boolean => JSON.stringify(other) === JSON.stringify(value);
    if ("const" in schema && !same(schema.const)) {
      return [{ path, message: `expected ${JSON.stringify(schema.const)}` }];
    }
    if (Array.isArray(schema.enum) && !schema.enum.some(same)) {
      return [{ path, message: `expected one of ${JSON.stringify(schema.enum)}` }];
    }
    return [];
  }

  #checkCombined(schema: SchemaObject, value: unknown, path: string[]): Problem[] {
    const problems = list(schema.allOf).flatMap((part) => this.check(part, value, path));
    if (Array.isArray(schema.anyOf)) {
      const results = list(schema.anyOf).map((part) => this.check(part, value, path));
      if (!results.some((result) => result.length === 0)) problems.push(...(results[0] ?? []));
    }
    if (Array.isArray(schema.oneOf)) {
      const results = list(schema.oneOf).map((part) => this.check(part, value, path));
      const matching = results.filter((result) => result.length === 0).length;
      if (matching === 0) problems.push(...(results[0] ?? []));
      if (matching > 1) problems.push({ path, message: "matches more than one alternative" });
    }
    if (schema.not !== undefined && this.check(schema.not as Schema, value, path).length === 0) {
      problems.push({ path, message: "must not match the schema in not" });
    }
    return problems;
  }

  #checkArray(schema: SchemaObject, value: unknown, path: string[]): Problem[] {
    if (!Array.isArray(value)) return [];
    const problems: Problem[] = [];
    const { minItems, maxItems } = schema;
    if (typeof minItems === "number" && value.length < minItems) {
      problems.push({ path, message: `expected at least ${minItems} items` });
    }
    if (typeof maxItems === "number" && value.length > maxItems) {
      problems.push({ path, message: `expected at most ${maxItems} items` });
    }
    if (schema.uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length) {
      problems.push({ path, message: "expected unique items" });
    }
    const prefix = Array.isArray(schema.items) ? list(schema.items) : list(schema.prefixItems);
    const rest = Array.isArray(schema.items) ? undefined : (schema.items as Schema | undefined);
    value.forEach((item: unknown, index) => {
      const itemSchema = prefix[index] ?? rest;
      if (itemSchema !== undefined) problems.push(...this.check(itemSchema, item, [...path, String(index)]));
    });
    return problems;
  }

  #checkObject(schema: SchemaObject, value: unknown, path: string[]): Problem[] {
    if (!isObject(value)) return [];
    const problems: Problem[] = [];
    const properties = isObject(schema.properties) ? (schema.properties as Record<string, Schema>) : {};
    for (const name of Array.isArray(schema.required) ? (schema.required as string[]) : []) {
      if (value[name] === undefined) problems.push({ path: [...path, name], message: "missing" });
    }
    for (const [name, member] of Object.entries(value)) {
      const at = [...path, name];
      if (Object.hasOwn(properties, name)) {
        if (member !== undefined) problems.push(...this.check(properties[name] as Schema, member, at));
      } else if (schema.additionalProperties === false) {
        problems.push({ path: at, message: "unknown field" });
      } else if (isObject(schema.additionalProperties)) {
        problems.push(...this.check(schema.additionalProperties, member, at));
      }
    }
    return problems;
  }

  /** Follows references into the schema itself. */
  #resolve(schema: SchemaObject): SchemaObject | undefined {
    let current: unknown = schema;
    const seen = new Set<unknown>();
    while (isObject(current) && typeof current.$ref === "string") {
      if (seen.has(current)) return undefined;
      seen.add(current);
      current = this.#pointer(current.$ref);
    }
    return isObject(current) ? current : undefined;
  }

  #pointer(reference: string): unknown {
    if (!reference.startsWith("#")) return undefined;
    let current: unknown = this.#root;
    for (const part of reference.slice(1).split("/").filter((name) => name !== "")) {
      const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      current = isObject(current) || Array.isArray(current) ? (current as Record<string, unknown>)[name] : undefined;
    }
    return current;
  }
}

/** A value of a list or constant that is written in another type. */
function coerceToListed(schema: SchemaObject, value: unknown): unknown {
  const allowed: unknown[] = "const" in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [];
  if (allowed.includes(value)) return value;
  for (const candidate of allowed) {
    if (coerceTo(value, typeName(candidate)) === candidate) return candidate;
  }
  return value;
}

function checkNumber(schema: SchemaObject, value: unknown, path: string[]): Problem[] {
  if (typeof value !== "number") return [];
  const rules: [string, (limit: number) => boolean, (limit: number) => string][] = [
    ["minimum", (limit) => value >= limit, (limit) => `expected >= ${limit}`],
    ["maximum", (limit) => value <= limit, (limit) => `expected <= ${limit}`],
    ["exclusiveMinimum", (limit) => value > limit, (limit) => `expected > ${limit}`],
    ["exclusiveMaximum", (limit) => value < limit, (limit) => `expected < ${limit}`],
    ["multipleOf", (limit) => Number.isInteger(value / limit), (limit) => `expected a multiple of ${limit}`],
  ];
  return rules.flatMap(([name, holds, text]) => {
    const limit = schema[name];
    return typeof limit === "number" && !holds(limit) ? [{ path, message: text(limit) }] : [];
  });
}

function checkString(schema: SchemaObject, value: unknown, path: string[]): Problem[] {
  if (typeof value !== "string") return [];
  const problems: Problem[] = [];
  const length = [...value].length;
  const { minLength, maxLength, pattern } = schema;
  if (typeof minLength === "number" && length < minLength) {
    problems.push({ path, message: `expected at least ${minLength} characters` });
  }
  if (typeof maxLength === "number" && length > maxLength) {
    problems.push({ path, message: `expected at most ${maxLength} characters` });
  }
  if (typeof pattern === "string" && !new RegExp(pattern, "u").test(value)) {
    problems.push({ path, message: `expected to match ${pattern}` });
  }
  return problems;
}

/** Coerces and validates the arguments of a call. Throws an Error that a model can read. */
export function validateToolArguments(tool: Tool, toolCall: ToolCall): unknown {
  if (toolCall.argumentsError !== undefined) {
    throw new Error(`Invalid arguments for tool "${tool.name}": ${toolCall.argumentsError}`);
  }
  const schema = JSON.parse(JSON.stringify(tool.parameters)) as SchemaObject;
  const validator = new Validator(schema);
  const value: unknown = isObject(toolCall.arguments)
    ? validator.coerce(schema, structuredClone(toolCall.arguments))
    : toolCall.arguments;
  const problems = validator.check(schema, value, []);
  if (problems.length === 0) return value;
  const lines = problems.map(({ path, message }) => `  - ${path.length === 0 ? "root" : path.join(".")}: ${message}`);
  throw new Error(
    `Validation failed for tool "${tool.name}":\n${lines.join("\n")}\n\nReceived arguments:\n${JSON.stringify(toolCall.arguments, null, 2)}`,
  );
}

/** Finds the tool of a call and validates its arguments. */
export function validateToolCall(tools: Tool[], toolCall: ToolCall): unknown {
  const tool = tools.find(({ name }) => name === toolCall.name);
  if (!tool) throw new Error(`Tool "${toolCall.name}" not found`);
  return validateToolArguments(tool, toolCall);
}
