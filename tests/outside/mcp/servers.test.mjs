// Two official servers, unchanged, as servers of a session: over standard streams, and by HTTP.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";

import { connect } from "../node/client.mjs";
import { home, packages } from "../node/support.mjs";

const modules = join(packages, "mcp/node_modules/@modelcontextprotocol");
const everything = join(modules, "server-everything/dist/index.js");
const filesystem = join(modules, "server-filesystem/dist/index.js");

/// A session with one server `test`, whose tools are declared to the model.
async function session(t, entry) {
  const place = home(t);
  writeFileSync(place.at("agent/mcp.json"), JSON.stringify({ mcpServers: { test: { exposure: "direct", ...entry } } }));
  const client = connect(place);
  place.cleanups.push(() => client.end());
  await client.done({ type: "hello", protocol: 1, capabilities: { sessions: true, ui: true } });
  return { place, client };
}

/// Has the model call a tool, with `answer` for what the user is asked: the result, and the events of its run.
async function call({ place, client }, tool, args = {}, answer = () => "") {
  const name = `mcp__test__${tool}`;
  const steps = [
    { when: { results: 1 }, emit: [{ text: "Done." }] },
    { when: { promptContains: "" }, emit: [{ toolCall: { id: "call_1", name, arguments: args } }] },
  ];
  writeFileSync(place.at("script.json"), JSON.stringify({ steps }));
  const events = [];
  const stop = client.listen((record) => {
    events.push(record);
    if (record.type === "extension_ui_request") {
      client.say({ type: "extension_ui_response", id: record.id, value: answer(record) });
    }
  });
  await client.prompt(`Call ${tool}.`);
  stop();
  const end = events.find((event) => event.type === "tool_execution_end");
  assert.ok(end, `${tool} was not called: ${JSON.stringify(events.at(-1))}`);
  return { end, result: end.result, text: end.result.content.map((block) => block.text ?? "").join("\n"), events };
}

async function everythingIsThere(it) {
  const echo = await call(it, "echo", { message: "hello" });
  assert.equal(echo.text, "Echo: hello");
  assert.match((await call(it, "get_sum", { a: 2, b: 3 })).text, /5/);
  const image = await call(it, "get_tiny_image");
  assert.ok(image.result.content.some((block) => block.type === "image" && block.mimeType === "image/png"));
  const links = await call(it, "get_resource_links", { count: 2 });
  assert.match(links.text, /\[Resource demo:\/\/[^\n]*Read it with read_mcp_resource \(server "test"\)\]/);
  const embedded = await call(it, "get_resource_reference", { resourceType: "Text", resourceId: 1 });
  assert.match(embedded.text, /Resource 1: This is a plaintext resource/i);
  const structured = await call(it, "get_structured_content", { location: "Chicago" });
  assert.ok(structured.result.structuredContent.structuredContent.temperature !== undefined);
  const slow = await call(it, "trigger_long_running_operation", { duration: 1, steps: 4 });
  assert.match(slow.text, /completed/i);
  const updates = slow.events.filter((event) => event.type === "tool_execution_update");
  assert.ok(updates.length > 0 && updates.every((update) => /\d/.test(update.partialResult.content[0].text)));
  const wrong = await call(it, "get_sum", { a: "x", b: 3 });
  assert.equal(wrong.end.isError, true);
  const listed = await it.client.done({ type: "get_mcp_servers" });
  assert.equal(listed.servers[0].protocolVersion, "2025-11-25");
}

test("server-everything over its standard streams", async (t) => {
  const it = await session(t, { command: process.execPath, args: [everything, "stdio"] });
  await everythingIsThere(it);
  const roots = await call(it, "get_roots_list");
  assert.match(roots.text, /project/);
});

test("server-everything asks the user, who answers or declines", async (t) => {
  const it = await session(t, { command: process.execPath, args: [everything, "stdio"] });
  const declined = await call(it, "trigger_elicitation_request", {}, (asked) => asked.options.find((it) => it === "Decline"));
  assert.match(declined.text, /decline/i);
  const fill = (asked) => {
    if (asked.method === "input") return /name/i.test(asked.title) ? "Ada" : "";
    return asked.options.includes("Answer") ? "Answer" : asked.options[0];
  };
  const accepted = await call(it, "trigger_elicitation_request", {}, fill);
  assert.match(accepted.text, /Ada/);
  const page = await call(it, "trigger_url_elicitation", { url: "https://pages.example/in" }, (asked) => asked.options[0]);
  assert.match(page.text + JSON.stringify(page.result), /accept|complete|open/i);
});

test("server-everything by streamable HTTP", async (t) => {
  const port = await new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, PORT: String(port) };
  const server = spawn(process.execPath, [everything, "streamableHttp"], { env, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => server.kill());
  await new Promise((resolve, reject) => {
    let said = "";
    const look = (text) => (said += text).includes(String(port)) && resolve();
    server.stdout.on("data", look);
    server.stderr.on("data", look);
    server.once("exit", () => reject(new Error(said)));
  });
  await everythingIsThere(await session(t, { url: `http://127.0.0.1:${port}/mcp` }));
});

test("resources of server-everything are listed and read", async (t) => {
  const it = await session(t, { command: process.execPath, args: [everything, "stdio"] });
  const named = (tool, args) => {
    const steps = [
      { when: { results: 1 }, emit: [{ text: "Done." }] },
      { when: { promptContains: "" }, emit: [{ toolCall: { id: "call_1", name: tool, arguments: args } }] },
    ];
    writeFileSync(it.place.at("script.json"), JSON.stringify({ steps }));
  };
  const ends = [];
  it.client.listen((record) => record.type === "tool_execution_end" && ends.push(record));
  named("list_mcp_resources", { server: "test" });
  await it.client.prompt("List.");
  const { resources } = JSON.parse(ends[0].result.content[0].text);
  assert.ok(resources.length > 0);
  named("read_mcp_resource", { server: "test", uri: resources[0].uri });
  await it.client.prompt("Read.");
  assert.ok(!ends[1].isError && ends[1].result.content[0].text.length > 0, JSON.stringify(ends[1]));
});

test("server-filesystem takes the working directory as its root", async (t) => {
  const it = await session(t, { command: process.execPath, args: [filesystem] });
  writeFileSync(it.place.at("project/notes.txt"), "what was noted\n");
  // It asks for its roots once it has been greeted, and answers calls meanwhile.
  let allowed = await call(it, "list_allowed_directories");
  for (let left = 20; left > 0 && !allowed.text.includes(it.place.project); left -= 1) allowed = await call(it, "list_allowed_directories");
  assert.ok(allowed.text.includes(it.place.project), allowed.text);
  assert.match((await call(it, "read_text_file", { path: it.place.at("project/notes.txt") })).text, /what was noted/);
  const written = await call(it, "write_file", { path: it.place.at("project/new.txt"), content: "new" });
  assert.ok(!written.end.isError, written.text);
  assert.equal(readFileSync(it.place.at("project/new.txt"), "utf8"), "new");
  const outside = await call(it, "read_text_file", { path: it.place.at("agent/settings.json") });
  assert.equal(outside.end.isError, true);
  assert.match(outside.text, /denied|outside/i);
});
