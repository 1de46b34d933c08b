/** The data of agent loops that run in this process. */
import type { AssistantMessage, Message, Model, Tool, ToolCall } from "../ai/types.ts";

export type AgentMessage = { role: string; [name: string]: unknown };

export interface AgentToolResult {
  content: unknown[];
  details?: unknown;
  structuredContent?: unknown;
  usage?: unknown;
  isError?: boolean;
  terminate?: boolean;
  [name: string]: unknown;
}

export interface AgentTool extends Tool {
  executionMode?: string;
  prepareArguments?(args: unknown): unknown;
  execute(id: string, params: unknown, signal?: AbortSignal, onUpdate?: (partial: AgentToolResult) => void): Promise<AgentToolResult>;
}

export interface AgentContext {
  messages: AgentMessage[];
  tools?: AgentTool[];
  systemPrompt?: string;
}

export type AgentEvent = { type: string; [name: string]: unknown };
export type EventSink = (event: AgentEvent) => Promise<void> | void;

export type StreamFn = (model: Model, context: { messages: Message[] }, options: Record<string, unknown>) => unknown;

export interface Turn {
  message: AssistantMessage;
  toolResults: AgentMessage[];
  context: AgentContext;
  newMessages: AgentMessage[];
}

interface Update {
  context?: AgentContext;
  model?: Model;
  thinkingLevel?: string;
  messages?: AgentMessage[];
}

export interface ToolCallHooks {
  beforeToolCall?(context: object, signal?: AbortSignal): Promise<{ block?: boolean; reason?: string; terminate?: boolean } | undefined>;
  afterToolCall?(context: object, signal?: AbortSignal): Promise<Partial<AgentToolResult> | undefined>;
}

export interface LoopConfig extends ToolCallHooks {
  model: Model;
  thinkingLevel?: string;
  reasoning?: string;
  toolExecution?: string;
  convertToLlm(messages: AgentMessage[]): Message[] | Promise<Message[]>;
  transformContext?(messages: AgentMessage[], signal?: AbortSignal): Promise<AgentMessage[]>;
  getApiKey?(provider: string): Promise<string | undefined> | string | undefined;
  getSteeringMessages?(): Promise<AgentMessage[]>;
  getFollowUpMessages?(): Promise<AgentMessage[]>;
  finishTurn?(turn: Turn, signal?: AbortSignal): { action: string } | undefined | Promise<{ action: string } | undefined>;
  shouldStopAfterTurn?(turn: Turn, signal?: AbortSignal): boolean | Promise<boolean>;
  prepareRequest?(request: object, signal?: AbortSignal): Update | undefined | Promise<Update | undefined>;
  prepareNextTurn?(turn: Turn, signal?: AbortSignal): Update | undefined | Promise<Update | undefined>;
  [name: string]: unknown;
}

export interface CallOutcome {
  toolCall: ToolCall;
  result: AgentToolResult;
  isError: boolean;
  durationMs?: number;
}
