// Writes an example of docs/clients.md into a file: node example.mjs NAME FILE

import { writeFileSync } from "node:fs";

import { documented } from "../node/support.mjs";

const [name, file] = process.argv.slice(2);
writeFileSync(file, documented(name));
