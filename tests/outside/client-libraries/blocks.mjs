// Writes a program out of a page into a file: node blocks.mjs PAGE NAME FOLDER. Its block begins with its name in a comment.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [page, name, folder] = process.argv.slice(2);
const blocks = [...readFileSync(page, "utf8").matchAll(/^```\w+\n([^]*?)^```$/gm)].map(([, block]) => block);
const block = blocks.find((block) => /^(?:\/\/|#) (\S+)\n/.exec(block)?.[1] === name);
if (!block) throw new Error(`${page} has no program that begins with its name ${name}`);
writeFileSync(join(folder, name), block);
