/** Every module that extensions import has the names that it must have. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { unavailable } from "../src/modules/index.ts";
import expected from "./fixtures/export_names.json" with { type: "json" };
import { makeModules } from "./support/modules.ts";
import { needsReference, reference } from "./support/reference.ts";

const SAME_AS: Record<string, string> = { "@earendil-works/pi-ai/compat": "@earendil-works/pi-ai" };

function namesOf(exports: object): string[] {
  return Object.keys(exports).sort();
}

test("our modules have the names of the committed list, and no others", () => {
  const modules = makeModules();
  const names = expected as Record<string, string[]>;
  for (const [specifier, list] of Object.entries(names)) {
    assert.deepEqual(namesOf(modules[specifier] ?? {}), list, specifier);
  }
  for (const [specifier, same] of Object.entries(SAME_AS)) assert.equal(modules[specifier], modules[same]);
});

test("old names of the packages are the same modules", () => {
  const modules = makeModules();
  for (const specifier of Object.keys(modules)) {
    const old = specifier.replace("@earendil-works/", "@mariozechner/").replace(/^typebox/, "@sinclair/typebox");
    assert.equal(modules[old], modules[specifier], specifier);
  }
});

test("the modules and their names are those of the reference", needsReference, () => {
  const modules = makeModules();
  const theirs = reference ?? {};
  assert.deepEqual(Object.keys(modules).sort(), Object.keys(theirs).sort());
  for (const [specifier, exports] of Object.entries(theirs)) {
    assert.deepEqual(namesOf(modules[specifier] ?? {}), namesOf(exports), specifier);
    for (const name of namesOf(exports)) {
      assert.equal(typeof modules[specifier]?.[name], typeof exports[name], `${specifier} ${name}`);
    }
  }
});

test("classes extend the same classes as in the reference", needsReference, () => {
  const theirs = reference ?? {};
  const ours = makeModules();
  const missing = unavailable();
  const parent = (value: unknown): string => (Object.getPrototypeOf(value) as { name?: string }).name ?? "";
  const isClass = (value: unknown): boolean => typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value));
  /** Parents that the reference does not export. */
  const internal = new Set(["_TuiBase", "Stack"]);
  for (const [specifier, exports] of Object.entries(theirs)) {
    if (specifier.startsWith("typebox") || specifier.startsWith("@sinclair")) continue;
    for (const [name, value] of Object.entries(exports)) {
      if (!isClass(value) || missing[specifier]?.includes(name) || internal.has(parent(value))) continue;
      // They have a class of our own above them.
      if (["Agent", "AgentSession", "ModelRuntime", "SessionManager", "SettingsManager"].includes(name)) continue;
      assert.equal(parent(ours[specifier]?.[name]), parent(value), `${specifier} ${name}`);
    }
  }
});

test("unavailable exports throw when they are called, constructed or extended and constructed", () => {
  const modules = makeModules();
  for (const [specifier, names] of Object.entries(unavailable())) {
    for (const name of names) {
      const value = modules[specifier]?.[name] as (new () => object) & (() => unknown);
      const message = { message: `${name} is not available in agentd` };
      assert.throws(() => value(), message, `${specifier} ${name}`);
      assert.throws(() => new value(), message);
      assert.throws(() => new (class extends value {})(), message);
    }
  }
});

test("static methods of unavailable classes say what is missing", () => {
  const { RpcClient } = makeModules()["@earendil-works/pi-coding-agent"] as { RpcClient: { create(): void } };
  assert.throws(() => RpcClient.create(), { message: "RpcClient.create is not available in agentd" });
});

test("constants come from the daemon's greeting and from the version that is implemented", () => {
  const exports = makeModules()["@earendil-works/pi-coding-agent"] as Record<string, unknown>;
  assert.equal(exports.CONFIG_DIR_NAME, ".pi");
  assert.equal(exports.VERSION, "1.5.2");
  assert.equal((exports.getAgentDir as () => string)(), "/nonexistent/agent");
});

test("the README names every export once, and those that are not available as such", () => {
  const text = readFileSync("src/modules/README.md", "utf8");
  const sections = text.split(/^### `(.+?)` \(\d+\)$/m).slice(1);
  const listed = new Map<string, Map<string, string>>();
  for (let index = 0; index < sections.length; index += 2) {
    const kinds = new Map<string, string>();
    for (const [, kind, cells] of (sections[index + 1] as string).matchAll(/^\| ([abcd]) \(\d+\) \| (.+) \|$/gm)) {
      for (const [, name] of (cells as string).matchAll(/`([^`]+)`/g)) {
        assert.ok(!kinds.has(name as string), name);
        kinds.set(name as string, kind as string);
      }
    }
    listed.set(sections[index] as string, kinds);
  }
  makeModules();
  const missing = unavailable();
  for (const [specifier, list] of Object.entries(expected as Record<string, string[]>)) {
    const kinds = listed.get(specifier) ?? new Map<string, string>();
    assert.deepEqual([...kinds.keys()].sort(), list, specifier);
    const unavailableNames = [...kinds].filter(([, kind]) => kind === "d").map(([name]) => name);
    assert.deepEqual(unavailableNames.sort(), missing[specifier] ?? [], specifier);
  }
});
