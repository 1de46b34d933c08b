// agentctl install, remove, list, update and the start of a session, with the real npm and git.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { World } from "./world.mjs";

let world;
beforeEach(async () => {
  world = await World.start();
});
afterEach(() => world.end());

const prompt = (text) => ({ "prompts/hello.md": `${text}\n` });

const names = (data) => data.commands.map((command) => command.name);

test("a package of a registry comes, is updated and goes", async () => {
  await world.publish("tools", "1.0.0", prompt("one"));
  world.write("agent/settings.json", '{\n  // mine\n  "packages": [], // none yet\n  "theme": "dark"\n}\n');

  const installed = await world.agentctl(["install", "npm:tools@^1"]);
  assert.equal(installed.code, 0, installed.stderr);
  assert.match(installed.stdout, /^Installed npm:tools@\^1, added to .*settings\.json\.\n$/);
  assert.equal(
    world.read("agent/settings.json"),
    '{\n  // mine\n  "packages": ["npm:tools@^1"], // none yet\n  "theme": "dark"\n}\n',
  );
  assert.equal(world.read("agent/npm/.gitignore"), "*\n!.gitignore\n");
  assert.equal(JSON.parse(world.read("agent/npm/package.json")).name, "pi-extensions");

  const [commands] = await world.session([{ type: "get_commands" }]);
  const { sourceInfo } = commands.commands.find((command) => command.name === "hello");
  assert.deepEqual(sourceInfo, {
    path: world.path("agent/npm/node_modules/tools/prompts/hello.md"),
    source: "npm:tools@^1",
    scope: "user",
    origin: "package",
    baseDir: world.path("agent/npm/node_modules/tools"),
  });

  const nothing = await world.agentctl(["update"]);
  assert.match(nothing.stdout, /up to date/);
  await world.publish("tools", "1.1.0", prompt("two"));
  await world.publish("tools", "2.0.0", prompt("three"));
  const updated = await world.agentctl(["update", "npm:tools"]);
  assert.equal(updated.stdout, "Updated npm:tools@^1 1.0.0 -> 1.1.0\n", updated.stderr);
  assert.match(world.read("agent/npm/node_modules/tools/prompts/hello.md"), /two/);

  const replaced = await world.agentctl(["install", "npm:tools@2.0.0"]);
  assert.equal(replaced.code, 0, replaced.stderr);
  assert.match(world.read("agent/settings.json"), /"packages": \["npm:tools@2\.0\.0"\]/);
  assert.match((await world.agentctl(["list"])).stdout, /^User packages:\n  npm:tools@2\.0\.0\n    .*node_modules\/tools\n$/);

  const removed = await world.agentctl(["remove", "npm:tools"]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.ok(!world.exists("agent/npm/node_modules/tools"));
  assert.match(world.read("agent/settings.json"), /"packages": \[\], \/\/ none yet/);
  assert.equal((await world.agentctl(["remove", "npm:tools"])).code, 1);
});

test("an installation that fails leaves nothing", async () => {
  const missing = await world.agentctl(["install", "npm:nowhere"]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /npm install nowhere .* failed with code 1: (.|\n)*404/);
  assert.ok(!world.exists("agent/npm") && !world.exists("agent/settings.json"));

  await world.publish("good", "1.0.0", prompt("x"));
  await world.publish("bad", "1.0.0", prompt("x"), { scripts: { postinstall: "exit 3" } });
  assert.equal((await world.agentctl(["install", "npm:good"])).code, 0);
  const before = [world.read("agent/npm/package.json"), world.read("agent/npm/package-lock.json")];
  assert.equal((await world.agentctl(["install", "npm:bad"])).code, 1);
  assert.deepEqual([world.read("agent/npm/package.json"), world.read("agent/npm/package-lock.json")], before);
  assert.ok(world.exists("agent/npm/node_modules/good") && !world.exists("agent/npm/node_modules/bad"));
  assert.equal(world.read("agent/settings.json").includes("bad"), false);

  await world.commit("o/r", prompt("x"));
  const noRef = await world.agentctl(["install", "git:git.example/o/r@nothing"]);
  assert.equal(noRef.code, 1);
  assert.match(noRef.stderr, /git checkout .*nothing failed with code 1/);
  assert.ok(!world.exists("agent/git/git.example"));
});

test("scripts of packages get no keys of models", async () => {
  const script = "node -e \"require('fs').writeFileSync(process.env.SEEN, JSON.stringify(process.env))\"";
  await world.publish("curious", "1.0.0", prompt("x"), { scripts: { postinstall: script } });
  const env = { ANTHROPIC_API_KEY: "hush-hush", SEEN: world.path("seen.json") };
  const installed = await world.agentctl(["install", "npm:curious"], { env });
  assert.equal(installed.code, 0, installed.stderr);
  const seen = world.read("seen.json");
  assert.ok(!seen.includes("hush-hush"));
  assert.equal(JSON.parse(seen).AI_AGENT, "agentd");
});

test("a repository comes at its ref, follows its branch and goes", async () => {
  await world.publish("leaf", "1.0.0", {});
  const manifest = { "package.json": '{"name":"r","dependencies":{"leaf":"1.0.0"}}' };
  await world.commit("o/r", { ...prompt("one"), ...manifest }, "v1");
  await world.commit("o/r", prompt("two"));

  assert.equal((await world.agentctl(["install", "git:git.example/o/r@v1"])).code, 0);
  assert.match(world.read("agent/git/git.example/o/r/prompts/hello.md"), /one/);
  assert.ok(world.exists("agent/git/git.example/o/r/node_modules/leaf"));
  // Another ref of the same repository takes its place.
  const moved = await world.agentctl(["install", "https://git.example/o/r@main"]);
  assert.equal(moved.code, 0, moved.stderr);
  assert.match(world.read("agent/git/git.example/o/r/prompts/hello.md"), /two/);
  assert.deepEqual(JSON.parse(world.read("agent/settings.json")).packages, ["https://git.example/o/r@main"]);

  world.write("agent/git/git.example/o/r/prompts/hello.md", "changed by hand");
  await world.commit("o/r", prompt("three"));
  const updated = await world.agentctl(["update"]);
  assert.match(updated.stdout, /^Updated https:\/\/git\.example\/o\/r@main [0-9a-f]{7} -> [0-9a-f]{7}\n$/, updated.stderr);
  assert.match(world.read("agent/git/git.example/o/r/prompts/hello.md"), /three/);
  assert.match((await world.agentctl(["update"])).stdout, /up to date/);

  assert.equal((await world.agentctl(["remove", "git:git.example/o/r"])).code, 0);
  assert.ok(world.exists("agent/git") && !world.exists("agent/git/git.example"));
});

test("a repository without a ref follows the default branch", async () => {
  await world.commit("o/r", prompt("one"));
  assert.equal((await world.agentctl(["install", "git:git.example/o/r"])).code, 0);
  await world.commit("o/r", prompt("two"));
  assert.match((await world.agentctl(["update", "git:git.example/o/r@other"])).stdout, /^Updated /);
  assert.match(world.read("agent/git/git.example/o/r/prompts/hello.md"), /two/);
});

test("a session installs what its settings name", async () => {
  await world.publish("tools", "1.0.0", prompt("x"));
  await world.commit("o/r", { "skills/s/SKILL.md": "---\nname: s\ndescription: does s\n---\nDo.\n" });
  const packages = ["npm:tools", "git:git.example/o/r", "npm:nowhere"];
  world.write("agent/settings.json", JSON.stringify({ packages }));
  const both = [{ type: "get_commands" }, { type: "get_diagnostics" }];

  const [without, told] = await world.session(both, ["--offline"]);
  assert.deepEqual(names(without), []);
  assert.equal(told.diagnostics.filter((it) => it.kind === "package" && it.level === "info").length, 3);
  assert.ok(!world.exists("agent/npm") && !world.exists("agent/git"));

  const [commands, { diagnostics }] = await world.session(both);
  assert.deepEqual(names(commands), ["hello", "skill:s"]);
  const [failure] = diagnostics.filter((it) => it.kind === "package");
  assert.equal(failure.level, "warning");
  assert.match(failure.message, /^Extension package "npm:nowhere": failed to install \(npm install nowhere (.|\n)*\)\.$/);
  assert.equal(failure.hint, 'Run "agentctl remove npm:nowhere" to remove it from settings.json.');
  // It is tried again, and then it is there.
  await world.publish("nowhere", "1.0.0", { "prompts/late.md": "x\n" });
  const [later] = await world.session(both);
  assert.deepEqual(names(later), ["hello", "late", "skill:s"]);
});

test("a project's packages need its trust", async () => {
  await world.publish("tools", "1.0.0", prompt("x"));
  world.write("project/.pi/settings.json", '{"packages": ["npm:tools"]}');
  const [untrusted] = await world.session([{ type: "get_commands" }]);
  assert.deepEqual(names(untrusted), []);
  assert.ok(!world.exists("project/.pi/npm"));
  const refused = await world.agentctl(["install", "--local", "npm:tools"]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /Project is not trusted\. Use --approve/);
  const [trusted] = await world.session([{ type: "get_commands" }], ["--approve"]);
  assert.deepEqual(names(trusted), ["hello"]);
  assert.ok(world.exists("project/.pi/npm/node_modules/tools"));
  const removed = await world.agentctl(["remove", "--local", "--approve", "npm:tools"]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.deepEqual(JSON.parse(world.read("project/.pi/settings.json")), { packages: [] });
});

test("a package of a flag is kept apart and kept up to date", async () => {
  await world.publish("tools", "1.0.0", { "prompts/one.md": "x\n" });
  const [first] = await world.session([{ type: "get_commands" }], ["-e", "npm:tools"]);
  assert.deepEqual(names(first), ["one"]);
  assert.equal(first.commands[0].sourceInfo.scope, "temporary");
  assert.ok(!world.exists("agent/npm") && world.exists("agent/tmp/extensions/npm"));
  await world.publish("tools", "1.1.0", { "prompts/two.md": "x\n" });
  const [second] = await world.session([{ type: "get_commands" }], ["-e", "npm:tools"]);
  assert.deepEqual(names(second), ["two"]);
  const [offline] = await world.session([{ type: "get_commands" }], ["-e", "npm:tools", "--offline"]);
  assert.deepEqual(names(offline), ["two"]);
});
