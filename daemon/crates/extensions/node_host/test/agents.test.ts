/** Agents that extensions open: their extensions, through a channel, and what is read of their sessions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultCore, extension, FakeDaemon, type Json } from "./fake_daemon.ts";

const OPENER = `import { createAgentSession, DefaultResourceLoader, SessionManager } from "@earendil-works/pi-coding-agent";
  ${extension(`
    const seen = [];
    pi.registerCommand("open", { async handler(args, ctx) {
      const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, noExtensions: true, extensionFactories: [
        { name: "one", factory: (api) => { api.on("tool_call", (event) => ({ block: true, reason: "no " + event.toolName })); } },
        { name: "two", factory: (api) => { api.registerTool({ name: "t", parameters: { type: "object" }, execute: async () => ({ content: [], details: {} }) }); } },
      ], extensionsOverride: (base) => ({ ...base, extensions: base.extensions.toReversed() }) });
      await resourceLoader.reload();
      const { session } = await createAgentSession({ cwd: ctx.cwd, resourceLoader, sessionManager: SessionManager.inMemory(ctx.cwd), tools: ["t"] });
      session.subscribe((event) => seen.push(event.type));
      globalThis.session = session;
    } });
    pi.registerCommand("prompt", { async handler() { await globalThis.session.prompt("Work."); } });
    pi.registerCommand("look", { async handler(args, ctx) {
      const s = globalThis.session;
      ctx.ui.notify(JSON.stringify({ model: s.model?.id, idle: s.isIdle, id: s.sessionId, messages: s.messages.map((m) => m.role), own: ctx.model?.id, seen, queue: s.getSteeringMessages() }));
    } });
    pi.registerCommand("dispose", { async handler() { globalThis.session.dispose(); } });
  `)}`;

/** A daemon whose session has the opener, and which opens what it is asked for. */
class OpeningDaemon {
  private next = 1;

  private constructor(readonly fake: FakeDaemon) {}

  static async start(entries: Json[] = []): Promise<OpeningDaemon> {
    const calls = {
      "agents.open": () => ({ agent: "A", sessionId: "agent" }),
      "agents.command": () => ({ disposition: "started" }),
      "agents.close": () => null,
    };
    const fake = await FakeDaemon.bound({ opener: OPENER }, { calls });
    const opening = new OpeningDaemon(fake);
    // Reads of the agent's session are answered through its channel.
    fake.always((record) => record["type"] === "channel" && (record["record"] as Json)["type"] === "call", (record) => {
      const call = record["record"] as Json;
      const topic = (call["params"] as Json)["topic"];
      const value = topic === "entries" ? { etag: "", value: { header: null, entries, leafId: entries.at(-1)?.["id"] ?? null } } : { etag: "", value: [] };
      opening.send({ type: "result", id: call["id"], ok: true, value });
    });
    return opening;
  }

  send(record: Json): void {
    this.fake.send({ type: "channel", channel: 1, record });
  }

  /** A request through the channel, and its value. */
  async request(type: string, fields: Json = {}): Promise<Json> {
    const id = this.next++;
    this.send({ id, type, ...fields });
    const answered = await this.fake.when((record) => record["type"] === "channel" && (record["record"] as Json)["type"] === "result" && (record["record"] as Json)["id"] === id);
    const { ok, value, error } = answered["record"] as Json;
    assert.equal(ok, true, JSON.stringify(error));
    return value as Json;
  }

  /** What the daemon does with a session that it opens. */
  async opened(): Promise<{ opened: Promise<unknown>; asked: Json }> {
    const opened = this.fake.command("open", "", "opener");
    const { params } = (await this.fake.whenCalled("agents.open")) as { params: Json };
    const cwd = String(params["cwd"]);
    const hello = { protocol: 1, daemon: {}, epoch: 1, sessionId: "agent", cwd, agentDir: cwd, configDirName: ".pi", mode: "print", hasUI: false, trusted: true, env: {}, limits: { maxLineBytes: 1 << 26, syncCallMs: 5000 }, cacheDir: cwd, ansi: true, features: [] };
    await this.request("hello", hello);
    const extensions = (params["extensions"] as Json[]).map((named, index) => ({ ...named, ext: `e${index}` }));
    await this.request("load", { epoch: 1, reason: "startup", clearCache: false, extensions, session: {} });
    await this.request("bind", { epoch: 1, flags: {}, core: { ...defaultCore(cwd), sessionId: "agent", model: { provider: "p", id: "of-agent" } } });
    return { opened, asked: params };
  }

  registrations(): Json[] {
    const inner = this.fake.notes("channel").map((note) => note["record"] as Json);
    return inner.filter((record) => record["type"] === "register");
  }

  async look(): Promise<Json> {
    const before = this.fake.notes("ui").length;
    await this.fake.command("look", "", "opener");
    return JSON.parse(String(this.fake.notes("ui")[before]?.["message"]));
  }
}

test("the extensions of an agent are loaded before its session, and register when the daemon loads them", async () => {
  const daemon = await OpeningDaemon.start();
  const { opened, asked } = await daemon.opened();
  await opened;
  assert.deepEqual((asked["extensions"] as Json[]).map(({ path }) => path), ["<inline:two>", "<inline:one>", "<sdk>"]);
  assert.deepEqual([asked["tools"], (asked["session"] as Json)["file"]], [["t"], undefined]);
  assert.deepEqual(daemon.registrations().map(({ ext, kind }) => [ext, kind]), [["e1", "handler"], ["e0", "tool"]]);
  const handler = daemon.registrations()[0]?.["h"];
  const { returns } = await daemon.request("hook", { epoch: 1, handlers: [handler], event: { type: "tool_call", toolName: "bash", input: {} } });
  assert.deepEqual(returns, [{ h: handler, value: { block: true, reason: "no bash" } }]);
  await daemon.fake.stop();
});

test("its state is that of its session, and events of it come in their order", async () => {
  const entries = [{ type: "message", id: "a", parentId: null, timestamp: "t", message: { role: "user", content: "hi", timestamp: 1 } }];
  const daemon = await OpeningDaemon.start(entries);
  await (await daemon.opened()).opened;
  for (const type of ["agent_start", "queue_update", "permission_decision"]) {
    daemon.fake.send({ type: "agents.event", agent: "A", event: { type, steering: ["s"], followUp: [] } });
  }
  daemon.send({ type: "state", seq: 1, topic: "core", patch: { idle: false } });
  const looked = await daemon.look();
  assert.deepEqual(looked, { model: "of-agent", idle: false, id: "agent", messages: ["user"], own: "m1", seen: ["agent_start", "queue_update"], queue: ["s"] });
  // A patch of each session that comes while a read of the other blocks is applied.
  daemon.fake.core({ model: { provider: "p", id: "m2" } });
  daemon.send({ type: "state", seq: 2, topic: "core", patch: { idle: true } });
  assert.deepEqual([(await daemon.look())["own"], (await daemon.look())["idle"]], ["m2", true]);
  await daemon.fake.stop();
});

test("a session that has ended keeps what was known of it, and takes no prompt", async () => {
  const daemon = await OpeningDaemon.start();
  await (await daemon.opened()).opened;
  daemon.fake.send({ type: "agents.ended", agent: "A", reason: "the daemon is tired" });
  await assert.rejects(daemon.fake.command("prompt", "", "opener"), /The session of this agent has ended: the daemon is tired/);
  assert.equal((await daemon.look())["model"], "of-agent");
  await daemon.fake.stop();
});

test("the end of the channel does not end the process", async () => {
  const daemon = await OpeningDaemon.start();
  await (await daemon.opened()).opened;
  assert.equal(await daemon.request("shutdown", { deadlineMs: 1000 }), null);
  daemon.fake.send({ type: "channel.close", channel: 1 });
  await daemon.fake.command("dispose", "", "opener");
  assert.equal(await daemon.fake.request("ping"), null);
  await daemon.fake.stop();
});
