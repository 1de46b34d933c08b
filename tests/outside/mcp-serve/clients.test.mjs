// The official SDKs as clients: of the revisions with a handshake, and of the stateless one.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { agentd, home, packages } from "../node/support.mjs";

const modules = join(packages, "mcp-serve/node_modules/@modelcontextprotocol");
const load = (path) => import(pathToFileURL(join(modules, path)));

const [{ Client: LegacyClient }, { StdioClientTransport: LegacyStdio }, { ElicitRequestSchema }] = await Promise.all(
  ["sdk/dist/esm/client/index.js", "sdk/dist/esm/client/stdio.js", "sdk/dist/esm/types.js"].map(load),
);
const [{ Client }, { StdioClientTransport }] = await Promise.all(["client/dist/index.mjs", "client/dist/stdio.mjs"].map(load));

const info = { name: "sdk", version: "1" };

/// How the server is started.
const server = (place) => ({ command: agentd, args: ["mcp", "serve"], cwd: place.project, env: { ...place.env, PATH: "/usr/bin:/bin" } });

/// A client of a revision that answers questions by `decide`; absent, it says that nobody can be asked.
async function connected(place, mode, decide) {
  const capabilities = decide ? { elicitation: { form: {} } } : {};
  let client, transport;
  if (mode === "handshake") {
    client = new LegacyClient(info, { capabilities });
    if (decide) client.setRequestHandler(ElicitRequestSchema, async (request) => decide(request.params));
    transport = new LegacyStdio(server(place));
  } else {
    client = new Client(info, { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } });
    if (decide) client.setRequestHandler("elicitation/create", async (request) => decide(request.params));
    transport = new StdioClientTransport(server(place));
  }
  place.cleanups.push(() => client.close());
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.equal(tools.length, 5);
  const call = (name, given, options = {}) => {
    const params = { name, arguments: given };
    return mode === "handshake" ? client.callTool(params, undefined, options) : client.callTool(params, options);
  };
  return { client, call };
}

for (const mode of ["handshake", "stateless"]) {
  test(`${mode}: a prompt is answered, its progress told, and its session goes on`, async (t) => {
    const { client, call } = await connected(home(t), mode);
    const told = [];
    const first = await call("prompt", { prompt: "use a tool" }, { onprogress: (progress) => told.push(progress.message) });
    assert.equal(first.structuredContent.answer, "It said hi.");
    assert.ok(told.some((message) => message.startsWith("bash: printf")), told.join());
    const { sessionId } = first.structuredContent;
    const second = await call("prompt", { prompt: "hello", sessionId });
    assert.equal(second.structuredContent.answer, "Hello back.");
    assert.equal(client.getServerVersion()?.name ?? "agentd", "agentd");
  });

  test(`${mode}: questions of the guard rails come to the client`, async (t) => {
    for (const [action, decision, status] of [["accept", "once", undefined], ["accept", "deny", 1], ["decline", undefined, 1]]) {
      const asked = [];
      const decide = (params) => {
        asked.push(params.message);
        return decision ? { action, content: { decision } } : { action };
      };
      const { call } = await connected(home(t, { permissions: { preset: "ask" } }), mode, decide);
      const { structuredContent } = await call("prompt", { prompt: "use a tool" });
      assert.equal(structuredContent.answer, "It said hi.");
      assert.equal(structuredContent.denied?.length, status, JSON.stringify(structuredContent));
      assert.equal(asked.length, 1);
      assert.match(asked[0], /printf/);
    }
  });

  test(`${mode}: a cancelled call stops the work, and the session goes on`, async (t) => {
    const place = home(t);
    const { call } = await connected(place, mode);
    const { sessionId } = (await call("prompt", { prompt: "hello" })).structuredContent;
    // Nobody opens it: only the end of the call ends the command.
    place.gate();
    const abort = new AbortController();
    const held = call("prompt", { prompt: "hold", sessionId }, {
      signal: abort.signal,
      onprogress: (progress) => progress.message.startsWith("bash") && abort.abort("not needed"),
    });
    await assert.rejects(held);
    let next;
    do next = await call("prompt", { prompt: "hello", sessionId });
    while (next.isError && /works on a prompt/.test(next.content[0].text));
    assert.equal(next.structuredContent.answer, "Hello back.");
  });
}
