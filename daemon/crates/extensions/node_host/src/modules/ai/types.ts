/** Shapes of messages, models and events, as far as the modules read them. */

export interface TextContent {
  type: "text";
  text: string;
  textSignature?: string;
}

export interface ThinkingContent {
  type: "thinking";
  thinking: string;
  thinkingSignature?: string;
  redacted?: boolean;
}

export interface ImageContent {
  type: "image";
  data: string;
  mimeType: string;
}

export interface ToolCall {
  type: "toolCall";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  argumentsError?: string;
  [key: string]: unknown;
}

export type Content = TextContent | ThinkingContent | ImageContent | ToolCall;

export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  cacheWrite1h?: number;
  reasoning?: number;
  totalTokens: number;
  cost: {
    input: number;
    output: number;
    cacheRead: number;
    cacheWrite: number;
    total: number;
    totalFromProvider?: boolean;
  };
}

export interface Tool {
  name: string;
  description: string;
  parameters: object;
  constrainedSampling?: unknown;
}

export interface SystemMessage {
  role: "system";
  content: string | TextContent[];
  sections?: Record<string, string | null>;
  toolsAdded?: Tool[];
  toolsRemoved?: { name: string }[];
  timestamp: number;
}

export interface AssistantMessage {
  role: "assistant";
  content: (TextContent | ThinkingContent | ToolCall)[];
  api: string;
  provider: string;
  model: string;
  usage: Usage;
  stopReason: string;
  errorMessage?: string;
  timestamp: number;
  durationMs?: number;
  diagnostics?: unknown[];
  [key: string]: unknown;
}

/** A message of a transcript. Agent transcripts hold roles of their own. */
export interface Message {
  role: string;
  [key: string]: unknown;
}

export interface AssistantMessageEvent {
  type: string;
  contentIndex?: number;
  delta?: string;
  content?: string;
  toolCall?: ToolCall;
  partial?: AssistantMessage;
  reason?: string;
  message?: AssistantMessage;
  error?: AssistantMessage;
}

export interface Context {
  systemPrompt?: string;
  messages: Message[];
  tools?: Tool[];
}

export interface CostRates {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

export interface Model {
  type?: string;
  id: string;
  name?: string;
  api: string;
  provider: string;
  baseUrl?: string;
  reasoning?: boolean;
  thinkingLevelMap?: Record<string, string | null>;
  promptCache?: { short?: number; long?: number };
  cost: CostRates & { tiers?: (CostRates & { inputTokensAbove: number })[] };
  contextWindow?: number;
  maxTokens?: number;
  compat?: Record<string, unknown>;
  [key: string]: unknown;
}

/** Usage of a message that cost nothing. */
export function emptyUsage(): Usage {
  return {
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 0,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  };
}
