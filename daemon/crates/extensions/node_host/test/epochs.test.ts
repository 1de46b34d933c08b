import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallHandler, extension, FakeDaemon, type Json, RemoteError } from "./fake_daemon.ts";

const STALE = /^This extension ctx is stale after session replacement or reload\./;

/** Keeps what an extension got in an old epoch. */
const KEEPER = `
  globalThis.kept ??= [];
  pi.on('keep', (event, ctx) => { globalThis.kept.push({ pi, ctx }); });
  pi.on('use', async () => {
    const { pi, ctx } = globalThis.kept[0];
    const uses = {
      ui: () => ctx.ui, model: () => ctx.model, signal: () => ctx.signal, idle: () => ctx.isIdle(), session: () => ctx.sessionManager,
      on: () => pi.on('x', () => {}), send: () => pi.sendMessage({}), append: () => pi.appendEntry('x'), flag: () => pi.getFlag('x'), emit: () => pi.events.emit('x'), exec: () => pi.exec('true', []), setModel: () => pi.setModel({}),
    };
    const texts = {};
    for (const [name, use] of Object.entries(uses)) {
      try { await use(); texts[name] = 'worked'; } catch (error) { texts[name] = error.message; }
    }
    return texts;
  });`;

async function replace(daemon: FakeDaemon, sources: Record<string, string>, reason = "new", fields: Json = {}): Promise<void> {
  await daemon.request("unload", { epoch: daemon.epoch, reason });
  daemon.epoch++;
  await daemon.load(sources, { reason, ...fields });
  await daemon.bind();
}

for (const reason of ["new", "resume", "fork", "reload"]) {
  test(`old pi and ctx throw after ${reason}`, async () => {
    const daemon = await FakeDaemon.bound({ one: extension(KEEPER) });
    await daemon.hook({ type: "keep" });
    await replace(daemon, { one: extension(KEEPER) }, reason, { clearCache: reason === "reload" });
    const texts = (await daemon.hook({ type: "use" }))[0]?.["value"] as Record<string, string>;
    for (const [name, text] of Object.entries(texts)) assert.match(text, STALE, name);
    await daemon.stop();
  });
}

test("requests of an old epoch are refused as stale", async () => {
  const daemon = await FakeDaemon.bound({ one: extension("pi.on('x', () => 1); pi.registerCommand('c', { handler() {} });") });
  const handlers = daemon.handlersOf("x");
  await replace(daemon, {});
  const stale = (error: RemoteError) => error.code === "stale" && STALE.test(error.message);
  await assert.rejects(daemon.request("hook", { epoch: 1, handlers, event: { type: "x" } }), stale);
  await assert.rejects(daemon.request("command.run", { epoch: 1, name: "c", ext: "one", args: "" }), stale);
  await daemon.stop();
});

test("a call that the daemon refuses as stale throws pi's text", async () => {
  const refuse: CallHandler = () => {
    throw new RemoteError("stale", "stale");
  };
  const daemon = await FakeDaemon.bound({ one: extension("pi.on('x', () => { try { pi.appendEntry('a'); } catch (error) { return error.message; } });") }, { calls: { "session.appendEntry": refuse } });
  assert.match(String((await daemon.hook({ type: "x" }))[0]?.["value"]), STALE);
  await daemon.stop();
});

test("subscriptions of the event bus end with their epoch", async () => {
  const body = "pi.events.on('ch', () => { globalThis.heard = (globalThis.heard ?? 0) + 1; }); pi.on('x', () => { globalThis.heard = 0; pi.events.emit('ch'); return globalThis.heard; });";
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  await replace(daemon, { one: extension(body) });
  assert.equal((await daemon.hook({ type: "x" }))[0]?.["value"], 1);
  await daemon.stop();
});

test("mirrors of the old session are forgotten", async () => {
  const sessions = [
    { entries: [{ type: "custom", id: "old", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" }], leafId: "old" },
    { entries: [], leafId: null },
  ];
  let session = 0;
  const body = "pi.on('x', (event, ctx) => [ctx.sessionManager.getLeafId(), String(ctx.signal)]);";
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { read: () => ({ etag: "1", value: { header: null, ...sessions[session] } }) } });
  daemon.core({ run: { id: 1 } });
  assert.deepEqual((await daemon.hook({ type: "x" }))[0]?.["value"], ["old", "[object AbortSignal]"]);
  session = 1;
  await replace(daemon, { one: extension(body) });
  assert.deepEqual((await daemon.hook({ type: "x" }))[0]?.["value"], [null, "undefined"]);
  await daemon.stop();
});

/** A daemon that replaces its session as the protocol says. */
const replacing =
  (source: string): CallHandler =>
  async ({ setup, withSession }, _call, daemon) => {
    await replace(daemon, { one: source });
    const seed = { header: { type: "session", id: "s2", cwd: "/w" }, entries: [{ type: "model_change", id: "m1", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" }], leafId: "m1" };
    if (setup !== undefined) (daemon as FakeDaemon & { setUp?: unknown }).setUp = await daemon.request("ops.call", { cb: setup, args: [seed] });
    if (withSession !== undefined) await daemon.request("ops.call", { cb: withSession, args: [] });
    return { cancelled: false };
  };

test("newSession fills the new session, runs withSession with a new ctx, and then resolves", async () => {
  const source = extension(`pi.registerCommand('go', { async handler(args, ctx) {
    const order = [];
    const result = await ctx.newSession({
      parentSession: '/parent',
      async setup(sm) { order.push('setup', sm.getSessionId(), sm.getLeafId()); const id = sm.appendMessage({ role: 'user', content: 'hi' }); sm.appendCustomEntry('t', { a: 1 }); sm.appendLabelChange(id, 'start'); sm.appendSessionInfo('a\\nb'); },
      async withSession(next) { order.push('with'); await next.sendMessage({ customType: 'c', content: 'm', display: true }); await next.sendUserMessage('u'); next.ui.notify(order.join()); },
    });
    let old; try { ctx.ui; } catch (error) { old = error.message.slice(0, 30); }
    console.error('resolved', JSON.stringify(result), old);
  } });`);
  const accept: CallHandler = () => ({ disposition: "started" });
  const daemon = await FakeDaemon.bound({ one: source }, { calls: { "session.new": replacing(source), "session.sendMessage": accept, "session.sendUserMessage": accept } });
  await daemon.command("go", "", "one");
  await daemon.whenPrinted('resolved {"cancelled":false} This extension ctx is stale af');
  assert.equal(daemon.notes("ui")[0]?.["message"], "setup,s2,m1,with");
  assert.deepEqual(daemon.callsOf("session.sendUserMessage").map((call) => [call["epoch"], (call["params"] as Json)["wait"]]), [[2, true]]);
  assert.equal((daemon.callsOf("session.new")[0]?.["params"] as Json)["parentSession"], "/parent");
  const { entries, leafId } = (daemon as FakeDaemon & { setUp?: { entries: Json[]; leafId: string } }).setUp ?? { entries: [], leafId: "" };
  assert.deepEqual(entries.map((one) => one["type"]), ["message", "custom", "label", "session_info"]);
  assert.deepEqual(entries.map((one) => one["parentId"]), ["m1", entries[0]?.["id"], entries[1]?.["id"], entries[2]?.["id"]]);
  assert.equal(entries[3]?.["name"], "a b");
  assert.equal(leafId, entries[3]?.["id"]);
  assert.match(String(entries[0]?.["id"]), /^[0-9a-f]{8}$/);
  await daemon.stop();
});

test("the other commands of the session cross with their parameters, and refusals reject", async () => {
  const body = `pi.registerCommand('go', { async handler(args, ctx) {
    await ctx.waitForIdle(); await ctx.fork('e1', { position: 'at' }); await ctx.switchSession('/s.jsonl'); await ctx.navigateTree('e2', { summarize: true, label: 'l' });
    const options = ctx.getSystemPromptOptions();
    try { await ctx.reload(); } catch (error) { console.error('reload:', error.message, error.code, JSON.stringify(options), ctx.getSystemPrompt()); }
  } });`;
  const cancelled: CallHandler = () => ({ cancelled: true });
  const refuse: CallHandler = () => {
    throw new RemoteError("busy", "not_in_command");
  };
  const daemon = await FakeDaemon.bound(
    { one: extension(body) },
    {
      calls: {
        "session.waitIdle": () => null,
        "session.fork": cancelled,
        "session.switch": cancelled,
        "session.navigate": cancelled,
        "session.reload": refuse,
        "read.promptOptions": () => ({ cwd: "/" }),
        read: () => ({ etag: "1", value: { systemPrompt: "sp" } }),
      },
    },
  );
  const run = daemon.command("go", "", "one");
  await run;
  await daemon.whenPrinted('reload: busy not_in_command {"cwd":"/"} sp');
  assert.deepEqual(daemon.callsOf("session.fork")[0]?.["params"], { entryId: "e1", position: "at" });
  assert.deepEqual(daemon.callsOf("session.navigate")[0]?.["params"], { targetId: "e2", summarize: true, label: "l" });
  assert.equal(daemon.callsOf("session.switch")[0]?.["within"], run.id);
  await daemon.stop();
});
