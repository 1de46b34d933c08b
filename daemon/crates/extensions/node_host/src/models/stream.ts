/** Model requests of extensions, served by the daemon. */
import { messageOf } from "../protocol/errors.ts";
import { isObject, type JsonObject } from "../protocol/records.ts";
import { PartialMessage } from "../messages/partial.ts";
import type { CallOptions } from "../services.ts";
import { EventStream } from "./event_stream.ts";
import type { ModelInfo } from "./types.ts";

type Call = (method: string, params: object, opts: CallOptions) => Promise<unknown>;

export type AssistantStream = EventStream<JsonObject, JsonObject>;

/** Streams a request. Never rejects: failures end the stream with an error message, as streams of pi do. */
export function streamModel(call: Call, model: ModelInfo, context: unknown, options: JsonObject | undefined, simple: boolean): AssistantStream {
  const stream: AssistantStream = new EventStream();
  const { signal, data } = splitOptions(options);
  let partial = new PartialMessage(emptyMessage(model));
  const onEvent = (event: unknown) => {
    if (!isObject(event)) return;
    if (event["type"] === "done" || event["type"] === "error") return;
    if (event["type"] === "start" && isObject(event["message"])) partial = new PartialMessage(event["message"]);
    partial.apply(event);
    const { message: _message, ...rest } = event;
    stream.push({ ...rest, partial: partial.snapshot() });
  };
  const opts: CallOptions = { onEvent };
  if (signal !== undefined) opts.signal = signal;
  call("model.stream", { model, context, options: data, simple }, opts).then(
    (value) => finish(stream, isObject(value) ? value : emptyMessage(model)),
    (error) => finish(stream, failedMessage(model, messageOf(error), signal?.aborted === true)),
  );
  return stream;
}

function finish(stream: AssistantStream, message: JsonObject): void {
  const reason = message["stopReason"];
  if (reason === "error" || reason === "aborted") stream.push({ type: "error", reason, error: message });
  else stream.push({ type: "done", reason, message });
  stream.end(message);
}

/** Functions among the options cannot cross; the signal travels as `cancel`. */
function splitOptions(options: JsonObject | undefined): { signal: AbortSignal | undefined; data: JsonObject } {
  const data: JsonObject = {};
  for (const [key, value] of Object.entries(options ?? {})) {
    if (key !== "signal" && typeof value !== "function") data[key] = value;
  }
  const signal = options?.["signal"];
  return { signal: signal instanceof AbortSignal ? signal : undefined, data };
}

function emptyMessage(model: ModelInfo): JsonObject {
  return {
    role: "assistant",
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: emptyUsage(),
    stopReason: "pending",
    timestamp: Date.now(),
  };
}

function emptyUsage(): JsonObject {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
}

function failedMessage(model: ModelInfo, errorMessage: string, aborted: boolean): JsonObject {
  return { ...emptyMessage(model), stopReason: aborted ? "aborted" : "error", errorMessage };
}
