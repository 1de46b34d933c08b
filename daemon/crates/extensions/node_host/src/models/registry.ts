/** `ctx.modelRegistry`: the catalogue, credentials and model requests, over the daemon. */
import { messageOf } from "../protocol/errors.ts";
import { isObject, type JsonObject } from "../protocol/records.ts";
import type { CallOptions } from "../services.ts";
import { type AssistantStream, streamModel } from "./stream.ts";
import { type ModelInfo, modelRef, type ModelsValue, type ProviderInfo } from "./types.ts";

/** What the registry needs of the host. */
export interface RegistryPort {
  models(): ModelsValue;
  call(method: string, params: object, opts?: CallOptions): Promise<unknown>;
  registerProvider(providerOrName: unknown, config?: unknown): void;
  unregisterProvider(name: string): void;
  registerVirtualModel(model: unknown): void;
  unregisterVirtualModel(provider: string, id: string): void;
  registeredProviders(): ReadonlyMap<string, unknown>;
}

interface RequestAuth extends JsonObject {
  ok: boolean;
  apiKey?: string;
}

export class ModelRegistry {
  constructor(private readonly port: RegistryPort) {}

  getAll(): ModelInfo[] {
    return this.getModelsOfType("chat");
  }

  getAvailable(): ModelInfo[] {
    const { models, providers } = this.port.models();
    return models.filter((model) => typeOf(model) === "chat" && providers[model.provider]?.configured === true);
  }

  find(provider: string, modelId: string): ModelInfo | undefined {
    return this.getModelOfType("chat", provider, modelId);
  }

  findOfType(type: string, provider: string, modelId: string): ModelInfo | undefined {
    return this.getModelOfType(type, provider, modelId);
  }

  getModelOfType(type: string, provider: string, modelId: string): ModelInfo | undefined {
    return this.port.models().models.find((model) => typeOf(model) === type && model.provider === provider && model.id === modelId);
  }

  getModelsOfType(type: string, provider?: string): ModelInfo[] {
    return this.port.models().models.filter((model) => typeOf(model) === type && (provider === undefined || model.provider === provider));
  }

  async getAvailableOfType(type: string, provider?: string): Promise<ModelInfo[]> {
    const { providers } = this.port.models();
    return this.getModelsOfType(type, provider).filter((model) => providers[model.provider]?.configured === true);
  }

  hasConfiguredAuth(model: ModelInfo): boolean {
    return this.provider(model.provider)?.configured === true;
  }

  isUsingOAuth(model: ModelInfo): boolean {
    return this.provider(model.provider)?.oauth === true;
  }

  getProviderAuthStatus(provider: string): { configured: boolean; source?: string } {
    const info = this.provider(provider);
    const status: { configured: boolean; source?: string } = { configured: info?.configured === true };
    if (info?.source !== undefined) status.source = info.source;
    return status;
  }

  getProviderDisplayName(provider: string): string {
    return this.provider(provider)?.name ?? provider;
  }

  getProvider(provider: string): JsonObject | undefined {
    const info = this.provider(provider);
    if (info === undefined) return undefined;
    const own = (type?: string) => this.port.models().models.filter((model) => model.provider === provider && (type === undefined || typeOf(model) === type));
    return {
      id: provider,
      name: info.name ?? provider,
      getModels: () => own("chat"),
      getAllModels: () => own(),
      stream: (model: ModelInfo, context: unknown, options?: JsonObject) => this.stream(model, context, options),
      streamSimple: (model: ModelInfo, context: unknown, options?: JsonObject) => this.streamSimple(model, context, options),
    };
  }

  getError(): string | undefined {
    return this.port.models().error;
  }

  async refresh(options: JsonObject = {}): Promise<unknown> {
    const { signal, ...rest } = options;
    const opts: CallOptions = signal instanceof AbortSignal ? { signal } : {};
    const result = await this.port.call("model.refresh", rest, opts);
    const { aborted, errors } = isObject(result) ? result : ({} as JsonObject);
    return { aborted: aborted === true, errors: new Map(Object.entries(isObject(errors) ? errors : {})) };
  }

  async getApiKeyAndHeaders(model: ModelInfo): Promise<RequestAuth> {
    try {
      return (await this.port.call("model.auth", modelRef(model))) as RequestAuth;
    } catch (error) {
      return { ok: false, error: messageOf(error) };
    }
  }

  async getApiKeyForProvider(provider: string): Promise<string | undefined> {
    try {
      const auth = (await this.port.call("model.auth", { provider })) as RequestAuth;
      return auth.ok ? auth.apiKey : undefined;
    } catch {
      return undefined;
    }
  }

  async getProviderAuth(provider: string): Promise<JsonObject | undefined> {
    const auth = (await this.port.call("model.auth", { provider })) as RequestAuth;
    if (!auth.ok) return undefined;
    const { ok: _ok, env, ...rest } = auth;
    const result: JsonObject = { auth: rest };
    if (env !== undefined) result["env"] = env;
    return result;
  }

  stream(model: ModelInfo, context: unknown, options?: JsonObject): AssistantStream {
    return streamModel((method, params, opts) => this.port.call(method, params, opts), model, context, options, false);
  }

  streamSimple(model: ModelInfo, context: unknown, options?: JsonObject): AssistantStream {
    return streamModel((method, params, opts) => this.port.call(method, params, opts), model, context, options, true);
  }

  complete(model: ModelInfo, context: unknown, options?: JsonObject): Promise<JsonObject> {
    return this.stream(model, context, options).result();
  }

  /** Never rejects. */
  classify(model: ModelInfo, context: unknown, options: JsonObject = {}): Promise<unknown> {
    return this.settled("model.classify", model, context, options, { answers: {} });
  }

  /** Never rejects. */
  generateImages(model: ModelInfo, context: unknown, options: JsonObject = {}): Promise<unknown> {
    return this.settled("model.images", model, context, options, { output: [] });
  }

  registerProvider(providerOrName: unknown, config?: unknown): void {
    this.port.registerProvider(providerOrName, config);
  }

  unregisterProvider(name: string): void {
    this.port.unregisterProvider(name);
  }

  registerVirtualModel(model: unknown): void {
    this.port.registerVirtualModel(model);
  }

  unregisterVirtualModel(provider: string, id: string): void {
    this.port.unregisterVirtualModel(provider, id);
  }

  getRegisteredProviderIds(): string[] {
    return [...this.port.registeredProviders().keys()];
  }

  getRegisteredProviderConfig(name: string): unknown {
    const config = this.port.registeredProviders().get(name);
    return isNative(config) ? undefined : config;
  }

  getRegisteredNativeProvider(name: string): unknown {
    const config = this.port.registeredProviders().get(name);
    return isNative(config) ? config : undefined;
  }

  private provider(id: string): ProviderInfo | undefined {
    const { providers } = this.port.models();
    return Object.hasOwn(providers, id) ? providers[id] : undefined;
  }

  private async settled(method: string, model: ModelInfo, context: unknown, options: JsonObject, nothing: JsonObject): Promise<unknown> {
    const { signal, ...rest } = options;
    const opts: CallOptions = signal instanceof AbortSignal ? { signal } : {};
    try {
      return await this.port.call(method, { model, context, options: rest }, opts);
    } catch (error) {
      const stopReason = opts.signal?.aborted === true ? "aborted" : "error";
      return { api: model.api, provider: model.provider, model: model.id, ...nothing, stopReason, errorMessage: messageOf(error), timestamp: Date.now() };
    }
  }
}

/** Native providers are objects with methods; configs are registered by name. */
function isNative(config: unknown): boolean {
  return isObject(config) && typeof config["getModels"] === "function";
}

function typeOf(model: ModelInfo): string {
  return model.type ?? "chat";
}
