import assert from "node:assert/strict";
import { test } from "node:test";
import { LineSplitter } from "../src/connection/framing.ts";
import { extension, FakeDaemon, RemoteError } from "./fake_daemon.ts";

test("lines are split at LF, whatever the chunks", () => {
  const text = 'eins\n{"zwei":"ü"}\n\ndrei\nrest';
  const bytes = Buffer.from(text);
  for (let size = 1; size <= bytes.length; size++) {
    const splitter = new LineSplitter(100);
    const lines: string[] = [];
    for (let at = 0; at < bytes.length; at += size) splitter.push(bytes.subarray(at, at + size), (line) => lines.push(line));
    assert.deepEqual(lines, ["eins", '{"zwei":"ü"}', "drei"]);
  }
});

test("a line over the limit is refused before it is complete", () => {
  const splitter = new LineSplitter(8);
  assert.throws(() => splitter.push(Buffer.from("123456789"), () => {}), /longer than 8 bytes/);
});

test("the greeting names the host and its runtime", async () => {
  const daemon = FakeDaemon.start();
  const value = (await daemon.hello()) as { protocol: number; host: { runtime: string; pid: number } };
  assert.equal(value.protocol, 1);
  assert.match(value.host.runtime, /^node v\d+/);
  assert.equal(value.host.pid, daemon.child.pid);
  assert.equal(await daemon.request("ping"), null);
  await daemon.stop();
});

test("two pipes serve as the connection", async () => {
  const daemon = await FakeDaemon.bound({ one: extension("pi.on('x', () => pi.getActiveTools());") }, { transport: "pipes" });
  assert.deepEqual((await daemon.hook({ type: "x" }))[0]?.["value"], ["read", "bash"]);
  daemon.disconnect();
  assert.equal(await daemon.exited, 0);
});

test("a wrong descriptor is named", async () => {
  const daemon = FakeDaemon.start({ env: { AGENTD_HOST_FD: "x" } });
  assert.equal(await daemon.exited, 70);
  assert.match(daemon.stderr, /AGENTD_HOST_FD must be/);
});

test("the end of the connection ends the process with code 0", async () => {
  const daemon = await FakeDaemon.greeted();
  daemon.disconnect();
  assert.equal(await daemon.exited, 0);
});

test("the end of the connection ends a process that is blocked in a loop", async () => {
  const daemon = await FakeDaemon.bound({ busy: extension("pi.registerCommand('busy', { handler() { pi.appendEntry('now'); for (;;); } });") }, {
    calls: { "session.appendEntry": () => "e1" },
  });
  daemon.command("busy").catch(() => {});
  await daemon.whenCalled("session.appendEntry");
  daemon.disconnect();
  assert.equal(await daemon.exited, "SIGKILL");
});

test("the end of the connection ends a process that waits for an answer", async () => {
  const daemon = await FakeDaemon.bound({ wait: extension("pi.registerCommand('wait', { handler() { pi.appendEntry('x'); } });") }, {
    calls: { "session.appendEntry": () => new Promise(() => {}) },
  });
  daemon.command("wait").catch(() => {});
  await daemon.whenCalled("session.appendEntry");
  daemon.disconnect();
  assert.equal(await daemon.exited, 0);
});

test("SIGTERM ends the process", async () => {
  const daemon = await FakeDaemon.greeted();
  daemon.child.kill("SIGTERM");
  assert.equal(await daemon.exited, "SIGTERM");
});

test("shutdown answers, then ends the process with code 0", async () => {
  const daemon = await FakeDaemon.greeted();
  assert.equal(await daemon.request("shutdown", { deadlineMs: 1000 }), null);
  assert.equal(await daemon.exited, 0);
});

test("a line that is not JSON is a violation", async () => {
  const daemon = await FakeDaemon.greeted();
  daemon.sendRaw("nonsense\n");
  assert.equal(await daemon.exited, 70);
  assert.match(daemon.stderr, /not JSON/);
});

test("a request of an unknown type is refused, an unknown note is ignored", async () => {
  const daemon = await FakeDaemon.greeted();
  daemon.send({ type: "news" });
  await assert.rejects(daemon.request("dance"), (error: RemoteError) => error.code === "unsupported");
  await daemon.stop();
});

test("standard input and output serve as the connection, and prints go to standard error", async () => {
  const daemon = await FakeDaemon.greeted({ transport: "stdio" });
  const source = extension("console.log('printed'); process.stdout.write('written\\n');");
  const { extensions } = await daemon.load({ print: source });
  assert.deepEqual(extensions.map((one) => one.error), [undefined]);
  await daemon.request("shutdown");
  assert.equal(await daemon.exited, 0);
  assert.match(daemon.stderr, /printed\nwritten/);
});

test("an answer over the limit becomes an error with the code too_large", async () => {
  const daemon = await FakeDaemon.bound(
    { big: extension("pi.registerTool({ name: 'big', label: 'b', description: 'b', parameters: { type: 'object' }, execute: async () => ({ content: [{ type: 'text', text: 'x'.repeat(70000) }] }) });") },
    { hello: { limits: { maxLineBytes: 65536, syncCallMs: 5000 } } },
  );
  await assert.rejects(daemon.tool("big"), (error: RemoteError) => error.code === "too_large");
  assert.equal(await daemon.request("ping"), null);
  await daemon.stop();
});

test("a host that is not read from stops its extension instead of buffering without limit", async () => {
  const body = `pi.registerCommand('flood', { handler(args, ctx) {
    for (let i = 0; i < 100; i++) { ctx.ui.setTitle('x'.repeat(1 << 20)); console.error('sent', i); }
  } });`;
  const daemon = await FakeDaemon.bound({ flood: extension(body) });
  daemon.stopReading();
  const flood = daemon.command("flood");
  await daemon.whenPrinted("sent 20");
  const finished = await Promise.race([daemon.whenPrinted("sent 99"), deadline(500)]);
  assert.equal(finished, "deadline", "the extension went on although nobody read");
  daemon.resumeReading();
  await flood;
  assert.equal(daemon.notes("ui").length, 100);
  await daemon.stop();
});

/** For what must not happen. */
function deadline(milliseconds: number): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve("deadline"), milliseconds));
}

test("records that wait for a blocked host are not lost and keep their order", async () => {
  const body = `
    const seen = [];
    pi.on('turn_start', (event) => { seen.push(event.turnIndex); });
    pi.registerCommand('block', { handler() { pi.appendEntry('blocking'); const end = Date.now() + 300; while (Date.now() < end); } });
    pi.registerCommand('seen', { handler() { pi.appendEntry('seen', { seen, length: seen.length }); } });`;
  const daemon = await FakeDaemon.bound({ order: extension(body) }, { calls: { "session.appendEntry": () => "e" } });
  const blocked = daemon.command("block", "", "order");
  await daemon.whenCalled("session.appendEntry");
  // 40 MiB: more than the connection's thread takes while the main thread is behind.
  const padding = "p".repeat(1 << 18);
  const hooks = Array.from({ length: 160 }, (_, turnIndex) => daemon.hook({ type: "turn_start", turnIndex, padding }));
  await blocked;
  await Promise.all(hooks);
  await daemon.command("seen", "", "order");
  const last = daemon.callsOf("session.appendEntry").at(-1)?.["params"] as { data: { seen: number[] } };
  assert.deepEqual(last.data.seen, Array.from({ length: 160 }, (_, i) => i));
  await daemon.stop();
});
