// The server side of the official conformance runners, behind the bridge from HTTP.
//
// Most scenarios call tools, prompts and resources of a demonstration server (`test_simple_text` and so on), which a product does not have.
// Those that say something about every server are listed here, with the checks of them that need such a tool; all others are run and counted.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { agentd, home, packages } from "../node/support.mjs";
import { bridge } from "./bridge.mjs";

const runner = (name) => join(packages, "mcp-serve/node_modules", name, "dist/index.js");
const stable = runner("conformance-stable");
const alpha = runner("@modelcontextprotocol/conformance");

/// What tells of HTTP alone, and so of the bridge.
const ofBridge = { "dns-rebinding-protection": [], "server-sse-multiple-streams": [] };

/// The runs: their arguments, and the scenarios that say something about every server, with the checks that cannot apply to a product.
const runs = [
  {
    name: "0.1.16, 2025-11-25",
    command: [stable, "--suite", "all"],
    applies: { "server-initialize": [], ping: [], "tools-list": [], ...ofBridge },
  },
  {
    name: "0.2.0-alpha.12, 2025-11-25",
    command: [alpha, "--requirements", "2025-11-25"],
    applies: { "server-initialize": [], ping: [], "tools-list": [], "server-session-lifecycle": [], ...ofBridge },
  },
  {
    name: "0.2.0-alpha.12, 2026-07-28",
    command: [alpha, "--requirements", "2026-07-28"],
    applies: {
      "server-stateless": [
        // They need the tools test_missing_capability, test_streaming_elicitation and test_logging_tool.
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
      ],
      "tools-list": [],
      caching: [
        // There are no prompts and no resources.
        "sep-2549-prompts-list-caching-hints",
        "sep-2549-resources-list-caching-hints",
        "sep-2549-resources-templates-list-caching-hints",
      ],
      "input-required-result-unsupported-methods": [],
      "http-header-validation": [],
      ...ofBridge,
    },
  },
];

/// The scenario of a folder of results.
const scenarioOf = (folder) => /^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(folder)[1];

let place, served;
const ends = [];
before(async () => {
  place = home({ after: (end) => ends.push(end) });
  served = await bridge({ command: agentd, args: ["mcp", "serve"], cwd: place.project, env: { ...place.env, PATH: "/usr/bin:/bin" } });
});
after(async () => {
  await served?.close();
  for (const end of ends) await end();
});

for (const { name, command, applies } of runs) {
  test(`conformance ${name}`, async (t) => {
    const out = place.at(`out-${name.replace(/\W+/g, "-")}`);
    const [program, ...args] = command;
    // It ends with an error, since most scenarios do not apply.
    const said = await new Promise((resolve) => {
      const given = [program, "server", "--url", served.url, "-o", out, ...args];
      const options = { cwd: place.at("home"), timeout: 240_000, maxBuffer: 1 << 27 };
      execFile(process.execPath, given, options, (error, stdout, stderr) => resolve({ killed: error?.killed, text: stdout + stderr }));
    });
    assert.ok(!said.killed, `the runner did not end: ${said.text.slice(-2000)}`);
    const seen = new Map();
    for (const folder of readdirSync(out)) {
      seen.set(scenarioOf(folder), JSON.parse(readFileSync(join(out, folder, "checks.json"), "utf8")));
    }
    const total = {}, applying = {};
    for (const [scenario, checks] of [...seen].sort()) {
      const counts = {};
      for (const { status } of checks) {
        counts[status] = (counts[status] ?? 0) + 1;
        total[status] = (total[status] ?? 0) + 1;
        if (scenario in applies) applying[status] = (applying[status] ?? 0) + 1;
      }
      t.diagnostic(`${scenario in applies ? "applies" : "counted"}  ${scenario}: ${JSON.stringify(counts)}`);
    }
    t.diagnostic(`scenarios that apply: ${Object.keys(applies).length}, ${JSON.stringify(applying)}`);
    t.diagnostic(`all scenarios: ${seen.size}, ${JSON.stringify(total)}`);
    for (const [scenario, exempt] of Object.entries(applies)) {
      const checks = seen.get(scenario);
      assert.ok(checks, `${scenario} was not run: ${said.text.slice(-2000)}`);
      const failed = checks.filter((check) => check.status === "FAILURE" && !exempt.includes(check.id));
      assert.deepEqual(failed.map((check) => `${check.id}: ${check.errorMessage}`), [], scenario);
      assert.ok(checks.some((check) => check.status === "SUCCESS"), `${scenario} has no passed check`);
      // An exemption that is not needed any more is taken out.
      for (const id of exempt) assert.ok(checks.some((check) => check.id === id && check.status === "FAILURE"), `${id} of ${scenario} passes`);
    }
    // In every scenario, whatever it asks for: all that was sent is as the schema of the revision says.
    const messages = [...seen].flatMap(([scenario, checks]) => checks.filter((check) => check.id === "wire-schema-valid").map((check) => [scenario, check]));
    if (program === alpha) assert.ok(messages.length > 10, "the schema was not checked");
    for (const [scenario, check] of messages) assert.equal(check.status, "SUCCESS", `${scenario}: ${check.errorMessage}`);
  });
}
