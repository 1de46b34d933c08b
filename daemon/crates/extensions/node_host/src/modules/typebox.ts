/** TypeBox itself, under its present names and its old ones. */
import * as typebox from "typebox";
import * as compile from "typebox/compile";
import * as value from "typebox/value";

export { typebox, compile, value };

/** `Type` and everything around it, for modules that export it further. */
export const Type: unknown = typebox.Type;

/** A schema of a string out of a list, in the form that every provider takes. */
export function StringEnum(values: readonly string[], options?: { description?: string; default?: string }): unknown {
  const schema: Record<string, unknown> = { type: "string", enum: values };
  if (options?.description) schema.description = options.description;
  if (options?.default) schema.default = options.default;
  return typebox.Type.Unsafe(schema as typebox.TSchema);
}

/** The exports of each specifier. */
export function typeboxModules(): Record<string, Record<string, unknown>> {
  return {
    typebox,
    "typebox/compile": compile,
    "typebox/value": value,
    "@sinclair/typebox": typebox,
    "@sinclair/typebox/compile": compile,
    "@sinclair/typebox/value": value,
  };
}
