// The official conformance runners: every client scenario that they require of a revision, and a check of each at least that passed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { packages } from "../node/support.mjs";

const modules = join(packages, "mcp/node_modules");
const newest = join(modules, "@modelcontextprotocol/conformance");
const stable = join(modules, "conformance-stable");
const client = process.env.AGENTD_CONFORMANCE_CLIENT;

/// Extensions of the protocol that agentd does not have: keys bound to tokens, skills.
const notThere = new Set([
  "auth/dpop", "auth/dpop-nonce",
  "sep-2640-client-no-prefetch", "sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter",
]);

/// The client scenarios of a revision: those that it requires, and the others that the runner has for it.
function scenarios(revision) {
  const text = readFileSync(join(newest, `requirements/${revision}.yaml`), "utf8");
  const required = /^client:\n((?:  - .*\n)+)/m.exec(text)[1].match(/\S+(?=\n)/g);
  const others = [...text.matchAll(/- scenario: (\S+)\n {4}leg: client\n/g)].map(([, name]) => name);
  return [...required, ...others.filter((name) => !notThere.has(name))];
}

/// Runs a scenario; its checks.
function run(runner, args) {
  const results = mkdtempSync(join(tmpdir(), "agentd-conformance-"));
  const command = [join(runner, "dist/index.js"), "client", "--command", client, "--output-dir", results, ...args];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"], timeout: 60_000 });
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    child.once("exit", (code) => {
      const [folder] = readdirSync(results, { recursive: true }).filter((name) => name.endsWith("checks.json"));
      const checks = folder ? JSON.parse(readFileSync(join(results, folder), "utf8")) : [];
      rmSync(results, { recursive: true });
      const counted = (status) => checks.filter((check) => check.status === status).length;
      const outcome = { code, passed: counted("SUCCESS"), failed: counted("FAILURE"), warnings: counted("WARNING"), output };
      resolve(outcome);
    });
    child.once("error", reject);
  });
}

function judge({ code, passed, failed, warnings, output }) {
  assert.deepEqual({ failed, warnings }, { failed: 0, warnings: 0 }, output);
  // A scenario to whose server nobody came has no failed check.
  assert.ok(passed > 0, `no check passed\n${output}`);
  assert.equal(code, 0, output);
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  for (const scenario of scenarios(revision)) {
    test(`${revision}: ${scenario}`, async () => judge(await run(newest, ["--scenario", scenario, "--spec-version", revision, "--force"])));
  }
}

const ofStable = [
  "initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "auth/metadata-default", "auth/metadata-var1",
  "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd", "auth/2025-03-26-oauth-metadata-backcompat",
  "auth/2025-03-26-oauth-endpoint-fallback", "auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported",
  "auth/scope-omitted-when-undefined", "auth/scope-step-up", "auth/scope-retry-limit", "auth/token-endpoint-auth-basic",
  "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none", "auth/resource-mismatch", "auth/pre-registration",
  "auth/offline-access-scope", "auth/offline-access-not-supported", "auth/client-credentials-jwt", "auth/client-credentials-basic",
  "auth/cross-app-access-complete-flow",
];
for (const scenario of ofStable) {
  test(`stable runner: ${scenario}`, async () => judge(await run(stable, ["--scenario", scenario])));
}
