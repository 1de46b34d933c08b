// Prints the TypeScript declarations: node generate.mjs PACKAGES SCHEMA HEADER (see schemas/generate).

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [packages, schema, header] = process.argv.slice(2);
const { compile } = createRequire(join(packages, "package.json"))("json-schema-to-typescript");

// A schema that says nothing of the type means any value; the generator would take it for an object.
function markUnknown(part) {
  if (Array.isArray(part)) return part.forEach(markUnknown);
  if (part === null || typeof part !== "object") return;
  const says = ["type", "$ref", "anyOf", "allOf", "enum", "const"].some((key) => key in part);
  if (!says) part.tsType = "unknown";
  else for (const key of ["items", "additionalProperties", "anyOf", "allOf"]) markUnknown(part[key]);
  for (const property of Object.values(part.properties ?? {})) markUnknown(property);
}

const document = JSON.parse(readFileSync(schema, "utf8"));
Object.values(document.$defs).forEach(markUnknown);
const declarations = await compile(document, "Line", {
  additionalProperties: false, bannerComment: `// ${header}`, unknownAny: true, style: { printWidth: 120 },
});
process.stdout.write(`${declarations}
/** What may come back for a command of that \`type\`. */
export type ResponseTo<Type extends Command["type"]> = Extract<Response, { command: Type }> | FailureResponse;
`);
