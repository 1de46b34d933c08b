import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { extension, FakeDaemon } from "./fake_daemon.ts";

const CRASHES: [string, string, (daemon: FakeDaemon) => Promise<unknown>][] = [
  ["a gate", "pi.on('tool_call', () => process.exit(9));", (daemon) => daemon.hook({ type: "tool_call", input: {} })],
  ["a tool", "pi.registerTool({ name: 't', label: '', description: '', parameters: {}, execute() { process.exit(9); } });", (daemon) => daemon.tool("t")],
  ["a dialog", "pi.registerCommand('c', { async handler(args, ctx) { setTimeout(() => process.exit(9), 1); await ctx.ui.confirm('t', 'm'); } });", (daemon) => daemon.command("c", "", "one")],
];

for (const [place, body, run] of CRASHES) {
  test(`process.exit in ${place} ends the host with its code`, async () => {
    const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { "ui.confirm": () => new Promise(() => {}) } });
    run(daemon).catch(() => {});
    assert.equal(await daemon.exited, 9);
  });
}

test("a dependency of an extension finds the host's modules, though it has none of its own", async () => {
  const daemon = await FakeDaemon.greeted();
  const folder = join(daemon.folder, "node_modules", "dep");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"name":"dep","version":"1.0.0","type":"module","exports":"./index.js"}');
  writeFileSync(join(folder, "index.js"), "import { CONFIG_DIR_NAME } from '@earendil-works/pi-coding-agent'; export const name = 'dep' + CONFIG_DIR_NAME;");
  const common = join(daemon.folder, "node_modules", "common");
  mkdirSync(common, { recursive: true });
  writeFileSync(join(common, "package.json"), '{"name":"common","version":"1.0.0","main":"index.js"}');
  writeFileSync(join(common, "index.js"), "module.exports = { name: 'common' };");
  const source = `import { name } from 'dep'; import common from 'common';\n${extension("pi.registerCommand(name + common.name, { handler() {} });")}`;
  const { extensions } = await daemon.load({ one: source });
  assert.equal(extensions[0]?.error, undefined);
  assert.equal(daemon.registered("command")[0]?.["name"], "dep.picommon");
  await daemon.stop();
});

test("a host without a bound session reports what nobody caught", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ one: extension("setTimeout(() => { throw new Error('early'); });") });
  const note = await daemon.when((record) => record["type"] === "error");
  assert.deepEqual([note["event"], note["message"], note["ext"]], ["uncaught", "early", "one"]);
  await daemon.stop();
});

test("a value of the bus without a JSON form stays in its host", async () => {
  const body = "pi.on('x', () => { const loop = {}; loop.loop = loop; pi.events.emit('a', loop); pi.events.emit('b', 1); });";
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { hello: { features: ["bus"] } });
  await daemon.hook({ type: "x" });
  assert.deepEqual(daemon.notes("bus.emit").map(({ channel, data }) => [channel, data]), [["b", 1]]);
  await daemon.stop();
});

test("an event of another host reaches handlers of the bus", async () => {
  const daemon = await FakeDaemon.bound({ one: extension("pi.events.on('far', (data) => console.error('heard', data.n));") }, { hello: { features: ["bus"] } });
  daemon.send({ type: "bus", channel: "far", data: { n: 7 }, from: "other" });
  await daemon.whenPrinted("heard 7");
  assert.equal(daemon.notes("bus.emit").length, 0);
  await daemon.stop();
});
