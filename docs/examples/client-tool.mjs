// Gives the model a tool of ours: node client-tool.mjs PROMPT [flags of agentd]
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const tool = {
  name: "coin",
  description: "Throws a coin, and says what came up each time.",
  parameters: {
    type: "object",
    properties: { times: { type: "integer", minimum: 1, maximum: 100 } },
    required: ["times"],
  },
};
const coin = ({ times }) =>
  Array.from({ length: times }, () => (Math.random() < 0.5 ? "heads" : "tails")).join(", ");

const [prompt, ...flags] = process.argv.slice(2);
const agentd = spawn("agentd", ["--stdio", "--no-session", ...flags], { stdio: ["pipe", "pipe", "inherit"] });
const send = (command) => agentd.stdin.write(JSON.stringify(command) + "\n");

send({ type: "hello", protocol: 1, client: { name: "coin" } });
send({ type: "register_tools", tools: [tool] });
send({ type: "prompt", message: prompt });

for await (const line of createInterface({ input: agentd.stdout })) {
  const event = JSON.parse(line);
  if (event.type === "tool_request") {
    const content = [{ type: "text", text: coin(event.args) }];
    send({ type: "tool_response", requestId: event.requestId, result: { content } });
  } else if (event.type === "message_end" && event.message.role === "assistant") {
    console.log(event.message.content.map((block) => block.text ?? "").join(""));
  } else if (event.type === "response" && !event.success) {
    console.error(event.error);
    process.exitCode = 1;
    break;
  } else if (event.type === "agent_settled") {
    break;
  }
}
agentd.stdin.end();
