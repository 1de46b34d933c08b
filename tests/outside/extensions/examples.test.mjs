// The example extensions of pi 1.5.2, unchanged: each is loaded by a session and registers what it registers in the host's own tests;
// some are used.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { connect } from "../node/client.mjs";
import { home, packages, repository } from "../node/support.mjs";

const examples = join(packages, "pi-1.5/node_modules/@earendil-works/pi-coding-agent/examples/extensions");
const expected = JSON.parse(readFileSync(
  join(repository, "daemon/crates/extensions/node_host/test/data/examples.json"), "utf8",
)).loaded;

/// A home that has an example as an extension of the user's.
function withExample(t, name) {
  const place = home(t);
  mkdirSync(place.at("agent/extensions"));
  const file = `${name}.ts`;
  const isFile = existsSync(join(examples, file));
  cpSync(join(examples, isFile ? file : name), place.at("agent/extensions", isFile ? file : name), { recursive: true });
  return place;
}

function script(place, ...emits) {
  const steps = emits.map((emit, results) => ({ when: { results }, emit })).reverse();
  writeFileSync(place.at("script.json"), JSON.stringify({ steps }));
}

/// Answers dialogs by `answer`, which gets the request; collects all records.
function watched(client, answer = () => undefined) {
  const records = [];
  client.listen((record) => {
    records.push(record);
    if (record.type !== "extension_ui_request") return;
    const given = answer(record);
    if (given !== undefined) client.say({ type: "extension_ui_response", id: record.id, ...given });
  });
  return records;
}

// An example with dependencies of its own needs an installation first.
const names = Object.keys(expected).filter((name) => {
  const manifest = join(examples, name, "package.json");
  return !existsSync(manifest) || !JSON.parse(readFileSync(manifest, "utf8")).dependencies;
});

test("examples load and register what they say", async (t) => {
  for (const name of names) {
    await t.test(name, async (t) => {
      const client = connect(withExample(t, name));
      const { commands } = await client.done({ type: "get_commands" });
      const own = commands.filter((command) => command.source === "extension").map((command) => command.name);
      assert.deepEqual(own.sort(), [...expected[name].commands].sort());
      const { tools } = await client.done({ type: "get_tools" });
      const ownTools = tools.filter((tool) => tool.source === "extension").map((tool) => tool.name);
      assert.deepEqual(ownTools.sort(), [...expected[name].tools].sort());
      await client.end();
    });
  }
});

test("permission-gate asks before a dangerous command, and blocks it on a no", async (t) => {
  const place = withExample(t, "permission-gate");
  script(place, [{ toolCall: { id: "c1", name: "bash", arguments: { command: "sudo rm -rf /nothing/here" } } }], [{ text: "Done." }]);
  const client = connect(place);
  const records = watched(client, (request) => (request.method === "select" ? { value: "No" } : undefined));
  await client.prompt("go");
  assert.ok(records.some((record) => record.method === "select"), "nobody was asked");
  const end = records.find((record) => record.type === "tool_execution_end");
  assert.equal(end.isError, true);
  assert.match(end.result.content[0].text, /[Bb]locked/);
});

test("todo keeps its list in the results of its tool", async (t) => {
  const place = withExample(t, "todo");
  script(
    place,
    [{ toolCall: { id: "c1", name: "todo", arguments: { action: "add", text: "write tests" } } }],
    [{ toolCall: { id: "c2", name: "todo", arguments: { action: "toggle", id: 1 } } }],
    [{ text: "Done." }],
  );
  const client = connect(place);
  const records = watched(client);
  await client.prompt("go");
  const ends = records.filter((record) => record.type === "tool_execution_end");
  assert.equal(ends.length, 2);
  assert.equal(ends[1].isError, false, JSON.stringify(ends[1]));
  assert.deepEqual(ends[1].result.details.todos.map((todo) => [todo.text, todo.done]), [["write tests", true]]);
});

test("rpc-demo shows and asks by every method", async (t) => {
  const place = withExample(t, "rpc-demo");
  const client = connect(place);
  const records = watched(client, (request) => {
    if (request.method === "select") return { value: request.options[0] };
    if (request.method === "confirm") return { confirmed: true };
    if (request.method === "input" || request.method === "editor") return { value: "typed" };
    return undefined;
  });
  for (const command of expected["rpc-demo"].commands) await client.done({ type: "prompt", message: `/${command}` });
  const methods = new Set(records.filter((record) => record.type === "extension_ui_request").map((record) => record.method));
  for (const method of ["notify", "input", "editor", "setStatus", "setWidget"]) assert.ok(methods.has(method), [...methods].join());
  assert.deepEqual(records.filter((record) => record.type === "extension_error"), []);
});
