/**
 * Model calls through a server that holds the credentials. It sends what is new of an answer; the message is put together here.
 *
 * `POST <proxyUrl>/api/stream` with `{model, context, options}` and the token as bearer; the answer is a stream of `data: <event>` lines.
 */
import { AssistantMessageEventStream } from "../ai/event_stream.ts";
import { ToolCallArgumentsStream } from "../ai/streaming_json.ts";
import { type AssistantMessage, type AssistantMessageEvent, type Context, emptyUsage, type Model, type ToolCall, type Usage } from "../ai/types.ts";

export interface ProxyOptions {
  proxyUrl: string;
  authToken: string;
  signal?: AbortSignal;
  [name: string]: unknown;
}

/** The options that the server gets. The others are of this side. */
const SENT_OPTIONS = [
  "temperature", "samplingParams", "maxTokens", "reasoning", "cacheRetention", "sessionId", "headers", "metadata", "transport", "thinkingBudgets", "maxRetryDelayMs",
];

/** An event as the server sends it: without the message so far. */
interface ProxyEvent {
  type: string;
  contentIndex: number;
  delta: string;
  contentSignature?: string;
  id: string;
  toolName: string;
  toolCall: ToolCall;
  reason: string;
  errorMessage?: string;
  usage: Usage;
  providerThinkingLevel?: string;
}

/** The answer of the model by way of the server. Failures are its last event, `error`; the function itself never throws. */
export function streamProxy(model: Model, context: Context, options: ProxyOptions): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  void streamInto(stream, new ProxiedMessage(model), { model, context, options });
  return stream;
}

async function streamInto(
  stream: AssistantMessageEventStream,
  answer: ProxiedMessage,
  { model, context, options }: { model: Model; context: Context; options: ProxyOptions },
): Promise<void> {
  try {
    const response = await fetch(`${options.proxyUrl}/api/stream`, {
      method: "POST",
      headers: { Authorization: `Bearer ${options.authToken}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model, context, options: Object.fromEntries(SENT_OPTIONS.map((name) => [name, options[name]])) }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    if (!response.ok) throw new Error(`Proxy error: ${await refusal(response)}`);
    let isOver = false;
    for await (const line of lines(response, options.signal)) {
      const data = line.startsWith("data: ") ? line.slice(6).trim() : "";
      const event = data === "" ? undefined : answer.take(JSON.parse(data) as ProxyEvent);
      if (event === undefined) continue;
      isOver ||= event.type === "done" || event.type === "error";
      stream.push(event);
    }
    if (!isOver) stream.push(answer.failed("error", "Connection closed by proxy server before the response completed"));
  } catch (error) {
    stream.push(answer.failed(options.signal?.aborted ? "aborted" : "error", error instanceof Error ? error.message : String(error)));
  }
  stream.end();
}

/** Why the server refuses, as far as it says so. */
async function refusal(response: Response): Promise<string> {
  const said = (await response.json().catch(() => undefined)) as { error?: unknown } | undefined;
  return said?.error ? String(said.error) : `${response.status} ${response.statusText}`;
}

/** The lines of a body. The last one needs no line feed. */
async function* lines(response: Response, signal: AbortSignal | undefined): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      if (signal?.aborted) break;
      const parts = decoder.decode(chunk, { stream: true }).split("\n");
      parts[0] = rest + parts[0];
      rest = parts.pop() as string;
      yield* parts;
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
  if (signal?.aborted) throw new Error("Request aborted by user");
  rest += decoder.decode();
  if (rest !== "") yield rest;
}

/** The message that the events of one answer make. */
class ProxiedMessage {
  readonly #message: AssistantMessage;
  /** The arguments of the calls that are coming in, by their places in the content. */
  readonly #arguments = new Map<number, ToolCallArgumentsStream>();

  constructor(model: Model) {
    this.#message = {
      role: "assistant", stopReason: "pending", content: [], api: model.api, provider: model.provider, model: model.id, usage: emptyUsage(), timestamp: Date.now(),
    };
  }

  /** Takes in an event; gives back the one that consumers see, if there is one. Throws where it does not fit what came before. */
  take(event: ProxyEvent): AssistantMessageEvent | undefined {
    const [kind, step] = event.type.split("_");
    if (kind === "text" || kind === "thinking" || kind === "toolcall") {
      if (step === "start") return this.#begin(kind, event);
      if (step === "delta") return this.#grow(kind, event);
      if (step === "end") return this.#close(kind, event);
    }
    switch (event.type) {
      case "start":
        return { type: "start", partial: this.#message };
      case "done":
        this.#finish(event);
        return { type: "done", reason: event.reason, message: this.#message };
      case "error":
        this.#finish(event);
        if (event.errorMessage !== undefined) this.#message.errorMessage = event.errorMessage;
        return { type: "error", reason: event.reason, error: this.#message };
      default:
        console.warn(`Unhandled proxy event type: ${event.type}`);
        return undefined;
    }
  }

  /** The event of an answer that did not come to its end. What there is of it stays. */
  failed(reason: "aborted" | "error", errorMessage: string): AssistantMessageEvent {
    Object.assign(this.#message, { stopReason: reason, errorMessage });
    return { type: "error", reason, error: this.#message };
  }

  #finish({ reason, usage, providerThinkingLevel }: ProxyEvent): void {
    Object.assign(this.#message, { stopReason: reason, usage }, providerThinkingLevel === undefined ? {} : { providerThinkingLevel });
  }

  #begin(kind: "text" | "thinking" | "toolcall", { type, contentIndex, id, toolName }: ProxyEvent): AssistantMessageEvent {
    if (kind === "toolcall") {
      this.#arguments.set(contentIndex, new ToolCallArgumentsStream());
      this.#message.content[contentIndex] = { type: "toolCall", id, name: toolName, arguments: {}, partialJson: "" };
    } else {
      this.#message.content[contentIndex] = kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "" };
    }
    return { type, contentIndex, partial: this.#message };
  }

  #grow(kind: "text" | "thinking" | "toolcall", { type, contentIndex, delta }: ProxyEvent): AssistantMessageEvent {
    const block = this.#block(kind, type, contentIndex);
    if (block.type === "text") block.text += delta;
    else if (block.type === "thinking") block.thinking += delta;
    else {
      const stream = this.#arguments.get(contentIndex) as ToolCallArgumentsStream;
      // Another object, so that whoever compares blocks by identity sees that it changed.
      this.#message.content[contentIndex] = { ...block, arguments: stream.append(delta), partialJson: stream.text };
    }
    return { type, contentIndex, delta, partial: this.#message };
  }

  #close(kind: "text" | "thinking" | "toolcall", { type, contentIndex, contentSignature, toolCall }: ProxyEvent): AssistantMessageEvent | undefined {
    if (kind === "toolcall") {
      const block = this.#message.content[contentIndex];
      if (block?.type !== "toolCall") return undefined;
      Object.assign(block, toolCall);
      delete block["partialJson"];
      this.#arguments.delete(contentIndex);
      return { type, contentIndex, toolCall: block, partial: this.#message };
    }
    const block = this.#block(kind, type, contentIndex);
    const signature = contentSignature === undefined ? {} : { [`${kind}Signature`]: contentSignature };
    Object.assign(block, signature);
    return { type, contentIndex, content: block.type === "text" ? block.text : (block as { thinking: string }).thinking, partial: this.#message };
  }

  /** The block that an event is about. */
  #block(kind: "text" | "thinking" | "toolcall", event: string, contentIndex: number): AssistantMessage["content"][number] {
    const block = this.#message.content[contentIndex];
    const expected = kind === "toolcall" ? "toolCall" : kind;
    if (block?.type !== expected) throw new Error(`Received ${event} for non-${expected} content`);
    return block;
  }
}
