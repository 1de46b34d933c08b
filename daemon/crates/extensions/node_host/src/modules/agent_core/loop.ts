/** The loop of an agent that runs in this process: it asks its model, runs the tool calls, and goes on until there is nothing left to do. */
import { EventStream } from "../ai/event_stream.ts";
import { getCurrentTools, getToolStateChanges } from "../ai/transcript.ts";
import type { AssistantMessage, AssistantMessageEvent, Message } from "../ai/types.ts";
import { runToolCalls } from "./tool_calls.ts";
import type { AgentContext, AgentEvent, AgentMessage, EventSink, LoopConfig, StreamFn, Turn } from "./types.ts";

interface Loop {
  context: AgentContext;
  config: LoopConfig;
  signal: AbortSignal | undefined;
  emit: EventSink;
  streamFn: StreamFn;
  added: AgentMessage[];
}

type AnswerStream = AsyncIterable<AssistantMessageEvent> & { result(): Promise<AssistantMessage> };

/** Begins with new messages. Returns what was added, these included. */
export async function runAgentLoop(
  prompts: AgentMessage[],
  context: AgentContext,
  config: LoopConfig,
  emit: EventSink,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): Promise<AgentMessage[]> {
  const loop: Loop = { context: { ...context, messages: [...context.messages] }, config: { ...config }, signal, emit, streamFn, added: [] };
  await emit({ type: "agent_start" });
  await emit({ type: "turn_start" });
  await declareTools(loop);
  for (const message of prompts) await add(loop, message);
  return run(loop);
}

/** Goes on from the context. */
export async function runAgentLoopContinue(
  context: AgentContext,
  config: LoopConfig,
  emit: EventSink,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): Promise<AgentMessage[]> {
  const last = context.messages.at(-1);
  if (last === undefined) throw new Error("Cannot continue: no messages in context");
  if (last.role === "assistant") throw new Error("Cannot continue from message role: assistant");
  const loop: Loop = { context: { ...context, messages: [...context.messages] }, config: { ...config }, signal, emit, streamFn, added: [] };
  await emit({ type: "agent_start" });
  await emit({ type: "turn_start" });
  return run(loop);
}

export function agentLoop(prompts: AgentMessage[], context: AgentContext, config: LoopConfig, signal: AbortSignal | undefined, streamFn: StreamFn) {
  return streamed((emit) => runAgentLoop(prompts, context, config, emit, signal, streamFn));
}

export function agentLoopContinue(context: AgentContext, config: LoopConfig, signal: AbortSignal | undefined, streamFn: StreamFn) {
  return streamed((emit) => runAgentLoopContinue(context, config, emit, signal, streamFn));
}

function streamed(begin: (emit: EventSink) => Promise<AgentMessage[]>): EventStream<AgentEvent, AgentMessage[]> {
  const stream = new EventStream<AgentEvent, AgentMessage[]>(
    (event) => event.type === "agent_end",
    (event) => (event["messages"] ?? []) as AgentMessage[],
  );
  begin((event) => stream.push(event)).then(
    (messages) => stream.end(messages),
    (error: unknown) => {
      console.error("The loop of an agent broke down:", error);
      stream.end([]);
    },
  );
  return stream;
}

async function add(loop: Loop, message: AgentMessage): Promise<void> {
  loop.context.messages.push(message);
  loop.added.push(message);
  await loop.emit({ type: "message_start", message });
  await loop.emit({ type: "message_end", message });
}

async function run(loop: Loop): Promise<AgentMessage[]> {
  const { config, signal } = loop;
  let pending = (await config.getSteeringMessages?.()) ?? [];
  let isFirst = true;
  for (;;) {
    if (!isFirst) await loop.emit({ type: "turn_start" });
    isFirst = false;
    await declareTools(loop);
    for (const message of pending) await add(loop, message);
    if (await prepareRequest(loop)) await declareTools(loop);
    const message = await ask(loop);
    const isOver = message.stopReason === "error" || message.stopReason === "aborted";
    const called = isOver ? { messages: [], terminates: false } : await runToolCalls(message, loop.context, loop.config, signal, loop.emit);
    loop.context.messages.push(...called.messages);
    loop.added.push(...called.messages);
    const turn: Turn = { message, toolResults: called.messages, context: loop.context, newMessages: loop.added };
    const decision = isOver ? undefined : await loop.config.finishTurn?.(turn, signal);
    await loop.emit({ type: "turn_end", message, toolResults: called.messages });
    if (isOver || decision?.action === "end" || (await loop.config.shouldStopAfterTurn?.(turn, signal)) === true) return end(loop);
    pending = (await config.getSteeringMessages?.()) ?? [];
    const goesOn = called.messages.length > 0 && !called.terminates;
    if (pending.length === 0 && !goesOn) {
      pending = (await config.getFollowUpMessages?.()) ?? [];
      if (pending.length === 0 && decision?.action !== "continue") return end(loop);
    }
    const update = await loop.config.prepareNextTurn?.(turn, signal);
    if (update?.messages !== undefined) pending = [...update.messages, ...pending];
    take(loop, update);
  }
}

async function end(loop: Loop): Promise<AgentMessage[]> {
  await loop.emit({ type: "agent_end", messages: loop.added });
  return loop.added;
}

/** Tools that came or went since they were last declared are told to the model first. */
async function declareTools(loop: Loop): Promise<void> {
  const { tools, messages } = loop.context;
  if (tools === undefined) return;
  const changes = getToolStateChanges(getCurrentTools(messages as never), tools);
  if (changes.toolsAdded.length === 0 && changes.toolsRemoved.length === 0) return;
  const { toolsAdded, toolsRemoved } = changes;
  await add(loop, {
    role: "system",
    content: "",
    ...(toolsAdded.length === 0 ? {} : { toolsAdded }),
    ...(toolsRemoved.length === 0 ? {} : { toolsRemoved }),
    timestamp: Date.now(),
  });
}

/** Whether something is other than it was. */
async function prepareRequest(loop: Loop): Promise<boolean> {
  const { context, config, signal } = loop;
  const { model, thinkingLevel = "off" } = config;
  const update = await config.prepareRequest?.({ context, model, thinkingLevel }, signal);
  take(loop, update);
  return update !== undefined;
}

function take(loop: Loop, update: { context?: AgentContext; model?: LoopConfig["model"]; thinkingLevel?: string } | undefined): void {
  if (update === undefined) return;
  if (update.context !== undefined) loop.context = { ...update.context, messages: [...update.context.messages] };
  if (update.model !== undefined) loop.config.model = update.model;
  if (update.thinkingLevel !== undefined) loop.config.thinkingLevel = update.thinkingLevel;
}

/** One answer of the model, with its events. */
async function ask(loop: Loop): Promise<AssistantMessage> {
  const { context, config, signal, emit } = loop;
  const shown = (await config.transformContext?.(context.messages, signal)) ?? context.messages;
  const messages: Message[] = await config.convertToLlm(shown);
  const apiKey = (await config.getApiKey?.(config.model.provider)) ?? config["apiKey"];
  const level = config.thinkingLevel ?? config.reasoning ?? "off";
  const reasoning = level === "off" ? undefined : level;
  const options = { ...config, apiKey, signal, reasoning };
  const stream = (await loop.streamFn(config.model, { messages }, options)) as AnswerStream;
  let hasStarted = false;
  for await (const event of stream) {
    if (event.type === "start") {
      hasStarted = true;
      await emit({ type: "message_start", message: { ...event.partial } });
    } else if (event.type !== "done" && event.type !== "error") {
      await emit({ type: "message_update", message: { ...event.partial }, assistantMessageEvent: event });
    }
  }
  const message = { ...(await stream.result()), thinkingLevel: level } as AssistantMessage;
  if (!hasStarted) await emit({ type: "message_start", message: { ...message } });
  context.messages.push(message as unknown as AgentMessage);
  loop.added.push(message as unknown as AgentMessage);
  await emit({ type: "message_end", message });
  return message;
}
