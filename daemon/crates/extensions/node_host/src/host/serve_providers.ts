/** Requests for providers and virtual models of extensions. */
import type { ModelInfo, ModelsValue } from "../models/types.ts";
import { resolveDeep } from "../messages/store.ts";
import { type DaemonRecord, isObject, type JsonObject, listField, numberField, objectField, ProtocolError } from "../protocol/records.ts";
import type { CallOptions } from "../services.ts";
import type { Callback } from "./callbacks.ts";
import type { Caller } from "./calls.ts";
import type { Host } from "./host.ts";
import { callbackScope, successor, withSignal } from "./serve_ops.ts";

type Run = (...args: unknown[]) => unknown;

function runIn<T>(host: Host, callback: Callback, request: DaemonRecord, run: (fn: Run) => T): T {
  return host.scopes.run(callbackScope(callback, request), () => run(callback.run as Run));
}

/** Calls the daemon about a request that it made. */
function callFor(host: Host, callback: Callback, request: DaemonRecord, signal?: AbortSignal) {
  const caller: Caller = { epoch: callback.epoch };
  if (callback.ext !== undefined) caller.ext = callback.ext;
  const opts: CallOptions = signal === undefined ? {} : { signal };
  return (method: string, params: JsonObject) => host.calls.call(caller, method, { call: request.id, ...params }, opts);
}

/** Streams an answer: events as notes, the final message as the value. */
export async function serveStream(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<{ message: unknown }> {
  const callback = host.callbacks.get(numberField(request, "cb"));
  const context = resolveDeep(host.messages, request["context"]);
  const options = { ...optionsOf(request), ...streamHooks(host, callback, request), signal };
  const stream = (await runIn(host, callback, request, (run) => run(request["model"], context, options))) as AsyncIterable<JsonObject> & {
    result?(): Promise<unknown>;
  };
  let final: unknown;
  let lastUsage: unknown;
  for await (const event of stream) {
    if (event["type"] === "done") final = event["message"];
    else if (event["type"] === "error") final = event["error"];
    const { wire, usage } = wireEvent(event, lastUsage);
    lastUsage = usage;
    host.out.send({ type: "provider.event", call: request.id, event: wire });
  }
  if (final === undefined && typeof stream.result === "function") final = await stream.result();
  if (final === undefined) throw new Error("The stream of the provider ended without a message");
  return { message: final };
}

function optionsOf(request: DaemonRecord): JsonObject {
  return isObject(request["options"]) ? request["options"] : {};
}

/** The callbacks of a stream that the daemon asked for by name in `hooks`. */
function streamHooks(host: Host, callback: Callback, request: DaemonRecord): JsonObject {
  const wanted = new Set(Array.isArray(request["hooks"]) ? request["hooks"] : []);
  const call = callFor(host, callback, request);
  const hooks: JsonObject = {};
  if (wanted.has("payload")) {
    hooks["onPayload"] = async (payload: unknown) => {
      const answer = await call("provider.payload", { payload });
      return isObject(answer) ? answer["payload"] : undefined;
    };
  }
  if (wanted.has("response")) {
    hooks["onResponse"] = async (response: JsonObject) => {
      await call("provider.response", { status: response["status"], headers: plainHeaders(response["headers"]) });
    };
  }
  if (wanted.has("streamEvent")) {
    hooks["onProviderStreamEvent"] = async (data: unknown) => {
      await call("provider.streamEvent", { data });
    };
  }
  return hooks;
}

function plainHeaders(headers: unknown): unknown {
  return headers instanceof Headers ? Object.fromEntries(headers) : headers;
}

/** The event without the message so far; what only the message says is added where the daemon needs it. */
function wireEvent(event: JsonObject, lastUsage: unknown): { wire: JsonObject; usage: unknown } {
  const { partial, message: _message, error: _error, ...wire } = event;
  if (!isObject(partial)) return { wire, usage: lastUsage };
  if (event["type"] === "start") wire["message"] = { ...partial, content: [] };
  if (event["type"] === "toolcall_start") {
    const block = (partial["content"] as JsonObject[] | undefined)?.[Number(event["contentIndex"])];
    wire["id"] = block?.["id"];
    wire["toolName"] = block?.["name"];
  }
  const usage = JSON.stringify(partial["usage"]);
  if (usage !== lastUsage && event["type"] !== "start") wire["usage"] = partial["usage"];
  return { wire, usage };
}

export async function serveRefresh(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<unknown> {
  const callback = host.callbacks.get(numberField(request, "cb"));
  const call = callFor(host, callback, request);
  const context: JsonObject = { ...(isObject(request["context"]) ? request["context"] : {}), signal };
  context["publish"] = (update: unknown) => call("provider.publish", { update });
  const models = await runIn(host, callback, request, (run) => run(context));
  return { models };
}

/** Steps of a login and what follows from it. */
export async function serveOauth(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<unknown> {
  const callback = host.callbacks.get(numberField(request, "cb"));
  return runIn(host, callback, request, (run) => {
    switch (request["step"]) {
      case "login":
        return run(loginCallbacks(host, callback, request, signal));
      case "refresh":
        return run(request["credential"], signal);
      case "apiKey":
        return run(request["credential"]);
      case "modifyModels":
        return run(request["models"], request["credential"]);
      default:
        throw new ProtocolError(`provider.oauth: unknown step "${String(request["step"])}"`);
    }
  });
}

function loginCallbacks(host: Host, callback: Callback, request: DaemonRecord, signal: AbortSignal): JsonObject {
  const call = callFor(host, callback, request, signal);
  const ask = (kind: string, fields: JsonObject) => call("oauth.prompt", { kind, ...fields });
  /** What only informs the user is not waited for; a failure shows at the next question. */
  const tell = (kind: string, fields: JsonObject): void => {
    ask(kind, fields).catch((error) => host.reportError({ ...successor(host, callback) }, "oauth", error));
  };
  return {
    signal,
    onAuth: (info: JsonObject) => tell("auth", { ...info }),
    onDeviceCode: (info: JsonObject) => tell("deviceCode", { ...info }),
    onProgress: (message: string) => tell("progress", { message }),
    onPrompt: (prompt: JsonObject) => ask("prompt", { ...prompt }),
    onSelect: (prompt: JsonObject) => ask("select", { ...prompt }),
    onManualCodeInput: () => ask("manualCode", {}),
  };
}

/** Any other function of a provider, with its arguments as they stand. */
export async function serveProviderCall(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<unknown> {
  const callback = host.callbacks.get(numberField(request, "cb"));
  const args = withSignal(listField(request, "args"), signal).map((arg) => resolveSafely(host, arg));
  const value = await runIn(host, callback, request, (run) => run(...args));
  return host.callbacks.encode(value, callback);
}

function resolveSafely(host: Host, arg: unknown): unknown {
  return isObject(arg) && arg["signal"] instanceof AbortSignal ? arg : resolveDeep(host.messages, arg);
}

/** Asks a virtual model's router for the model of one request. */
export async function serveRoute(host: Host, request: DaemonRecord, signal: AbortSignal): Promise<JsonObject> {
  const callback = host.callbacks.get(numberField(request, "cb"));
  const route = routeRequest(host, objectField(request, "request"), signal);
  const ctx = host.contexts.event(successor(host, callback));
  const value = await runIn(host, callback, request, (run) => run(route, ctx));
  if (!isObject(value) || !isObject(value["model"])) throw new Error("The router returned no model");
  const { model, thinkingLevel, state } = value as { model: ModelInfo; thinkingLevel: unknown; state: unknown };
  const keepState = state === undefined || state === route["state"];
  const answer: JsonObject = { provider: model.provider, modelId: model.id, thinkingLevel, keepState };
  if (!keepState) answer["state"] = state;
  return answer;
}

/** Models stand in the request whole, or as `{provider, id}`. */
function routeRequest(host: Host, data: JsonObject, signal: AbortSignal): JsonObject {
  const request: JsonObject = { ...data, messages: resolveDeep(host.messages, data["messages"]) };
  if (data["signal"] === true) request["signal"] = signal;
  request["model"] = wholeModel(host, data["model"]);
  for (const key of ["previous", "failed"]) {
    const past = data[key];
    if (isObject(past)) request[key] = { ...past, model: wholeModel(host, past["model"]) };
  }
  return request;
}

function wholeModel(host: Host, model: unknown): unknown {
  if (!isObject(model) || model["api"] !== undefined) return model;
  const { models } = (host.mirror.topic("models") ?? { models: [], providers: {} }) as ModelsValue;
  return models.find((known) => known.provider === model["provider"] && known.id === model["id"]) ?? model;
}
