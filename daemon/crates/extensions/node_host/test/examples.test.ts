/**
 * Loads the examples that pi comes with, unmodified, and compares what they register with `data/examples.json`.
 *
 * PI_EXAMPLES names a copy of pi's folder `examples/extensions` in which the packages of the examples are installed
 * (`npm install` in each folder with dependencies). UPDATE_EXAMPLES=1 writes the file anew.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { FakeDaemon, type Json } from "./fake_daemon.ts";

const FOLDER = process.env["PI_EXAMPLES"];
const DATA = join("test", "data", "examples.json");
const COUNT = 78;

interface Registered {
  tools: string[];
  commands: string[];
  flags: string[];
  shortcuts: string[];
  events: string[];
  renderers: string[];
  providers: string[];
  virtualModels: string[];
  mcpServers: string[];
}

interface Data {
  loaded: Record<string, Registered>;
  /** Examples of which a package cannot be installed, with that package. */
  notInstallable: Record<string, string>;
}

interface Example {
  name: string;
  entry: string;
  /** A dependency that is not installed. */
  lacks: string | undefined;
}

function listExamples(folder: string): Example[] {
  const examples: Example[] = [];
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) {
      if (existsSync(join(path, "index.ts"))) examples.push({ name, entry: join(path, "index.ts"), lacks: lackingDependency(path) });
    } else if (name.endsWith(".ts")) {
      examples.push({ name: basename(name, ".ts"), entry: path, lacks: undefined });
    }
  }
  return examples;
}

function lackingDependency(folder: string): string | undefined {
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) return undefined;
  const { dependencies = {} } = JSON.parse(readFileSync(manifest, "utf8")) as { dependencies?: Record<string, string> };
  const missing = Object.keys(dependencies).find((name) => !existsSync(join(folder, "node_modules", name)));
  return missing === undefined ? undefined : `${missing}@${dependencies[missing]}`;
}

function registeredBy(daemon: FakeDaemon, ext: string): Registered {
  const notes = (kind: string) => daemon.registered(kind).filter((note) => note["ext"] === ext);
  const names = (kind: string, name: (note: Json) => unknown) => [...new Set(notes(kind).map((note) => String(name(note))))].sort();
  return {
    tools: names("tool", (note) => (note["def"] as Json)["name"]),
    commands: names("command", (note) => note["name"]),
    flags: names("flag", (note) => note["name"]),
    shortcuts: names("shortcut", (note) => note["key"]),
    events: names("handler", (note) => note["event"]),
    renderers: names("renderer", (note) => [note["what"], note["customType"]].filter(Boolean).join(":")),
    providers: names("provider", (note) => note["name"]),
    virtualModels: names("virtualModel", (note) => `${String((note["model"] as Json)["provider"])}/${String((note["model"] as Json)["id"])}`),
    mcpServers: names("mcpServer", (note) => note["name"]),
  };
}

test(
  "every example of pi loads and registers what it did before",
  { skip: FOLDER === undefined ? "PI_EXAMPLES does not name a copy of pi's examples/extensions" : false },
  async () => {
    const examples = listExamples(FOLDER ?? "");
    assert.equal(examples.length, COUNT, "number of examples");
    const loadable = examples.filter((example) => example.lacks === undefined);
    const daemon = await FakeDaemon.greeted();
    const { extensions } = await daemon.loadFiles(loadable.map(({ name, entry }) => ({ ext: name, path: entry, entry })));
    const failed = extensions.filter((one) => !one.ok).map((one) => `${one.ext}: ${one.error}`);
    assert.deepEqual(failed, []);
    const data: Data = {
      loaded: Object.fromEntries(loadable.map(({ name }) => [name, registeredBy(daemon, name)])),
      notInstallable: Object.fromEntries(examples.filter((one) => one.lacks !== undefined).map((one) => [one.name, one.lacks ?? ""])),
    };
    await daemon.stop();
    if (process.env["UPDATE_EXAMPLES"] === "1") writeFileSync(DATA, `${JSON.stringify(data, null, 1)}\n`);
    const known = JSON.parse(readFileSync(DATA, "utf8")) as Data;
    assert.deepEqual(data.loaded, known.loaded);
    assert.deepEqual(data.notInstallable, known.notInstallable);
  },
);
