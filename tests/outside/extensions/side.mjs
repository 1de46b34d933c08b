// One program in a home of its own, with a model of its own, driven over the RPC wire: agentd, or pi as the reference.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";

import { agentd, awaited, packages } from "../node/support.mjs";
import { modelServer } from "./model_server.mjs";

export const pi = join(packages, "pi-1.5/node_modules/@earendil-works/pi-coding-agent");
export const examples = join(pi, "examples/extensions");

/// The first start with a large package takes long where others work, too.
const PATIENCE = 240_000;

/// How each program is started.
export const programs = {
  agentd: { command: agentd, args: [] },
  pi: { command: process.execPath, args: [join(pi, "dist/bundle/cli.js")] },
};

/// A home in which `program` finds the extensions of `what`, and a model server that answers by `what.answer`.
///
/// `what`: `{extensions?: paths, answer, files?: {path in the root: content}, copies?: {path in the root: from}, settings?, models?:
/// (url) => providers beside the model of the test, links?: {path: to}, env?: (url, at) => variables, page?: (path, url) => {type, body}}`.
export async function side(t, program, what) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `outside-${program}-`)));
  const server = await modelServer(what.answer, what.page);
  const cleanups = [() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }), () => server.close()];
  t.after(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });
  const at = (...names) => join(root, ...names);
  for (const name of ["home", "agent/extensions", "project", "tmp", "agent/sessions"]) mkdirSync(at(name), { recursive: true });
  // What is made of the sources of large packages is kept from one test to the next.
  for (const [name, place] of [["jiti", at("tmp/jiti")], ["agentd", at("agent/cache/extensions")]]) {
    const kept = join(packages, "extension-cache", name);
    for (const folder of [kept, dirname(place)]) mkdirSync(folder, { recursive: true });
    symlinkSync(kept, place);
  }
  for (const path of what.extensions ?? []) install(path, at("agent/extensions"));
  for (const [path, from] of Object.entries(what.copies ?? {})) cpSync(from, at(path), { recursive: true });
  for (const [path, to] of Object.entries(what.links ?? {})) symlinkSync(to, at(path));
  for (const [path, content] of Object.entries(what.files ?? {})) {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), typeof content === "function" ? content(server.url) : content);
  }
  const model = (id, more) => ({ id, contextWindow: 100000, maxTokens: 1000, ...more });
  writeFileSync(at("agent/models.json"), JSON.stringify({
    providers: {
      fake: { api: "openai-completions", baseUrl: `${server.url}/v1`, apiKey: "none", models: [model("one", { reasoning: true }), model("two", {})] },
      ...what.models?.(server.url),
    },
  }));
  writeFileSync(at("agent/settings.json"), JSON.stringify({
    defaultProvider: "fake", defaultModel: "one", defaultThinkingLevel: "off",
    compaction: { enabled: false, keepRecentTokens: 2 }, retry: { maxRetries: 1, baseDelayMs: 1 }, ...what.settings,
  }));
  const env = {
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`, LANG: "C.UTF-8", TZ: "UTC",
    HOME: at("home"), TMPDIR: at("tmp"), PI_CODING_AGENT_DIR: at("agent"), PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0",
    ...what.env?.(server.url, at),
  };
  return { program, root, at, server, env, cleanups, project: at("project"), start: (args, answer) => started({ program, at, env, cleanups }, args, answer), once: (args) => once({ program, at, env }, args) };
}

/// A file is copied, a folder too; a package stays where it is, with what it depends on, behind a link.
function install(path, folder) {
  const name = basename(path);
  if (path.includes("/node_modules/") && !path.startsWith(examples)) symlinkSync(path, join(folder, name));
  else cpSync(path, join(folder, name), { recursive: true });
}

/// Starts the program. `answer` is asked for each `extension_ui_request`: what it gives back is the response.
function started({ program, at, env, cleanups }, args = [], answer = () => undefined) {
  const { command, args: before } = programs[program];
  const child = spawn(command, [...before, "--mode", "rpc", ...args], { cwd: at("project"), env, stdio: ["pipe", "pipe", "pipe"] });
  const listeners = new Set(), records = [], said = [];
  const listen = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  child.stderr.on("data", (data) => said.push(data));
  const write = (line) => child.stdin.write(`${JSON.stringify(line)}\n`);
  createInterface({ input: child.stdout }).on("line", (line) => {
    const record = JSON.parse(line);
    records.push(record);
    for (const listener of [...listeners]) listener(record);
    if (record.type !== "extension_ui_request") return;
    const given = answer(record);
    if (given !== undefined) write({ type: "extension_ui_response", id: record.id, ...given });
  });
  const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code)));
  let next = 0;
  const client = {
    program, child, records, listen, exited,
    /// What it wrote to standard error.
    stderr: () => Buffer.concat(said).toString(),
    /// Waits for a record of that type, or one that fits.
    event: (what, timeout = PATIENCE) => awaited(listen, typeof what === "function" ? what : (record) => record.type === what, `${program}: ${what}`, timeout),
    /// Sends a command, and gives back its whole response.
    async send(command, timeout = PATIENCE) {
      const id = `c${++next}`;
      const response = awaited(listen, (record) => record.type === "response" && record.id === id, `${program}: ${command.type}`, timeout);
      const dead = exited.then((how) => {
        throw new Error(`${program} ended (${how}) before it answered ${command.type}: ${client.stderr()}`);
      });
      write({ id, ...command });
      dead.catch(() => {});
      return Promise.race([response, dead]);
    },
    say: write,
    isOver: () => child.exitCode !== null || child.signalCode !== null,
    /// Sends a command whose response is not compared, and gives back its data.
    async unrecorded(command) {
      const response = await client.send(command);
      records.splice(records.indexOf(response), 1);
      assert.ok(response.success, `${program}: ${JSON.stringify(response)}`);
      return response.data;
    },
    /// Sends a command that has to succeed, and gives back its data.
    async done(command) {
      const response = await client.send(command);
      assert.ok(response.success, `${program}: ${JSON.stringify(command)}: ${JSON.stringify(response)}`);
      return response.data;
    },
    /// Sends a prompt that starts a run, and waits for its end.
    async prompt(message, more = {}) {
      const settled = client.event("agent_settled");
      settled.catch(() => {});
      await client.done({ type: "prompt", message, ...more });
      await settled;
    },
    /// Runs a command of an extension.
    command: (message) => client.done({ type: "prompt", message }),
    /// Ends it by the end of its input.
    async end() {
      if (child.exitCode === null && child.signalCode === null) child.stdin.end();
      const how = await exited;
      assert.equal(how, 0, `${program} at the end of its input: ${client.stderr()}`);
    },
  };
  cleanups.push(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return client;
}

/// Has prompts answered without anybody to ask: pi's mode of events. Gives back its records.
async function once({ program, at, env }, args) {
  const { command, args: before } = programs[program];
  const child = spawn(command, [...before, "--mode", "json", ...args], { cwd: at("project"), env, stdio: ["ignore", "pipe", "pipe"] });
  const said = { stdout: [], stderr: [] };
  for (const name of Object.keys(said)) child[name].on("data", (data) => said[name].push(data));
  const how = await new Promise((resolve) => child.once("close", (code, signal) => resolve(signal ?? code)));
  assert.equal(how, 0, `${program}: ${Buffer.concat(said.stderr)}`);
  return Buffer.concat(said.stdout).toString().trim().split("\n").map((line) => JSON.parse(line));
}

/// The entries of all session files of the side, in the order of the files' names.
export function sessions(place) {
  const files = [];
  const walk = (folder) => {
    for (const name of readdirSync(folder).sort()) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) walk(path);
      else if (name.endsWith(".jsonl")) files.push(path);
    }
  };
  if (existsSync(place.at("agent/sessions"))) walk(place.at("agent/sessions"));
  return files.map((file) => readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line)));
}
