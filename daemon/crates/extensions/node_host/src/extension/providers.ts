/** The part of `pi` that registers providers, virtual models and MCP servers. */
import type { AnyFunction } from "../host/callbacks.ts";
import { isObject, type JsonObject } from "../protocol/records.ts";
import type { Extension } from "./extension.ts";
import { checkMcpServer, mcpNamespace } from "./mcp_config.ts";
import { type Actor, actorOf, type HostPort } from "./port.ts";

/** Data fields of a provider object; functions besides these cross as callbacks. */
const NATIVE_DATA = ["id", "name", "baseUrl", "headers"] as const;

const VIRTUAL_DATA = ["provider", "id", "name", "thinkingLevels", "contextWindow", "maxTokens", "input"] as const;

/** Registers at once. Throws what pi throws for an invalid definition. */
export class ProviderRegistrar {
  constructor(private readonly host: HostPort) {}

  registerProvider(actor: Actor, providerOrName: unknown, config: unknown): void {
    if (typeof providerOrName === "string") this.registerConfig(actor, providerOrName, config);
    else this.registerNative(actor, providerOrName);
  }

  unregisterProvider(actor: Actor, name: string): void {
    actor.generation.providers.delete(name);
    this.host.note(actor, "unregister", { kind: "provider", name });
  }

  registerVirtualModel(actor: Actor, model: unknown): void {
    if (!isObject(model)) throw new Error("Virtual model provider and id must not be empty.");
    const { provider, id } = model;
    if (typeof provider !== "string" || typeof id !== "string" || !provider.trim() || !id.trim()) {
      throw new Error("Virtual model provider and id must not be empty.");
    }
    const data: JsonObject = {};
    for (const field of VIRTUAL_DATA) if (model[field] !== undefined) data[field] = model[field];
    const route = model["route"] as AnyFunction;
    const { cb } = this.host.callbacks.add(route.bind(model) as AnyFunction, owner(actor), { kind: "route" });
    this.host.note(actor, "register", { kind: "virtualModel", model: data, cb });
  }

  unregisterVirtualModel(actor: Actor, provider: string, id: string): void {
    this.host.note(actor, "unregister", { kind: "virtualModel", provider, id });
  }

  private registerConfig(actor: Actor, name: string, config: unknown): void {
    if (!isObject(config)) throw new Error("Provider config is required when registering by name");
    if (config["streamSimple"] !== undefined && !config["api"]) {
      throw new Error(`Provider ${name}: "api" is required when registering streamSimple.`);
    }
    actor.generation.providers.set(name, mergeDefined(actor.generation.providers.get(name), config));
    this.host.note(actor, "register", { kind: "provider", name, config: this.host.callbacks.encode(config, owner(actor)) });
  }

  private registerNative(actor: Actor, provider: unknown): void {
    if (!isObject(provider) || typeof provider["id"] !== "string" || !provider["id"].trim()) {
      throw new Error("Provider id must not be empty.");
    }
    const data: JsonObject = this.host.callbacks.encodeMethods(provider, owner(actor));
    for (const field of NATIVE_DATA) if (provider[field] !== undefined) data[field] = provider[field];
    const list = (provider["getAllModels"] ?? provider["getModels"]) as (() => unknown) | undefined;
    data["models"] = list?.call(provider) ?? [];
    const name = provider["id"];
    actor.generation.providers.set(name, provider);
    this.host.note(actor, "register", { kind: "provider", name, native: true, provider: data });
  }
}

/** A provider that is registered again keeps what the new config leaves open. */
function mergeDefined(previous: unknown, config: JsonObject): JsonObject {
  const merged: JsonObject = isObject(previous) && typeof previous["getModels"] !== "function" ? { ...previous } : {};
  for (const [key, value] of Object.entries(config)) if (value !== undefined) merged[key] = value;
  return merged;
}

function owner(actor: Actor) {
  return { ext: actor.ext, epoch: actor.generation.epoch };
}

export function createProviderApi(host: HostPort, registrar: ProviderRegistrar, extension: Extension) {
  const { generation } = extension;
  const actor = actorOf(extension);
  /** What fails after the factory, as pi does when it binds, is an error of the extension, not of the load. */
  const later = (event: string, change: () => void) => {
    const whileLoading = extension.loading;
    extension.apply(() => {
      if (!whileLoading) return change();
      try {
        change();
      } catch (error) {
        host.reportError(actor, event, error);
      }
    });
  };

  return {
    registerProvider(providerOrName: unknown, config?: unknown): void {
      extension.assertActive();
      if (typeof providerOrName === "string" && !config) throw new Error("Provider config is required when registering by name");
      later("register_provider", () => registrar.registerProvider(actor, providerOrName, config));
    },

    unregisterProvider(name: string): void {
      extension.assertActive();
      later("register_provider", () => registrar.unregisterProvider(actor, name));
    },

    registerVirtualModel(model: unknown): void {
      extension.assertActive();
      later("register_virtual_model", () => registrar.registerVirtualModel(actor, model));
    },

    unregisterVirtualModel(provider: string, id: string): void {
      extension.assertActive();
      later("register_virtual_model", () => registrar.unregisterVirtualModel(actor, provider, id));
    },

    registerMcpServer(name: string, raw: unknown): void {
      extension.assertActive();
      const config = checkMcpServer(name, raw);
      if (typeof config === "string") throw new Error(`Invalid MCP server registered by extension "${extension.path}": ${config}`);
      const known = generation.mcpServers.get(name);
      if (known !== undefined && known.extensionPath !== extension.path) {
        throw new Error(`MCP server "${name}" is already registered by extension "${known.extensionPath}"`);
      }
      for (const other of generation.mcpServers.values()) {
        if (other.name !== name && mcpNamespace(other.name) === mcpNamespace(name)) {
          throw new Error(`MCP server "${name}" conflicts with registered server "${other.name}"`);
        }
      }
      const copy = structuredClone(config);
      extension.apply(() => {
        generation.mcpServers.set(name, { name, config: copy, extensionPath: extension.path });
        host.note(actor, "register", { kind: "mcpServer", name, config: copy });
      });
    },

    unregisterMcpServer(name: string): void {
      extension.assertActive();
      extension.apply(() => {
        if (generation.mcpServers.get(name)?.extensionPath !== extension.path) return;
        generation.mcpServers.delete(name);
        host.note(actor, "unregister", { kind: "mcpServer", name });
      });
    },

    getMcpServers(): unknown[] {
      extension.assertActive();
      return [...generation.mcpServers.values()].map((server) => ({ ...server, config: structuredClone(server.config) }));
    },
  };
}
