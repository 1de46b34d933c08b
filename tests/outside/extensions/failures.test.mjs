// Extensions that crash, hang, flood or are killed: they cost their own tools and handlers, gates fail closed, and nothing is left.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { promisify } from "node:util";

import { connect } from "../node/client.mjs";
import { call, ending, failures, gone, hosts, killHost, results, script, watched, withExtensions, write } from "./own.mjs";

const run = promisify(execFile);

/// A tool whose body is `body`, and the rest of the factory.
const tool = (name, body, more = "") => `
  export default function (pi) {
    pi.registerTool({
      name: "${name}", label: "${name}", description: "A tool", parameters: { type: "object", properties: {} },
      async execute(id, params, signal, onUpdate, ctx) { ${body} },
    });
    ${more}
  }`;

/// A handler of `event` whose body is `body`, beside a tool of its own, which tells that it works again.
const handler = (event, body) => tool("echo", `return { content: [{ type: "text", text: "said" }], details: {} };`, `
  pi.on("${event}", async (event, ctx) => { ${body} });`);

const bash = (place) => script(place, [call("bash", { command: "touch ran" })], [{ text: "Done." }]);

/// Whether the command of `bash` ran.
const ran = (place) => {
  try {
    readFileSync(place.at("project/ran"));
    return true;
  } catch {
    return false;
  }
};

const loading = [
  ["an exit while it is imported", `process.exit(4); export default function () {}`, /Extension host exited \(code 4\)/],
  ["an exit in the factory", `export default function () { process.exit(5); }`, /Extension host exited \(code 5\)/],
  ["an exit in the factory after a wait", `export default async function () { await null; setImmediate(() => process.exit(6)); await new Promise(() => {}); }`, /Extension host exited \(code 6\)/],
  ["an error in the factory", `export default function () { throw new Error("no luck"); }`, /Failed to load extension: no luck/],
  ["an import that is not there", `import "not-installed-anywhere"; export default function () {}`, /not-installed-anywhere/],
  ["no factory", `export const nothing = 1;`, /Extension does not export a valid factory function: /],
  ["what cannot be parsed", `export default function ( {`, /Failed to load extension: /],
];

const crashes = [
  {
    name: "an exit in a gate blocks the call", body: handler("tool_call", `if (event.toolName === "bash") process.exit(7);`),
    first: [true, 'Extension host exited (code 7) while running "bash"'],
  },
  {
    name: "an exit during the dialog of a gate blocks the call, and withdraws the dialog",
    body: handler("tool_call", `if (event.toolName !== "bash") return; setImmediate(() => process.exit(8)); await ctx.ui.confirm("May it?", "The call");`),
    first: [true, 'Extension host exited (code 8) while running "bash"'],
  },
  {
    name: "an exit in a tool fails its call", body: tool("bash", `process.exit(9);`),
    first: [true, 'Extension host exited (code 9) while running "bash"'],
  },
  {
    name: "an exit in a handler that changes a result keeps the result",
    body: handler("tool_result", `process.exit(10);`), first: [false, "(no output)"], runs: true,
  },
  {
    name: "an exit in a handler of the context keeps the context",
    body: handler("context", `if (globalThis.seen) process.exit(11); globalThis.seen = true;`), first: [false, "(no output)"], runs: true,
  },
  {
    name: "an exit in a notification is nobody's business", body: handler("turn_end", `process.exit(12);`),
    first: [false, "(no output)"], runs: true,
  },
  {
    name: "an unhandled rejection does not end the host",
    body: handler("tool_call", `Promise.reject(new Error("nobody waits"));`), first: [false, "(no output)"], runs: true, lives: true,
  },
];

const kills = [
  ["in a gate", handler("tool_call", `ctx.ui.notify("there"); await new Promise(() => {});`)],
  ["in the dialog of a gate", handler("tool_call", `ctx.ui.notify("there"); await ctx.ui.confirm("May it?", "The call");`)],
  ["in a tool", tool("bash", `ctx.ui.notify("there"); await new Promise(() => {});`)],
];

/// Waits for a record that fits.
const told = (client, fits) => new Promise((resolve) => client.listen((record) => fits(record) && resolve(record)));

const isThere = (record) => record.type === "extension_ui_request" && record.message === "there";

describe("loading", { concurrency: 2 }, () => {
  for (const [name, source, said] of loading) {
    test(`${name} is an error of the start, and --no-extensions helps`, async (t) => {
      const place = withExtensions(t, { "broken.ts": source });
      const { code, stderr } = await ending(place);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /Error: Failed to load extension "[^"]*broken\.ts": /);
      assert.match(stderr, said);
      await gone(place);
      const client = connect(place, ["--no-extensions"]);
      await client.prompt("hello");
      await client.end();
    });
  }

  test("a host that is killed while it loads is an error of the start", async (t) => {
    const place = withExtensions(t, { "slow.ts": `
      import { writeFileSync } from "node:fs";
      export default async function () { writeFileSync("gate", "here"); await new Promise(() => {}); }` });
    place.gate();
    const { code, stderr } = await ending(place, [], async () => {
      await run("cat", [place.at("project/gate")]);
      killHost(place);
    });
    assert.equal(code, 1, stderr);
    assert.match(stderr, /Extension host exited/);
    await gone(place);
  });

  test("a daemon that is killed while its host loads leaves nobody", async (t) => {
    const place = withExtensions(t, { "slow.ts": `
      import { writeFileSync } from "node:fs";
      export default async function () { writeFileSync("gate", "here"); await new Promise(() => {}); }` });
    place.gate();
    await ending(place, [], async (child) => {
      await run("cat", [place.at("project/gate")]);
      child.kill("SIGKILL");
    });
    await gone(place);
  });
});

describe("crashes", { concurrency: 2 }, () => {
  for (const { name, body, first, runs = false, lives = false } of crashes) {
    test(name, async (t) => {
      const place = withExtensions(t, { "crash.ts": body });
      bash(place);
      const client = connect(place);
      const records = watched(client);
      const exit = lives ? undefined : told(client, (record) => record.event === "host_exit");
      await client.prompt("go");
      assert.deepEqual(results(records), [first]);
      assert.equal(ran(place), runs, "whether the command ran");
      await exit;
      if (lives) assert.deepEqual(failures(records).filter(([event]) => event === "host_exit"), []);
      // No dialog is left to be answered.
      const asked = records.filter((record) => record.type === "extension_ui_request" && record.method === "confirm");
      if (asked.length > 0) {
        client.say({ type: "extension_ui_response", id: asked[0].id, confirmed: true });
        await client.done({ type: "get_state" });
        assert.equal(ran(place), false);
      }
      await client.end();
      await gone(place);
    });
  }

  test("a host that crashed is back for a later prompt, and its gate with it", async (t) => {
    const place = withExtensions(t, { "crash.ts": `
      import { existsSync, writeFileSync } from "node:fs";
      export default function (pi) {
        pi.on("session_start", (event, ctx) => ctx.ui.notify("started: " + event.reason));
        pi.on("tool_call", (event) => {
          if (existsSync("crashed")) return { block: true, reason: "I am back." };
          writeFileSync("crashed", "");
          process.exit(3);
        });
      }` });
    bash(place);
    const client = connect(place);
    const records = watched(client);
    const back = told(client, (record) => record.message === "started: reload");
    await client.prompt("go");
    await back;
    await client.prompt("go again");
    assert.deepEqual(results(records), [
      [true, 'Extension host exited (code 3) while running "bash"'], [true, "I am back."],
    ]);
    assert.equal(ran(place), false);
  });
});

describe("kill -9", { concurrency: 2 }, () => {
  for (const [where, source] of kills) {
    test(`of the host ${where}: the call fails, the run ends`, async (t) => {
      const place = withExtensions(t, { "wait.ts": source });
      bash(place);
      const client = connect(place);
      const records = watched(client, (record) => {
        if (isThere(record)) killHost(place);
      });
      await client.prompt("go");
      const [[isError, text]] = results(records);
      assert.equal(isError, true);
      assert.match(text, /^Extension host exited \(.*\) while running "bash"$/);
      assert.equal(ran(place), false);
      await client.end();
      await gone(place);
    });

    test(`of the daemon ${where}: nobody is left, and the session opens again`, async (t) => {
      const place = withExtensions(t, { "wait.ts": source });
      bash(place);
      const client = connect(place);
      const { sessionFile } = await client.done({ type: "get_state" });
      const there = told(client, isThere);
      await client.done({ type: "prompt", message: "go" });
      await there;
      assert.equal(hosts(place).length, 1);
      await client.kill();
      await gone(place);
      assert.equal(ran(place), false);
      const again = connect(place, ["--no-extensions", "--session", sessionFile]);
      const { messages } = await again.done({ type: "get_messages" });
      assert.ok(messages.some((message) => message.role === "user"), JSON.stringify(messages));
      await again.end();
    });
  }

  test("of the daemon with a child of an extension's: it ends as well", async (t) => {
    const place = withExtensions(t, { "child.ts": tool("child", `
      const { spawn } = await import("node:child_process");
      spawn("sleep", ["1000"], { stdio: "ignore" });
      ctx.ui.notify("there");
      await new Promise(() => {});`) });
    script(place, [call("child")], [{ text: "Done." }]);
    const client = connect(place);
    const there = told(client, isThere);
    await client.done({ type: "prompt", message: "go" });
    await there;
    await client.kill();
    await gone(place);
    const sleeping = execFileSync("ps", ["-eo", "args="], { encoding: "utf8" }).split("\n").filter((line) => line === "sleep 1000");
    assert.deepEqual(sleeping, []);
  });
});

describe("deadlines", { concurrency: true }, () => {
  test("a tool that does not stop after an abort is given up", { timeout: 60_000 }, async (t) => {
    const place = withExtensions(t, { "sleep.ts": tool("stubborn", `ctx.ui.notify("there"); await new Promise(() => {});`) });
    script(place, [call("stubborn")], [{ text: "Done." }]);
    const client = connect(place);
    const records = watched(client, (record) => {
      if (isThere(record)) client.send({ type: "abort" });
    });
    await client.prompt("go");
    assert.deepEqual(results(records), [[true, "Operation aborted"]]);
    await client.end();
    await gone(place);
  });

  test("a tool that stops after an abort says its own last word", async (t) => {
    const place = withExtensions(t, { "sleep.ts": tool("polite", `
      ctx.ui.notify("there");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return { content: [{ type: "text", text: "as you wish" }], details: {} };`) });
    script(place, [call("polite")], [{ text: "Done." }]);
    const client = connect(place);
    const records = watched(client, (record) => {
      if (isThere(record)) client.send({ type: "abort" });
    });
    await client.prompt("go");
    assert.deepEqual(results(records).map(([, text]) => text), ["as you wish"]);
  });

  test("a session_shutdown that never ends does not keep agentd", { timeout: 60_000 }, async (t) => {
    const place = withExtensions(t, { "sleep.ts": handler("session_shutdown", `await new Promise(() => {});`) });
    const client = connect(place);
    await client.prompt("hello");
    await client.end();
    await gone(place);
  });

  test("a session_shutdown that blocks the event loop does not keep agentd", { timeout: 60_000 }, async (t) => {
    const place = withExtensions(t, { "sleep.ts": handler("session_shutdown", `for (;;);`) });
    const client = connect(place);
    await client.prompt("hello");
    await client.end();
    await gone(place);
  });
});

describe("loads", { concurrency: 1 }, () => {
  // Partial results that come faster than they can be passed on are left out: each replaces the one before.
  test("10,000 partial results arrive in order, the last before the result", { timeout: 120_000 }, async (t) => {
    const place = withExtensions(t, { "flood.ts": tool("flood", `
      for (let i = 0; i < 10_000; i++) onUpdate({ content: [{ type: "text", text: String(i) }], details: { i } });
      return { content: [{ type: "text", text: "all" }], details: {} };`) });
    script(place, [call("flood")], [{ text: "Done." }]);
    const client = connect(place);
    const records = watched(client);
    await client.prompt("go");
    const seen = records.filter((record) => record.type === "tool_execution_update").map((record) => record.partialResult.details.i);
    assert.ok(seen.every((i, at) => at === 0 || i > seen[at - 1]), "not in order");
    assert.equal(seen.at(-1), 9_999);
    assert.deepEqual(results(records), [[false, "all"]]);
  });

  test("a transcript of 5 MB passes a context filter, and the model gets what that leaves", { timeout: 120_000 }, async (t) => {
    const place = withExtensions(t, { "filter.ts": handler("context", `
      ctx.ui.notify("filtering " + event.messages.length);
      return { messages: event.messages.slice(-1) };`) });
    const models = JSON.parse(readFileSync(place.at("agent/models.json"), "utf8"));
    for (const model of models.providers.script.models) model.contextWindow = 10_000_000;
    write(place, "agent/models.json", JSON.stringify(models));
    // One leading system message and the prompt: the rest is filtered.
    write(place, "script.json", JSON.stringify({ steps: [
      { when: { messages: 2, prompt: "go" }, emit: [{ text: "Filtered." }] },
      { when: { promptContains: "" }, emit: [{ fail: { message: "nothing was filtered", kind: "fatal" } }] },
    ] }));
    const line = (id, parentId, role, text) => JSON.stringify({
      type: "message", id, parentId, timestamp: "2026-01-01T00:00:00.000Z",
      message: role === "user" ? { role, content: text, timestamp: 1 } : {
        role, content: [{ type: "text", text }], api: "scripted", provider: "script", model: "one", stopReason: "stop", timestamp: 1,
        usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
      },
    });
    const lines = [JSON.stringify({ type: "session", version: 3, id: "0198a000-0000-7000-8000-000000000001", timestamp: "2026-01-01T00:00:00.000Z", cwd: place.project })];
    const id = (at) => at.toString(16).padStart(8, "0");
    for (let at = 1; at <= 1_000; at++) {
      lines.push(line(id(at), at === 1 ? null : id(at - 1), at % 2 ? "user" : "assistant", `${at} ${"five kilobytes ".repeat(340)}`));
    }
    write(place, "long.jsonl", `${lines.join("\n")}\n`);
    const client = connect(place, ["--session", place.at("long.jsonl")]);
    const records = watched(client);
    for (const turn of [0, 1, 2]) {
      await client.prompt("go");
      const said = records.filter((record) => record.type === "message_end" && record.message.role === "assistant").at(-1);
      assert.deepEqual(said.message.content.map((part) => part.text), ["Filtered."], JSON.stringify(said));
      assert.ok(records.some((record) => record.message === `filtering ${1_001 + 2 * turn}`), JSON.stringify(records.map((record) => record.message).filter((it) => typeof it === "string")));
    }
    assert.deepEqual(failures(records), []);
  });

  test("a dependency that imports what only the host has is loaded", async (t) => {
    const place = withExtensions(t, {
      "dependent/package.json": JSON.stringify({ name: "dependent", type: "module", pi: { extensions: ["./main.ts"] } }),
      "dependent/main.ts": `
        import { greet } from "dep";
        import old from "old-dep";
        export default function (pi) {
          pi.registerCommand("greet", { handler: async (args, ctx) => ctx.ui.notify(greet() + " " + old()) });
        }`,
      "dependent/node_modules/dep/package.json": JSON.stringify({ name: "dep", version: "1.0.0", type: "module", exports: "./index.js" }),
      "dependent/node_modules/dep/index.js": `
        import { StringEnum } from "@earendil-works/pi-ai";
        import { Type } from "typebox";
        export const greet = () => StringEnum(["hello"]).enum[0] + " " + Type.String().type;`,
      "dependent/node_modules/old-dep/package.json": JSON.stringify({ name: "old-dep", version: "1.0.0" }),
      "dependent/node_modules/old-dep/index.js": `
        const { visibleWidth } = require("@mariozechner/pi-tui");
        module.exports = () => String(visibleWidth("wide"));`,
    });
    const client = connect(place);
    const records = watched(client);
    await client.done({ type: "prompt", message: "/greet" });
    assert.ok(records.some((record) => record.message === "hello string 4"), JSON.stringify(records));
  });
});
