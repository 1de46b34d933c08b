// Extensions that tests write themselves, in sessions of agentd: their homes, and the processes of their hosts.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { agentd, home, running } from "../node/support.mjs";

/// A home with extensions of the user's: `files` has their sources by their names below `extensions/`.
export function withExtensions(t, files, settings) {
  const place = home(t, settings);
  for (const [name, source] of Object.entries(files)) write(place, `agent/extensions/${name}`, source);
  return place;
}

/// Writes a file below the home, with its folders.
export function write(place, name, content) {
  mkdirSync(dirname(place.at(name)), { recursive: true });
  writeFileSync(place.at(name), content);
}

/// The answers of the scripted model, by how many results came since the prompt; the last one for all that follow.
export function script(place, ...emits) {
  const steps = emits.map((emit, results) => ({ when: results + 1 < emits.length ? { results } : { promptContains: "" }, emit }));
  write(place, "script.json", JSON.stringify({ steps }));
}

/// An action of the script: one tool call.
export const call = (name, args = {}, id = "c1") => ({ toolCall: { id, name, arguments: args } });

/// Collects all records of a client. `react` gets each, and what it gives back answers a dialog.
export function watched(client, react = () => undefined) {
  const records = [];
  client.listen((record) => {
    records.push(record);
    const given = react(record);
    if (given !== undefined && record.type === "extension_ui_request") {
      client.say({ type: "extension_ui_response", id: record.id, ...given });
    }
  });
  return records;
}

/// The results of tool calls among records: `[isError, text]` of each.
export const results = (records) => records
  .filter((record) => record.type === "tool_execution_end")
  .map((record) => [record.isError, record.result.content.map((part) => part.text).join("")]);

/// The extension errors among records: `[event, error]` of each.
export const failures = (records) => records
  .filter((record) => record.type === "extension_error")
  .map((record) => [record.event, record.error]);

/// The process ids of the Node hosts of a home.
export const hosts = (place) => running(place)
  .filter((line) => line.includes("host.mjs"))
  .map((line) => Number(line.split(" ")[0]));

/// Kills the one Node host of the home as the kernel would.
export function killHost(place) {
  const found = hosts(place);
  assert.equal(found.length, 1, `hosts: ${running(place).join("\n")}`);
  process.kill(found[0], "SIGKILL");
}

/// Waits until no process of the home is left.
export async function gone(place) {
  const until = Date.now() + 10_000;
  while (running(place).length > 0) {
    assert.ok(Date.now() < until, `still running: ${running(place).join("\n")}`);
    await new Promise(setImmediate);
  }
}

/// Starts an agentd that is expected to end by itself, and gives back its exit code and what it wrote to standard error.
export async function ending(place, args = [], react = () => undefined) {
  const child = spawn(agentd, ["--mode", "rpc", ...args], {
    cwd: place.project, env: { ...process.env, ...place.env }, stdio: ["pipe", "ignore", "pipe"],
  });
  place.cleanups.push(() => child.kill("SIGKILL"));
  let stderr = "";
  child.stderr.on("data", (data) => (stderr += data));
  const end = new Promise((resolve) => child.once("close", (code) => resolve(code)));
  await react(child);
  return { code: await end, stderr };
}
