// Writes the code blocks of a page that are whole programs into files: node readme.mjs PAGE EXTENSION FOLDER
//
// A block begins with its file's name, as those of docs/clients.md do.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [page, extension, folder] = process.argv.slice(2);
let count = 0;
for (const [, block] of readFileSync(page, "utf8").matchAll(/^```\w+\n([^]*?)^```$/gm)) {
  const name = /^(?:\/\/|#) (\S+)\n/.exec(block)?.[1];
  if (!name?.endsWith(`.${extension}`)) continue;
  writeFileSync(join(folder, name), block);
  count += 1;
}
if (count === 0) throw new Error(`${page} has no program in it`);
