/** Running the tool calls of an answer. */
import { validateToolArguments } from "../ai/validation.ts";
import type { AssistantMessage, ToolCall } from "../ai/types.ts";
import type { AgentContext, AgentMessage, AgentTool, AgentToolResult, CallOutcome, EventSink, LoopConfig, ToolCallHooks } from "./types.ts";

export interface CallOptions extends ToolCallHooks {
  tools: readonly AgentTool[];
  assistantMessage: AssistantMessage;
  context: AgentContext;
  signal?: AbortSignal | undefined;
  onUpdate?: ((partial: AgentToolResult) => void) | undefined;
}

/** A call that may run, or the outcome of one that may not. */
type Prepared = { tool: AgentTool; toolCall: ToolCall; args: unknown } | { outcome: CallOutcome };

function failed(toolCall: ToolCall, text: string, more: Partial<AgentToolResult> = {}): CallOutcome {
  return { toolCall, result: { content: [{ type: "text", text }], details: {}, ...more }, isError: true };
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function prepare(toolCall: ToolCall, options: CallOptions): Promise<Prepared> {
  const tool = options.tools.find(({ name }) => name === toolCall.name);
  if (tool === undefined) return { outcome: failed(toolCall, `Tool ${toolCall.name} not found`) };
  try {
    const given = tool.prepareArguments === undefined ? toolCall : { ...toolCall, arguments: tool.prepareArguments(toolCall.arguments) as ToolCall["arguments"] };
    const args = validateToolArguments(tool, given);
    const { assistantMessage, context, signal } = options;
    const verdict = await options.beforeToolCall?.({ assistantMessage, toolCall, args, context }, signal);
    if (verdict?.block === true) {
      const more = verdict.terminate === true ? { terminate: true } : {};
      return { outcome: failed(toolCall, verdict.reason ?? "Tool execution was blocked", more) };
    }
    if (signal?.aborted) return { outcome: failed(toolCall, "Operation aborted") };
    return { tool, toolCall, args };
  } catch (error) {
    return { outcome: failed(toolCall, textOf(error)) };
  }
}

async function execute(prepared: Exclude<Prepared, { outcome: CallOutcome }>, options: CallOptions): Promise<CallOutcome> {
  const { tool, toolCall, args } = prepared;
  const started = performance.now();
  let isSettled = false;
  const onUpdate = (partial: AgentToolResult) => {
    if (!isSettled) options.onUpdate?.(partial);
  };
  let outcome: CallOutcome;
  try {
    const result = await tool.execute(toolCall.id, args, options.signal, onUpdate);
    outcome = { toolCall, result, isError: result.isError === true };
  } catch (error) {
    outcome = failed(toolCall, textOf(error));
  }
  isSettled = true;
  const durationMs = Math.round(performance.now() - started);
  return { ...(await afterCall(outcome, args, options)), durationMs };
}

async function afterCall(outcome: CallOutcome, args: unknown, options: CallOptions): Promise<CallOutcome> {
  if (options.afterToolCall === undefined) return outcome;
  const { toolCall, result, isError } = outcome;
  const { assistantMessage, context, signal } = options;
  try {
    const changed = await options.afterToolCall({ assistantMessage, toolCall, args, result, isError, context }, signal);
    if (changed === undefined) return outcome;
    const merged: AgentToolResult = { ...result };
    for (const name of ["content", "details", "usage", "terminate"] as const) if (changed[name] !== undefined) Object.assign(merged, { [name]: changed[name] });
    // It may not be about the content any more.
    if (changed.structuredContent !== undefined) merged.structuredContent = changed.structuredContent;
    else if (changed.content !== undefined) delete merged.structuredContent;
    return { toolCall, result: merged, isError: changed.isError ?? isError };
  } catch (error) {
    return failed(toolCall, textOf(error));
  }
}

/** One call through all of its stages, without events. Never rejects for what a tool does. */
export async function runToolCall(toolCall: ToolCall, options: CallOptions): Promise<CallOutcome> {
  const prepared = await prepare(toolCall, options);
  return "outcome" in prepared ? prepared.outcome : execute(prepared, options);
}

/** All calls of an answer: prepared one after the other, then run side by side unless they must not. */
export async function runToolCalls(
  assistantMessage: AssistantMessage,
  context: AgentContext,
  config: LoopConfig,
  signal: AbortSignal | undefined,
  emit: EventSink,
): Promise<{ messages: AgentMessage[]; terminates: boolean }> {
  const calls = assistantMessage.content.filter((block): block is ToolCall => block.type === "toolCall");
  const tools = context.tools ?? [];
  const isSequential = config.toolExecution === "sequential" || calls.some((call) => tools.find(({ name }) => name === call.name)?.executionMode === "sequential");
  const optionsFor = (toolCall: ToolCall, updates: Promise<void>[]): CallOptions => ({
    tools,
    assistantMessage,
    context,
    signal,
    ...(config.beforeToolCall === undefined ? {} : { beforeToolCall: config.beforeToolCall.bind(config) }),
    ...(config.afterToolCall === undefined ? {} : { afterToolCall: config.afterToolCall.bind(config) }),
    onUpdate: (partialResult) => {
      const { id: toolCallId, name: toolName, arguments: args } = toolCall;
      updates.push(Promise.resolve(emit({ type: "tool_execution_update", toolCallId, toolName, args, partialResult })));
    },
  });
  const ended = async (outcome: CallOutcome): Promise<CallOutcome> => {
    const { toolCall, result, isError, durationMs } = outcome;
    const time = durationMs === undefined ? {} : { durationMs };
    await emit({ type: "tool_execution_end", toolCallId: toolCall.id, toolName: toolCall.name, result, isError, ...time });
    return outcome;
  };
  const messages: AgentMessage[] = [];
  const tellMessage = async (outcome: CallOutcome): Promise<void> => {
    const message = messageOf(outcome);
    messages.push(message);
    await emit({ type: "message_start", message });
    await emit({ type: "message_end", message });
  };
  /** The outcomes, or what makes them once all calls are prepared. */
  const prepared: (() => Promise<CallOutcome>)[] = [];
  for (const toolCall of calls) {
    const updates: Promise<void>[] = [];
    const options = optionsFor(toolCall, updates);
    await emit({ type: "tool_execution_start", toolCallId: toolCall.id, toolName: toolCall.name, args: toolCall.arguments });
    const call = await prepare(toolCall, options);
    const finish = async (): Promise<CallOutcome> => {
      if ("outcome" in call) return ended(call.outcome);
      const outcome = await execute(call, options);
      await Promise.all(updates);
      return ended(outcome);
    };
    if ("outcome" in call || isSequential) {
      const outcome = await finish();
      prepared.push(async () => outcome);
      if (isSequential) await tellMessage(outcome);
    } else {
      prepared.push(finish);
    }
    if (signal?.aborted) break;
  }
  const outcomes = await Promise.all(prepared.map((run) => run()));
  // Those that ran side by side are told of in the order of the calls.
  if (!isSequential) for (const outcome of outcomes) await tellMessage(outcome);
  return { messages, terminates: outcomes.length > 0 && outcomes.every(({ result }) => result.terminate === true) };
}

function messageOf({ toolCall, result, isError, durationMs }: CallOutcome): AgentMessage {
  const { content, details, structuredContent, usage } = result;
  return {
    role: "toolResult",
    toolCallId: toolCall.id,
    toolName: toolCall.name,
    content,
    ...(details === undefined ? {} : { details }),
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(usage === undefined ? {} : { usage }),
    isError,
    ...(durationMs === undefined ? {} : { durationMs }),
    timestamp: Date.now(),
  };
}
