/** Messages for tests. */
import { randomUUID } from "node:crypto";
import { type AssistantMessage, emptyUsage, type TextContent, type ThinkingContent, type ToolCall } from "./types.ts";

type Block = TextContent | ThinkingContent | ToolCall;

export function fauxText(text: string): TextContent {
  return { type: "text", text };
}

export function fauxThinking(thinking: string): ThinkingContent {
  return { type: "thinking", thinking };
}

export function fauxToolCall(name: string, args: Record<string, unknown>, options: { id?: string } = {}): ToolCall {
  return { type: "toolCall", id: options.id ?? `tool:${randomUUID()}`, name, arguments: args };
}

export function fauxAssistantMessage(
  content: string | Block | Block[],
  options: { stopReason?: string; errorMessage?: string; responseId?: string; timestamp?: number } = {},
): AssistantMessage {
  const blocks = typeof content === "string" ? [fauxText(content)] : Array.isArray(content) ? content : [content];
  return {
    role: "assistant",
    content: blocks,
    api: "faux",
    provider: "faux",
    model: "faux-1",
    usage: emptyUsage(),
    stopReason: options.stopReason ?? "stop",
    ...(options.errorMessage === undefined ? {} : { errorMessage: options.errorMessage }),
    ...(options.responseId === undefined ? {} : { responseId: options.responseId }),
    timestamp: options.timestamp ?? Date.now(),
  };
}
