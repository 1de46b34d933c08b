// What extensions that kept their interface from before can do with it after their session was replaced or reloaded: nothing, and they are
// told so, in agentd as in pi.

import { readFileSync } from "node:fs";
import { test } from "node:test";

import { both } from "./conversation.mjs";
import { scripted } from "./model_server.mjs";

const source = `
  const kept = (globalThis.kept ??= []);
  const after = (globalThis.after ??= []);
  const tried = (name, use) => {
    try {
      return name + ": " + JSON.stringify(use());
    } catch (error) {
      return name + ": " + error.message;
    }
  };
  const all = ({ pi, ctx }) => [
    tried("getSessionName", () => pi.getSessionName()), tried("appendEntry", () => pi.appendEntry("late", 1)), tried("setLabel", () => pi.setLabel("00000000", "x")),
    tried("sendMessage", () => pi.sendMessage({ customType: "late", content: "late", display: true })), tried("getActiveTools", () => pi.getActiveTools()),
    tried("registerCommand", () => pi.registerCommand("late", { handler: async () => {} })), tried("on", () => typeof pi.on("input", () => {})),
    tried("cwd", () => typeof ctx.cwd), tried("isIdle", () => ctx.isIdle()), tried("entries", () => typeof ctx.sessionManager.getEntries()),
    tried("model", () => typeof ctx.model), tried("notify", () => ctx.ui.notify("late")), tried("abort", () => ctx.abort()),
  ];
  export default function (pi) {
    // pi tells of a session that an RPC command began twice.
    pi.on("session_start", (event, ctx) => {
      if (kept.at(-1)?.pi !== pi) kept.push({ pi, ctx });
    });
    pi.registerCommand("old", {
      handler: async (_args, ctx) => {
        ctx.ui.notify(kept.slice(-2, -1).flatMap(all).join("\\n"));
        ctx.ui.notify(after.splice(0).flat().join("\\n"));
      },
    });
    pi.registerCommand("replace", {
      handler: async (args, ctx) => {
        const [how, more] = args.split(" ");
        const user = ctx.sessionManager.getEntries().find((entry) => entry.message?.role === "user");
        const done = await { reload: () => ctx.reload(), new: () => ctx.newSession(), fork: () => ctx.fork(user.id), switch: () => ctx.switchSession(more) }[how]();
        // This frame goes on, with what it had.
        after.push([JSON.stringify(done), ...all({ pi, ctx })]);
      },
    });
  }`;

const what = {
  files: { "agent/extensions/keeper.ts": source }, answer: () => scripted([() => true, { text: "Well." }]),
};

const kinds = {
  "reload by a command": (client) => client.command("/replace reload"),
  "a new session by a command": (client) => client.command("/replace new"),
  "a fork by a command": (client) => client.command("/replace fork"),
  "another session by a command": (client, file) => client.command(`/replace switch ${file}`),
  "a new session by the client": (client) => client.done({ type: "new_session" }),
  "a fork by the client": async (client) => {
    const { messages } = await client.unrecorded({ type: "get_fork_messages" });
    await client.done({ type: "fork", entryId: messages[0].entryId });
  },
  "another session by the client": (client, file) => client.done({ type: "switch_session", sessionPath: file }),
};

for (const [kind, replace] of Object.entries(kinds)) {
  test(`what was kept is stale after ${kind}`, { timeout: 120_000 }, (t) => both(t, what, async (place) => {
    const client = place.start();
    await client.prompt("hello");
    const { sessionFile } = await client.unrecorded({ type: "get_state" });
    await client.done({ type: "new_session" });
    await client.prompt("hello");
    await replace(client, sessionFile);
    await client.unrecorded({ type: "get_state" });
    await client.command("/old");
    await client.prompt("on");
    return readFileSync(sessionFile, "utf8").includes('"late"');
  }));
}
