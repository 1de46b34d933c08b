// The examples of docs/writing-extensions.md in TypeScript and Python, as `agentctl extensions new` makes them. Those in Rust and in shell
// are run by the end-to-end tests.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { connect } from "../node/client.mjs";
import { agentd, home } from "../node/support.mjs";
import { call, failures, results, script, watched } from "./own.mjs";

const agentctl = join(dirname(agentd), "agentctl");

for (const lang of ["typescript", "python"]) {
  test(`the example in ${lang} guards, counts and shouts`, async (t) => {
    const place = home(t);
    const environment = { ...process.env, ...place.env };
    execFileSync(agentctl, ["extensions", "new", "guard", "--lang", lang], { cwd: place.project, env: environment });
    script(place,
      [call("guard_count_words", { text: " one two\nthree " })],
      [call("bash", { command: "rm -rf ./nothing" })],
      [call("bash", { command: "rm -rf ./nothing && echo gone" })],
      [{ text: "Done." }]);
    const client = connect(place);
    let asked = 0;
    const records = watched(client, (record) => {
      if (record.method !== "confirm") return undefined;
      assert.equal(record.title, "Delete?");
      asked += 1;
      return { confirmed: asked > 1 };
    });
    await client.prompt("Go.");
    assert.deepEqual(results(records), [[false, "3"], [true, "The user said no."], [false, "gone\n"]]);
    assert.equal(asked, 2);
    await client.done({ type: "prompt", message: "/shout quietly" });
    const notice = records.find((record) => record.method === "notify");
    assert.equal(notice.message, "QUIETLY");
    assert.deepEqual(failures(records), []);
  });
}
