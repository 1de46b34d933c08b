// A server of the Model Context Protocol on standard input and output, with two tools and a prompt.

import { createInterface } from "node:readline";

const number = { type: "number" };
const tools = [
  {
    name: "add", description: "Adds two numbers", inputSchema: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
    outputSchema: { type: "object", properties: { sum: number }, required: ["sum"] },
  },
  { name: "fail", description: "Fails always", inputSchema: { type: "object", properties: {} } },
];

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {}, prompts: {} }, serverInfo: { name: "numbers", version: "1.0.0" }, instructions: "Numbers are added here.",
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name, arguments: given }) => {
    if (name === "fail") return { content: [{ type: "text", text: "It failed." }], isError: true };
    const sum = given.a + given.b;
    return { content: [{ type: "text", text: String(sum) }], structuredContent: { sum } };
  },
  "prompts/list": () => ({ prompts: [{ name: "greet", description: "Greets somebody", arguments: [{ name: "who", required: true }] }] }),
  "prompts/get": ({ arguments: given }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${given?.who}.` } }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) return;
  const serve = methods[method];
  const answer = serve ? { result: serve(params) } : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
});
