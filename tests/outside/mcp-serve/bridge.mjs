// A bridge from HTTP to `agentd mcp serve`, which speaks over stdio alone: the conformance runners test servers by a URL. Nothing of it
// ships. Whatever a check says about HTTP (statuses, headers, sessions, hosts) is said about this bridge, and not about agentd.
//
// Clients with a handshake get a process each, with the relays of the official SDK; requests of the stateless revision share one.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { packages } from "../node/support.mjs";

const sdk = (name) => import(pathToFileURL(join(packages, "mcp-serve/node_modules/@modelcontextprotocol/sdk/dist/esm", name)));
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp.js");

const HEADER_MISMATCH = -32020;
const METHOD_NOT_FOUND = -32601;

/// Starts the bridge for a server that is started so. Gives its URL, and a function that ends it and all processes.
export async function bridge(server) {
  const processes = new Set();
  const start = async (listen) => {
    const stdio = new StdioClientTransport({ ...server, stderr: "inherit" });
    stdio.onmessage = listen;
    processes.add(stdio);
    stdio.onclose = () => processes.delete(stdio);
    await stdio.start();
    return stdio;
  };
  const sessions = new Map();
  const stateless = statelessRelay(start);
  const http = createServer((request, response) => {
    handle(request, response, sessions, start, stateless).catch((error) => {
      console.error(error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${http.address().port}/mcp`,
    processes: () => [...processes].map((stdio) => stdio.pid),
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
      await Promise.all([...processes].map((stdio) => stdio.close()));
    },
  };
}

async function handle(request, response, sessions, start, stateless) {
  // Pages of a browser must not reach a server on this machine by another name.
  const local = (host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host ?? "");
  const { host, origin } = request.headers;
  if (!local(host) || (origin !== undefined && !local(origin.replace(/^https?:\/\//, "")))) {
    return refuse(response, 403, null, -32000, "Forbidden: the host or origin is not this machine");
  }
  const text = request.method === "POST" ? await body(request) : undefined;
  let message;
  if (text !== undefined) {
    try {
      message = JSON.parse(text);
    } catch {
      return refuse(response, 400, null, -32700, "Parse error");
    }
  }
  const version = request.headers["mcp-protocol-version"] ?? "";
  const named = message?.params?._meta?.["io.modelcontextprotocol/protocolVersion"];
  if (message !== undefined && (named !== undefined || version >= "2026-07-28")) {
    return stateless(request, response, message);
  }
  const session = request.headers["mcp-session-id"];
  const known = sessions.get(session);
  if (known) return known.handleRequest(request, response, message);
  if (session !== undefined) return refuse(response, 404, message?.id, -32001, "Session not found");
  if (message?.method !== "initialize") return refuse(response, 400, message?.id, -32000, "Bad Request: Server not initialized");
  const transport = await relayed(sessions, start);
  return transport.handleRequest(request, response, message);
}

/// A session of HTTP with a process of its own: every message goes through as it is.
async function relayed(sessions, start) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  // What the server sends beside answers belongs to the request that is under way.
  let underWay;
  const stdio = await start((message) => {
    transport.send(message, "id" in message && !("method" in message) ? undefined : { relatedRequestId: underWay });
  });
  transport.onmessage = (message) => {
    if (message.method !== undefined && message.id !== undefined) underWay = message.id;
    stdio.send(message);
  };
  transport.onclose = () => {
    sessions.delete(transport.sessionId);
    stdio.close();
  };
  await transport.start();
  return transport;
}

/// Requests of the stateless revision: each gets an id of its own on the one process, and an answer by JSON, or by a stream where more comes.
function statelessRelay(start) {
  const open = new Map();
  let last = 0;
  let process;
  const listen = (message) => {
    const meta = message.params?._meta;
    const key = message.method === undefined ? message.id : (meta?.["io.modelcontextprotocol/subscriptionId"] ?? message.params?.progressToken);
    const waiting = open.get(key);
    if (!waiting) return;
    const { response, id } = waiting;
    if (message.method === undefined) {
      open.delete(key);
      const answer = { ...message, id };
      if (!waiting.streams) return answerWith(response, statusOf(message.error), answer);
      response.write(`data: ${JSON.stringify(answer)}\n\n`);
      return response.end();
    }
    if (!waiting.streams) {
      waiting.streams = true;
      response.writeHead(200, { "content-type": "text/event-stream" });
    }
    const own = structuredClone(message);
    if (own.params._meta?.["io.modelcontextprotocol/subscriptionId"] !== undefined) own.params._meta["io.modelcontextprotocol/subscriptionId"] = id;
    if (own.params.progressToken !== undefined) own.params.progressToken = waiting.token;
    response.write(`data: ${JSON.stringify(own)}\n\n`);
  };
  return async (request, response, message) => {
    const { id, method, params } = message;
    const meta = params?._meta ?? {};
    const header = (name) => request.headers[name];
    const wanted = [
      ["mcp-protocol-version", meta["io.modelcontextprotocol/protocolVersion"]],
      ["mcp-method", method],
      ["mcp-name", params?.name],
    ];
    const wrong = wanted.find(([name, value]) => value !== undefined && decoded(header(name)) !== value);
    if (wrong) return refuse(response, 400, id, HEADER_MISMATCH, `Header mismatch: ${wrong[0]} is ${header(wrong[0])}, and the body has ${wrong[1]}`);
    process ??= start(listen);
    const stdio = await process;
    if (id === undefined) {
      await stdio.send(message);
      return response.writeHead(202).end();
    }
    const own = ++last;
    const token = meta.progressToken;
    open.set(own, { response, id, token, streams: false });
    response.on("close", () => {
      if (open.delete(own)) stdio.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: own } });
    });
    const sent = structuredClone({ ...message, id: own });
    if (token !== undefined) sent.params._meta.progressToken = own;
    await stdio.send(sent);
  };
}

/// Values of headers that are no plain text come in base64.
function decoded(value) {
  const [, coded] = /^=\?base64\?(.*)\?=$/.exec(value ?? "") ?? [];
  return coded === undefined ? value : Buffer.from(coded, "base64").toString("utf8");
}

function statusOf(error) {
  if (error === undefined) return 200;
  return error.code === METHOD_NOT_FOUND ? 404 : 400;
}

function answerWith(response, status, answer) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
}

function refuse(response, status, id, code, message) {
  answerWith(response, status, { jsonrpc: "2.0", ...(id == null ? {} : { id }), error: { code, message } });
}

async function body(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}
