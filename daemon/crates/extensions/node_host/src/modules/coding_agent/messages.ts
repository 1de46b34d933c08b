/** Agent messages as what a model reads, and as text. Pure. */
import type { Content, ToolCall } from "../ai/types.ts";

interface AgentMessage {
  role: string;
  timestamp?: number;
  [key: string]: unknown;
}

interface BashExecution {
  command: string;
  output: string;
  exitCode?: number;
  cancelled?: boolean;
  truncated?: boolean;
  fullOutputPath?: string;
}

/** What a model reads of a command that the user ran. */
export function bashExecutionToText(message: BashExecution): string {
  let text = `Ran \`${message.command}\`\n`;
  text += message.output ? `\`\`\`\n${message.output}\n\`\`\`` : "(no output)";
  if (message.cancelled) text += "\n\n(command cancelled)";
  else if (message.exitCode) text += `\n\nCommand exited with code ${message.exitCode}`;
  if (message.truncated && message.fullOutputPath) text += `\n\n[Output truncated. Full output: ${message.fullOutputPath}]`;
  return text;
}

/** The sentences are the daemon's, so that both sides tell a model the same. */
const BRANCH_INTRODUCTION =
  "The conversation left a branch and came back from it; this is a summary of what happened there:";
const COMPACTION_INTRODUCTION = "The conversation up to this point was compacted into the following summary:";

function userMessage(text: string, timestamp: number | undefined): AgentMessage {
  return { role: "user", content: [{ type: "text", text }], ...(timestamp === undefined ? {} : { timestamp }) };
}

function toLlm(message: AgentMessage): AgentMessage[] {
  switch (message.role) {
    case "system":
    case "user":
    case "assistant":
    case "toolResult":
      return [message];
    case "bashExecution":
      if (message.excludeFromContext) return [];
      return [userMessage(bashExecutionToText(message as unknown as BashExecution), message.timestamp)];
    case "custom": {
      const content = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
      return [{ role: "user", content, ...(message.timestamp === undefined ? {} : { timestamp: message.timestamp }) }];
    }
    case "branchSummary":
      return [
        userMessage(`${BRANCH_INTRODUCTION}\n\n<summary>\n${String(message.summary)}</summary>`, message.timestamp),
      ];
    case "compactionSummary":
      return [
        userMessage(`${COMPACTION_INTRODUCTION}\n\n<summary>\n${String(message.summary)}\n</summary>`, message.timestamp),
      ];
    default:
      return [];
  }
}

/** Turns agent messages into those that a model takes; unknown roles are left out. */
export function convertToLlm(messages: AgentMessage[]): AgentMessage[] {
  return messages.flatMap(toLlm);
}

/** Characters of a tool result that a text form keeps. */
const RESULT_CHARACTERS = 2000;

function texts(content: unknown, separator: string): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as Content[])
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join(separator);
}

function callText(call: ToolCall): string {
  const parts = Object.entries(call.arguments).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `${call.name}(${parts.join(", ")})`;
}

function serializeMessage(message: AgentMessage): string[] {
  if (message.role === "user") {
    const text = texts(message.content, "");
    return text ? [`[User]: ${text}`] : [];
  }
  if (message.role === "assistant") {
    const content = Array.isArray(message.content) ? (message.content as Content[]) : [];
    const text = texts(content, "\n");
    const calls = content.filter((block): block is ToolCall => block.type === "toolCall").map(callText);
    return [
      ...(content.some((block) => block.type === "text") ? [`[Assistant]: ${text}`] : []),
      ...(calls.length > 0 ? [`[Assistant tool calls]: ${calls.join("; ")}`] : []),
    ];
  }
  if (message.role === "toolResult") {
    const text = texts(message.content, "");
    if (!text) return [];
    const rest = text.length - RESULT_CHARACTERS;
    if (rest <= 0) return [`[Tool result]: ${text}`];
    return [`[Tool result]: ${text.slice(0, RESULT_CHARACTERS)}\n\n[... ${rest} more characters truncated]`];
  }
  return [];
}

/** A conversation as text, for a model that is to summarise it. Thinking is left out, long results are cut. */
export function serializeConversation(messages: AgentMessage[]): string {
  return messages.flatMap(serializeMessage).join("\n\n");
}
