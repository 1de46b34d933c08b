// The example extensions of pi 1.5.2, unchanged, each in a session of agentd and in one of pi: the same conversation gives the same records,
// asks the model the same, and leaves the same session. example_table.mjs says what is done with each.

import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";

import { packages, repository } from "../node/support.mjs";
import { account, masking, same } from "./compare.mjs";
import { persistent } from "./conversation.mjs";
import { rows, targets } from "./example_table.mjs";
import { examples, side } from "./side.mjs";

const pathOf = (name, row) => {
  if (row.installed) return join(packages, `example-${name}`, name);
  return join(examples, existsSync(join(examples, `${name}.ts`)) ? `${name}.ts` : name);
};

/// What one program does in the conversation of a row.
async function run(attempt, program, name, row) {
  let letGo;
  const held = new Promise((resolve) => (letGo = resolve));
  const answer = row.holds ? row.answer(held) : row.answer;
  const place = await side(attempt, program, { ...row, answer, extensions: [pathOf(name, row)] });
  for (const path of row.programs ?? []) chmodSync(place.at(path), 0o755);
  place.env.PATH = `${place.at("bin")}:${place.env.PATH}`;
  await row.prepare?.(place);
  const clients = [];
  const start = (args = []) => {
    const dialogs = typeof row.dialogs === "function" ? row.dialogs() : row.dialogs ?? {};
    const client = place.start(args, (request) => {
      const given = dialogs[request.method];
      return typeof given === "function" ? given(request) : given;
    });
    // What is said after the end of the input is left out: agentd writes to nobody who has ended it.
    const { end, records } = client;
    client.end = async () => {
      const said = records.length;
      await end();
      records.length = said;
    };
    clients.push(client);
    return client;
  };
  const first = start(typeof row.args === "function" ? row.args(place) : row.args);
  // agentd answers while the handlers of session_start are at work, and pi after them.
  const { commands } = await first.unrecorded({ type: "get_commands" });
  const greetings = () => first.records.filter((record) => record.type === "extension_ui_request").length;
  if (greetings() < (row.greets ?? 0)) await first.event(() => greetings() >= row.greets);
  const given = await row.talk(first, { ...place, start, letGo });
  for (const client of clients) if (!client.isOver()) await client.end();
  if (row.unordered) {
    for (const client of clients) client.records.sort((one, other) => Number(row.unordered.which(one)) - Number(row.unordered.which(other)));
  }
  const own = commands.filter((command) => command.source === "extension" && command.sourceInfo?.source !== "builtin");
  return { given: { commands: masking(place)(own), talk: given }, account: account(place, clients, row) };
}

describe("examples do the same in agentd and in pi", { concurrency: Number(process.env.AGENTD_OUTSIDE_CONCURRENCY ?? 2) }, () => {
  for (const [name, row] of Object.entries(rows)) {
    const programs = ["agentd", "pi"];
    test(name, { timeout: 120_000, todo: row.waits && "not served yet" }, (t) => persistent(t, async (attempt) => {
      const done = [];
      if (row.apart) for (const program of programs) done.push(await run(attempt, program, name, row));
      else done.push(...await Promise.all(programs.map((program) => run(attempt, program, name, row))));
      const [ours, theirs] = done;
      same(ours.account, theirs.account, name);
      assert.deepEqual(ours.given, theirs.given);
    }));
  }
});

test("every example is in the table, and in the table of the documentation", () => {
  const all = readdirSync(examples).filter((name) => name !== "README.md").map((name) => basename(name, ".ts")).sort();
  const table = { ...rows, ...targets };
  assert.deepEqual(Object.keys(table).sort(), all);
  const page = readFileSync(join(repository, "docs/extension-examples.md"), "utf8");
  const documented = [...page.matchAll(/^\| `([^`]+)` \| ([^|]*?) \|$/gm)].map(([, name, how]) => [name.replace(/\/$|\.ts$/, ""), how]);
  const shown = ({ waits, works, but }) => (waits ? "not yet" : but === undefined ? works : `${works}: ${but}`);
  const expected = all.map((name) => [name, shown(table[name])]);
  assert.deepEqual(documented, expected);
});
