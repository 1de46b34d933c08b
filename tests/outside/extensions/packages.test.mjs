// Published packages, unchanged and with all that they depend on, in agentd and in pi.

import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { both, call, dialogs } from "./conversation.mjs";
import { scripted } from "./model_server.mjs";
import { packages } from "../node/support.mjs";

const installed = (name) => join(packages, "extension-targets/node_modules", name);
const here = dirname(fileURLToPath(import.meta.url));

/// One call after the other, then an answer.
const calls = (prompt, ...list) => [prompt, (asked) => {
  const next = list[asked.results];
  return next === undefined ? { text: "Done." } : { calls: [call(`c${asked.results}`, next.name, typeof next.args === "function" ? next.args(asked) : next.args)] };
}];
const use = (name, args) => ({ name, args });

test("pi-mcp-adapter", async (t) => {
  const server = { command: process.execPath, args: [join(here, "mcp_server.mjs")] };
  const what = (servers, settings = {}) => ({
    extensions: [installed("pi-mcp-adapter")],
    files: { "servers.json": JSON.stringify({ settings: { hostConfigDiscovery: "off", ...settings }, mcpServers: servers }) },
  });
  const config = (place) => ["--mcp-config", place.at("servers.json")];
  /// The servers are connected while the session is there already.
  const connected = (client) => client.event((record) => record.statusText?.includes("(1 connected)"));

  await t.test("through its own tool", (t) => both(t, {
    ...what({ numbers: server }),
    answer: () => scripted(calls(
      "go", use("mcp", {}), use("mcp", { search: "add" }), use("mcp", { describe: "numbers_add" }), use("mcp", { tool: "numbers_add", args: { a: 1, b: 2 } }),
      use("mcp", { tool: "numbers_add", args: '{"a": 3, "b": 4}' }), use("mcp", { tool: "numbers_fail", args: {} }), use("mcp", { tool: "none" }),
    )),
  }, async (place) => {
    const client = place.start(config(place), dialogs({ select: { cancelled: true }, confirm: { confirmed: false } }));
    await connected(client);
    await client.done({ type: "get_commands" });
    await client.prompt("go");
    await client.command("/mcp status");
    await client.command("/mcp tools");
    await client.command("/mcp reconnect numbers");
    await client.command("/mcp");
  }));

  await t.test("with tools of its servers, which come when they are known", (t) => both(t, {
    ...what({ numbers: { ...server, lifecycle: "eager", directTools: true } }),
    answer: () => scripted(calls("go", use("numbers_add", { a: 1, b: 2 }), use("numbers_add", { a: "x" }), use("numbers_fail", {}))),
  }, async (place) => {
    const first = place.start(config(place));
    await connected(first);
    await first.done({ type: "get_commands" });
    await first.prompt("well");
    await first.end();
    const again = place.start(config(place));
    await connected(again);
    await again.done({ type: "get_commands" });
    await again.prompt("go");
  }));

  await t.test("a flag without its value", (t) => both(t, { ...what({}), answer: () => scripted() }, async (place) => {
    const client = place.start(["--mcp-config"]);
    return [await client.exited, client.stderr().split("\n").filter((line) => line.includes("mcp-config"))];
  }));
});

test("pi-web-access", async (t) => {
  const html = (title, text) => ({ type: "text/html", body: `<!doctype html><html><head><title>${title}</title></head><body><article><h1>${title}</h1><p>${text.repeat(30)}</p></article></body></html>` });
  const pages = {
    "/one": html("One", "The first page speaks of <b>apples</b>. "), "/two": html("Two", "The second page speaks of pears. "),
    "/plain": { type: "text/plain", body: "Only text.\n" },
  };
  const found = (url) => ["one", "two"].map((name) => ({ title: `Page ${name}`, url: `${url}/${name}`, content: `What is on page ${name}.` }));
  const page = (path, url) => (path.startsWith("/search") ? { type: "application/json", body: JSON.stringify({ results: found(url) }) } : pages[path]);
  const what = {
    extensions: [installed("pi-web-access")], page,
    wanted: [{ why: "searches that run at the same time end in any order", change: (record) => (record.type === "tool_execution_update" && record.toolName === "web_search" ? undefined : record) }],
    masks: [[/\b[0-9a-z]{14}\b/g, "results"], [/\[[0-9a-z]{6}\]/g, "<results>"]],
    files: { "agent/web-search.json": (url) => JSON.stringify({ searxngBaseUrl: url, provider: "searxng", workflow: "none", ssrf: { allowRanges: ["127.0.0.0/8"] } }) },
  };
  /// The number that the extension has given to the last results.
  const lastId = (asked) => [...JSON.stringify(asked.body.messages).matchAll(/responseId[^0-9a-z]{1,12}([0-9a-z]{12,16})\b/g)].at(-1)?.[1] ?? "none";

  await t.test("searches, fetches, and remembers", (t) => both(t, {
    ...what,
    answer: () => scripted(calls(
      "go", use("web_search", { query: "fruit", workflow: "none" }), use("web_search", { queries: ["apples", "pears"], numResults: 1 }), use("web_search", {}),
      use("fetch_content", ({ web }) => ({ url: `${web}/one` })), use("get_search_content", (asked) => ({ responseId: lastId(asked), urlIndex: 0, findText: "apples" })),
      use("fetch_content", ({ web }) => ({ urls: [`${web}/two`, `${web}/plain`, `${web}/missing`] })), use("fetch_content", ({ web }) => ({ url: `${web}/plain`, mode: "raw" })),
      use("get_search_content", { responseId: "nothing" }), use("fetch_content", { url: "http://localhost:1/" }),
    ), calls("again", use("get_search_content", (asked) => ({ responseId: lastId(asked), urlIndex: 1 })))),
  }, async (place) => {
    const client = place.start();
    await client.done({ type: "get_commands" });
    await client.prompt("go");
    const { sessionFile } = await client.done({ type: "get_state" });
    await client.end();
    // What was found is built again from the session.
    const again = place.start(["--session", sessionFile], dialogs({ select: { cancelled: true } }));
    await again.prompt("again");
    await again.command("/search");
  }));

  await t.test("answers a question about a page by a model", (t) => both(t, {
    ...what,
    answer: () => scripted(
      [({ prompt }) => prompt.includes("The first page"), { text: "Of apples." }],
      calls("go", use("fetch_content", ({ web }) => ({ url: `${web}/one`, mode: "answer", prompt: "What does it speak of?" }))),
    ),
  }, async (place) => {
    const client = place.start();
    await client.prompt("go");
  }));
});

test("pi-subagents", async (t) => {
  const what = {
    extensions: [installed("pi-subagents")],
    wanted: [
      { why: "what handlers of session_shutdown show is told to nobody: the client has gone", change: (record) => (record.widgetKey === "subagent-async" ? undefined : record) },
      { why: "how often it tells of the work of its agent is a matter of time", change: (record) => (record.type === "tool_execution_update" && record.toolName === "subagent" ? undefined : record) },
      { why: "when it looks at its fleet, and what it shows of it by then, is a matter of time", change: (record) => (record.widgetKey === "subagent-fleet-status" ? undefined : record) },
      { why: "its own record of what its agent did has the times", change: (record) => (typeof record.ts === "number" ? { ...record, ts: 0 } : record) },
    ],
    // agentd has on record which agents worked in a session.
    extra: [(entry) => entry.type === "custom" && entry.customType === "agentd.subagents"],
    masks: [[/\b[0-9a-f]{64}\b/g, "<digest>"], [/\bsha256:[0-9a-f]{16}\b/g, "<digest>"], [/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=_)/g, "artifact"]],
    answer: () => scripted(
      [["Task: look", 0], { calls: [call("b1", "bash", { command: "echo from the child" })] }],
      ["Task: look", { text: "Seen." }],
      calls("go", use("subagent", { action: "list" }), use("subagent", { agent: "delegate", task: "Task: look at it", async: false }), use("subagent", { agent: "nobody", task: "x" })),
    ),
  };

  await t.test("its commands, and what they say", (t) => both(t, what, async (place) => {
    const client = place.start([], dialogs({ select: { cancelled: true } }));
    await client.done({ type: "get_commands" });
    await client.command("/subagents-models");
    await client.command("/subagents-profiles");
    await client.command("/subagent-cost");
  }));

  await t.test("an agent of its own", (t) => both(t, what, async (place) => {
    const client = place.start();
    await client.done({ type: "get_commands" });
    await client.prompt("go");
  }));
});
