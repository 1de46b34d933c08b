// Writes a program that assigns every golden line to its type: node typescript.mjs FOLDER, with the declarations in it.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { documented } from "../node/support.mjs";
import { goldenLines } from "./lines.mjs";

const folder = process.argv[2];
const repository = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const { commands } = JSON.parse(readFileSync(join(repository, "schemas/index.json"), "utf8"));
const lines = goldenLines(join(repository, "tests/golden"), new Set(commands));
if (lines.length < 100) throw new Error(`only ${lines.length} golden lines were found`);

const text = [`import type { Command, Event, Response, ResponseTo } from "./typescript/agentd-protocol.d.ts";`];
for (const { place, type, line } of lines) {
  text.push(`// ${place}`, `takes<${type}>(${JSON.stringify(line)});`);
}
text.push(
  "declare function takes<Type>(line: Type): void;",
  "// What must not fit, so that this program can fail:",
  "// @ts-expect-error: no such command",
  'takes<Command>({ type: "promt", message: "x" });',
  "// @ts-expect-error: a field that is not there",
  'takes<Event>({ type: "agent_settled", aborted: false, more: 1 });',
  "// @ts-expect-error: another command's data",
  'takes<ResponseTo<"get_state">>({ type: "response", command: "get_state", success: true, data: { disposition: "started" } });',
  "",
);
writeFileSync(join(folder, "golden.ts"), text.join("\n"));
writeFileSync(join(folder, "client.ts"), documented("client.ts").replace("./agentd-protocol", "./typescript/agentd-protocol"));
writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({
  compilerOptions: {
    strict: true, noEmit: true, module: "nodenext", target: "es2023", allowImportingTsExtensions: true, types: ["node"],
    verbatimModuleSyntax: true, erasableSyntaxOnly: true, noUncheckedIndexedAccess: true,
  },
  files: ["golden.ts", "client.ts", "typescript/agentd-protocol.d.ts"],
}));
console.log(`${lines.length} lines`);
