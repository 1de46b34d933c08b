// The examples of docs/clients.md run as they stand there.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { agentd, documented, home, packages } from "./support.mjs";

/// Runs a documented file in a project that has these other ones, with agentd on PATH, and gives back what it prints.
function run(t, program, name, others = []) {
  const place = home(t);
  for (const file of [name, ...others]) writeFileSync(join(place.project, file), documented(file));
  const { AGENTD_BIN, ...env } = place.env;
  return execFileSync(program[0], [...program.slice(1), name], {
    cwd: place.project, encoding: "utf8", timeout: 60_000,
    env: { ...env, AGENTD_OUTSIDE_PACKAGES: packages, PATH: `${dirname(agentd)}:${process.env.PATH}` },
  });
}

const bundle = join(dirname(fileURLToPath(import.meta.url)), "bundle.mjs");

test("client.ts", (t) => assert.equal(run(t, ["node"], "client.ts"), "Well.\n"));
test("client.py", (t) => assert.equal(run(t, ["python3"], "client.py"), "Well.\n"));
test("rpc_client.mjs", (t) =>
  assert.equal(run(t, ["node", "--import", bundle], "rpc_client.mjs", ["agentd.mjs"]), "Well.\n"));
