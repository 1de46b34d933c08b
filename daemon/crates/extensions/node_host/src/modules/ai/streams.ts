/**
 * Model requests.
 *
 * The daemon makes them: it has the adapters of the services and the credentials. Functions among the options
 * cannot cross to it (`onPayload`, `onResponse`, `onProviderStreamEvent`, `fetch`); a signal can. Requests
 * for an api that an extension has registered itself stay within the process.
 */
import { PartialMessage } from "../../messages/partial.ts";
import type { HostServices } from "../../services.ts";
import { formatThrownValue } from "./diagnostics.ts";
import { AssistantMessageEventStream } from "./event_stream.ts";
import { normalizeContext } from "./transcript.ts";
import { type AssistantMessage, type AssistantMessageEvent, type Context, emptyUsage, type Model } from "./types.ts";

export interface StreamOptions {
  signal?: AbortSignal;
  [name: string]: unknown;
}

type StreamFunction = (model: Model, context: Context, options?: StreamOptions) => AsyncIterable<AssistantMessageEvent>;

/** The two ways to make a request of one api. */
export interface ProviderStreams {
  stream: StreamFunction;
  streamSimple: StreamFunction;
  [name: string]: unknown;
}

export interface ApiProvider extends ProviderStreams {
  api: string;
}

/** The apis that the daemon has adapters of. */
export const BUILT_IN_APIS = [
  "anthropic-messages",
  "openai-completions",
  "openai-responses",
  "openai-codex-responses",
  "azure-openai-responses",
  "google-generative-ai",
  "google-vertex",
  "mistral-conversations",
  "bedrock-converse-stream",
  "pi-messages",
] as const;

function pendingMessage(model: Model): AssistantMessage {
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

function failedMessage(model: Model, error: unknown, aborted: boolean): AssistantMessage {
  return { ...pendingMessage(model), stopReason: aborted ? "aborted" : "error", errorMessage: formatThrownValue(error) };
}

/** Ends a stream by its final message, whatever it says. */
function finish(stream: AssistantMessageEventStream, message: AssistantMessage): void {
  const reason = message.stopReason;
  if (reason === "error" || reason === "aborted") stream.push({ type: "error", reason, error: message });
  else stream.push({ type: "done", reason, message });
  stream.end();
}

/** Options without what cannot be told to the daemon. */
function plainOptions(options: StreamOptions | undefined): Record<string, unknown> {
  const { signal: _signal, telemetry: _telemetry, ...rest } = options ?? {};
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value !== "function"));
}

function isMessage(value: unknown): value is AssistantMessage {
  return typeof value === "object" && value !== null && (value as { role?: unknown }).role === "assistant";
}

/** Makes a request through the daemon. Failures end the stream; nothing is thrown. */
function streamThroughDaemon(
  services: HostServices,
  model: Model,
  context: Context,
  options: StreamOptions | undefined,
  simple: boolean,
  api: string | undefined,
): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  let partial = new PartialMessage({ ...pendingMessage(model) });
  const onEvent = (event: unknown): void => {
    if (typeof event !== "object" || event === null) return;
    const { message, ...rest } = event as AssistantMessageEvent & Record<string, unknown>;
    // The final message comes as the result of the call.
    if (rest.type === "done" || rest.type === "error") return;
    if (rest.type === "start" && isMessage(message)) partial = new PartialMessage({ ...message });
    partial.apply(rest);
    stream.push({ ...rest, partial: partial.snapshot() as unknown as AssistantMessage });
  };
  const params = {
    model,
    context: normalizeContext(context),
    options: plainOptions(options),
    simple,
    ...(api === undefined ? {} : { api }),
  };
  const signal = options?.signal;
  services.call("model.stream", params, signal ? { signal, onEvent } : { onEvent }).then(
    (value) => finish(stream, isMessage(value) ? value : failedMessage(model, "No message in the daemon's answer", false)),
    (error: unknown) => finish(stream, failedMessage(model, error, signal?.aborted === true)),
  );
  return stream;
}

/** An api that is loaded when it is first used. */
export function lazyApi(load: () => Promise<ProviderStreams>): ProviderStreams {
  let loaded: Promise<ProviderStreams> | undefined;
  const through =
    (name: "stream" | "streamSimple"): StreamFunction =>
    (model, context, options) =>
      lazyStream(model, async () => (await (loaded ??= load()))[name](model, context, options), undefined, options?.signal);
  return { stream: through("stream"), streamSimple: through("streamSimple") };
}

/** A stream whose source takes time to set up. */
export function lazyStream(
  model: Model,
  setup: () => Promise<AsyncIterable<AssistantMessageEvent>>,
  observer?: { onEvent?(event: AssistantMessageEvent): void; onResult?(result: AssistantMessage | undefined): void },
  signal?: AbortSignal,
): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  const forward = async (): Promise<void> => {
    try {
      for await (const event of await setup()) {
        observer?.onEvent?.(event);
        stream.push(event);
      }
      stream.end();
    } catch (error) {
      finish(stream, failedMessage(model, error, signal?.aborted === true));
    }
  };
  void forward();
  if (observer?.onResult) void stream.result().then((result) => observer.onResult?.(result));
  return stream;
}

/** Everything that makes requests, bound to a daemon. */
export class ModelRequests {
  readonly #services: HostServices;
  #registered = new Map<string, { provider: ApiProvider; sourceId: string | undefined }>();

  constructor(services: HostServices) {
    this.#services = services;
  }

  /** The adapter of one api, whichever provider the model names. */
  api(api: string): ProviderStreams {
    const through =
      (simple: boolean): StreamFunction =>
      (model, context, options) =>
        streamThroughDaemon(this.#services, model, context, options, simple, api);
    return { stream: through(false), streamSimple: through(true) };
  }

  register(provider: ApiProvider, sourceId?: string): void {
    this.#registered.set(provider.api, { provider, sourceId });
  }

  unregister(sourceId: string): void {
    for (const [api, entry] of this.#registered) if (entry.sourceId === sourceId) this.#registered.delete(api);
  }

  reset(): void {
    this.#registered.clear();
  }

  find(api: string): ApiProvider | undefined {
    const registered = this.#registered.get(api)?.provider;
    if (registered) return registered;
    return (BUILT_IN_APIS as readonly string[]).includes(api) ? { api, ...this.api(api) } : undefined;
  }

  all(): ApiProvider[] {
    const names = new Set<string>([...BUILT_IN_APIS, ...this.#registered.keys()]);
    return [...names].flatMap((api) => this.find(api) ?? []);
  }

  stream(model: Model, context: Context, options: StreamOptions | undefined, simple: boolean): AssistantMessageEventStream {
    const registered = this.#registered.get(model.api)?.provider;
    if (!registered) return streamThroughDaemon(this.#services, model, context, options, simple, undefined);
    const source = simple ? registered.streamSimple : registered.stream;
    const normalized = normalizeContext(context);
    return lazyStream(model, async () => source(model, normalized, options), undefined, options?.signal);
  }
}
