/**
 * `ModelRuntime`: models and credentials of agents that an extension runs.
 *
 * Both are the daemon's: its catalogue, the user's models and keys. Providers that are registered here count for the requests of this object's
 * agents; keys that are set here are handed over when a session is opened.
 */
import { resolve } from "node:path";
import { ModelRegistry } from "../../../models/registry.ts";
import type { ModelInfo, ModelsValue, ProviderInfo } from "../../../models/types.ts";
import { isObject, type JsonObject } from "../../../protocol/records.ts";
import type { HostServices } from "../../../services.ts";
import { NotAvailableError } from "../../unavailable.ts";

export interface CreateModelRuntimeOptions {
  authPath?: string;
  modelsPath?: string | null;
  [name: string]: unknown;
}

/** Options of which the daemon has its own. */
const NOT_HONOURED = ["credentials", "modelsStore", "modelsStorePath", "catalogBaseUrl"];

interface Registered {
  name: string;
  /** A config by name, or a provider object. */
  value: unknown;
}

export class AgentModels extends ModelRegistry {
  readonly #services: HostServices;
  readonly #registered: Map<string, unknown>;
  readonly #keys = new Map<string, string>();
  readonly #virtual = new Map<string, JsonObject>();

  constructor(services: HostServices) {
    const registered = new Map<string, unknown>();
    const virtual = new Map<string, JsonObject>();
    super({
      models: () => withRegistered((services.readTopic("models") ?? { models: [], providers: {} }) as ModelsValue, registered, virtual),
      call: (method, params, opts) => services.call(method, params, opts),
      registerProvider: (nameOrProvider, config) => {
        if (typeof nameOrProvider === "string") registered.set(nameOrProvider, config);
        else if (isObject(nameOrProvider)) registered.set(String(nameOrProvider["id"]), nameOrProvider);
      },
      unregisterProvider: (name) => void registered.delete(name),
      registerVirtualModel: (model) => {
        if (isObject(model)) virtual.set(`${String(model["provider"])}/${String(model["id"])}`, model);
      },
      unregisterVirtualModel: (provider, id) => void virtual.delete(`${provider}/${id}`),
      registeredProviders: () => registered,
    });
    this.#services = services;
    this.#registered = registered;
    this.#virtual = virtual;
  }

  /** Providers that were registered here, for the sessions that are opened with this object. */
  registrations(): Registered[] {
    return [...this.#registered].map(([name, value]) => ({ name, value }));
  }

  virtualModels(): JsonObject[] {
    return [...this.#virtual.values()];
  }

  /** A key that was set here. */
  keyOf(provider: string): string | undefined {
    return this.#keys.get(provider);
  }

  getProviders(): unknown[] {
    return Object.keys(this.models().providers).map((id) => this.getProvider(id));
  }

  getModels(provider?: string): ModelInfo[] {
    return this.getModelsOfType("chat", provider);
  }

  getModel(provider: string, id: string): ModelInfo | undefined {
    return this.getModelOfType("chat", provider, id);
  }

  getPhysicalModel(provider: string, id: string): ModelInfo | undefined {
    const model = this.getModel(provider, id);
    return model?.api === "pi-virtual" ? undefined : model;
  }

  getAllModels(provider?: string): ModelInfo[] {
    return this.models().models.filter((model) => provider === undefined || model.provider === provider);
  }

  getAvailableSnapshot(): ModelInfo[] {
    return this.usable("chat");
  }

  async getAllAvailable(provider?: string): Promise<ModelInfo[]> {
    return this.getAllModels(provider).filter((model) => this.isConfigured(model.provider));
  }

  async checkAuth(provider: string): Promise<object | undefined> {
    if (!this.isConfigured(provider)) return undefined;
    const status = this.getProviderAuthStatus(provider);
    return { type: this.models().providers[provider]?.oauth === true ? "oauth" : "api_key", ...(status.source ? { source: status.source } : {}) };
  }

  async getAuth(providerOrModel: string | ModelInfo): Promise<unknown> {
    const provider = typeof providerOrModel === "string" ? providerOrModel : providerOrModel.provider;
    const own = this.#keys.get(provider);
    return own === undefined ? this.getProviderAuth(provider) : { auth: { apiKey: own }, source: "runtime API key" };
  }

  async setRuntimeApiKey(provider: string, apiKey: string): Promise<void> {
    this.#keys.set(provider, apiKey);
  }

  async removeRuntimeApiKey(provider: string): Promise<void> {
    this.#keys.delete(provider);
  }

  async settleCredentialWrites(): Promise<void> {}

  async listCredentials(): Promise<readonly object[]> {
    const { providers } = this.models();
    const stored = Object.entries(providers).filter(([, info]) => info.source === "stored" || info.oauth === true);
    return stored.map(([providerId, info]) => ({ providerId, type: info.oauth === true ? "oauth" : "api_key" }));
  }

  completeSimple(model: ModelInfo, context: unknown, options?: JsonObject): Promise<JsonObject> {
    return this.streamSimple(model, context, options).result();
  }

  registerNativeProvider(provider: unknown): void {
    this.registerProvider(provider);
  }

  isUsingSubscription(provider: string): boolean {
    return this.models().providers[provider]?.oauth === true;
  }

  /** Whether a provider has credentials, those that were set here included. */
  isConfigured(provider: string): boolean {
    return this.#keys.has(provider) || this.models().providers[provider]?.configured === true;
  }

  override hasConfiguredAuth(modelOrProvider: ModelInfo | string): boolean {
    return this.isConfigured(typeof modelOrProvider === "string" ? modelOrProvider : modelOrProvider.provider);
  }

  override isUsingOAuth(modelOrProvider: ModelInfo | string): boolean {
    return this.isUsingSubscription(typeof modelOrProvider === "string" ? modelOrProvider : modelOrProvider.provider);
  }

  override getError(): string | undefined {
    return this.models().error;
  }

  private models(): ModelsValue {
    return withRegistered((this.#services.readTopic("models") ?? { models: [], providers: {} }) as ModelsValue, this.#registered, this.#virtual);
  }

  private usable(type: string): ModelInfo[] {
    return this.getModelsOfType(type).filter((model) => this.isConfigured(model.provider));
  }
}

for (const name of ["login", "logout", "streamDeferred", "fetchDeferred", "cancelDeferred", "resolveModel"]) {
  Object.defineProperty(AgentModels.prototype, name, {
    value: () => {
      throw new NotAvailableError(`ModelRuntime.${name}`);
    },
  });
}

/** The catalogue with the providers and virtual models that were registered here. */
function withRegistered(value: ModelsValue, registered: ReadonlyMap<string, unknown>, virtual: ReadonlyMap<string, JsonObject>): ModelsValue {
  if (registered.size === 0 && virtual.size === 0) return value;
  let models = value.models;
  const providers: Record<string, ProviderInfo> = { ...value.providers };
  for (const [name, entry] of registered) {
    if (!isObject(entry)) continue;
    const given = typeof entry["getModels"] === "function" ? (entry["getModels"] as () => unknown).call(entry) : entry["models"];
    if (Array.isArray(given)) {
      const own = (given as JsonObject[]).map((model) => ({ ...ofProvider(entry), ...model, provider: name }) as ModelInfo);
      models = [...models.filter((model) => model.provider !== name), ...own];
    }
    const label = typeof entry["name"] === "string" ? entry["name"] : (providers[name]?.name ?? name);
    const hasKey = entry["apiKey"] !== undefined || entry["streamSimple"] !== undefined || typeof entry["getModels"] === "function";
    providers[name] = { ...providers[name], name: label, configured: hasKey || providers[name]?.configured === true };
  }
  for (const model of virtual.values()) {
    const own = { api: "pi-virtual", ...model } as unknown as ModelInfo;
    models = [...models.filter((other) => other.provider !== own.provider || other.id !== own.id), own];
    providers[own.provider] ??= { name: own.provider, configured: true };
  }
  return { ...value, models, providers };
}

/** What models of a provider have of it. */
function ofProvider(entry: JsonObject): JsonObject {
  const { api, baseUrl } = entry;
  return { ...(api === undefined ? {} : { api }), ...(baseUrl === undefined ? {} : { baseUrl }) };
}

/** Makes the class for a daemon. */
export function modelRuntimeFor(services: HostServices) {
  return class ModelRuntime extends AgentModels {
    static async create(options: CreateModelRuntimeOptions = {}): Promise<ModelRuntime> {
      const { agentDir } = services.hello;
      for (const [name, file] of [["authPath", "auth.json"], ["modelsPath", "models.json"]] as const) {
        const path = options[name];
        if (path !== undefined && (typeof path !== "string" || resolve(path) !== resolve(agentDir, file))) {
          throw new NotAvailableError(`ModelRuntime.create({ ${name} }) with another file than that of the agent directory`);
        }
      }
      for (const name of NOT_HONOURED) {
        if (options[name] !== undefined) throw new NotAvailableError(`ModelRuntime.create({ ${name} })`);
      }
      return new ModelRuntime(services);
    }
  };
}
