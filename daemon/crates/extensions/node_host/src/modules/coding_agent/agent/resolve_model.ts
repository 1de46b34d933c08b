/** `resolveCliModel`: a model by what a user writes for it. Pure. */
import type { ModelInfo } from "../../../models/types.ts";
import type { AgentModels } from "./model_runtime.ts";

const LEVELS = new Set(["off", "minimal", "low", "medium", "high", "xhigh", "max"]);

export interface ResolvedModel {
  model: ModelInfo | undefined;
  thinkingLevel?: string;
  warning: string | undefined;
  error: string | undefined;
}

interface Request {
  cliProvider?: string;
  cliModel?: string;
  cliThinking?: string;
  modelRuntime: AgentModels;
}

type Found = { model: ModelInfo } | { ambiguous: ModelInfo[] } | undefined;

const same = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
const nameOf = (model: ModelInfo): string => `${model.provider}/${model.id}`;

/** `provider/id`, an id, or a part of one; with `:level` behind it where the whole is none. */
export function resolveCliModel({ cliProvider, cliModel, modelRuntime }: Request): ResolvedModel {
  const nothing: ResolvedModel = { model: undefined, warning: undefined, error: undefined };
  if (cliModel === undefined) return nothing;
  const all = modelRuntime.getModels();
  const usable = (model: ModelInfo) => modelRuntime.isConfigured(model.provider);
  const provider = cliProvider === undefined ? undefined : all.find((model) => same(model.provider, cliProvider))?.provider;
  if (cliProvider !== undefined && provider === undefined) {
    return { ...nothing, error: `Unknown provider "${cliProvider}". Use --list-models to see available providers/models.` };
  }
  const models = provider === undefined ? all : all.filter((model) => model.provider === provider);
  const whole = exact(cliModel, models, usable);
  const { text, level } = splitLevel(cliModel);
  const found = whole ?? (level === undefined ? undefined : exact(text, models, usable));
  const thinkingLevel = whole === undefined ? level : undefined;
  const withLevel = thinkingLevel === undefined ? {} : { thinkingLevel };
  if (found !== undefined && "model" in found) return { ...nothing, model: found.model, ...withLevel };
  if (found !== undefined) return { ...nothing, error: ambiguity(cliModel, found.ambiguous) };
  const similar = partial(text, models, usable);
  if (similar !== undefined) return { ...nothing, model: similar, ...(level === undefined ? {} : { thinkingLevel: level }) };
  return custom(text, level, provider, all) ?? { ...nothing, error: `Model "${cliModel}" not found. Use --list-models to see available models.` };
}

/** Of an id that several providers have, the one whose provider has credentials. */
function exact(text: string, models: ModelInfo[], usable: (model: ModelInfo) => boolean): Found {
  const named = models.find((model) => same(nameOf(model), text));
  if (named !== undefined) return { model: named };
  const ofId = models.filter((model) => same(model.id, text));
  if (ofId.length === 0) return undefined;
  const ready = ofId.filter(usable);
  const [only, second] = ready.length > 0 ? ready : ofId;
  return second === undefined && only !== undefined ? { model: only } : { ambiguous: ofId };
}

function ambiguity(text: string, candidates: ModelInfo[]): string {
  const names = candidates.map(nameOf).join(", ");
  return `Model "${text}" is ambiguous across providers: ${names}. No matching provider is authenticated. Use --provider or provider/model.`;
}

/** The newest of those whose id or name has the text, those with credentials first. */
function partial(text: string, models: ModelInfo[], usable: (model: ModelInfo) => boolean): ModelInfo | undefined {
  const { provider, id } = splitProvider(text, models);
  const own = provider === undefined ? models : models.filter((model) => same(model.provider, provider));
  const part = id.toLowerCase();
  const fitting = own.filter((model) => model.id.toLowerCase().includes(part) || String(model.name ?? "").toLowerCase().includes(part));
  const ready = fitting.filter(usable);
  // An alias without a date stands for its newest version; else the last name is the newest.
  const candidates = (ready.length > 0 ? ready : fitting).toSorted((one, other) => (one.id < other.id ? 1 : -1));
  return candidates.find((model) => !/-\d{8}$/.test(model.id)) ?? candidates[0];
}

/** A model that the catalogue does not have, of a provider that it has: like the provider's first. */
function custom(text: string, level: string | undefined, provider: string | undefined, all: ModelInfo[]): ResolvedModel | undefined {
  const named = splitProvider(text, all);
  const owner = provider ?? named.provider;
  const like = owner === undefined ? undefined : all.find((model) => same(model.provider, owner));
  if (like === undefined) return undefined;
  const id = provider === undefined ? named.id : text;
  return {
    model: { ...like, id, name: id },
    warning: `Model "${id}" not found for provider "${like.provider}". Using custom model id.`,
    error: undefined,
    ...(level === undefined ? {} : { thinkingLevel: level }),
  };
}

function splitProvider(text: string, models: ModelInfo[]): { provider?: string; id: string } {
  const at = text.indexOf("/");
  const name = text.slice(0, at);
  if (at <= 0 || !models.some((model) => same(model.provider, name))) return { id: text };
  return { provider: name, id: text.slice(at + 1) };
}

function splitLevel(text: string): { text: string; level?: string } {
  const at = text.lastIndexOf(":");
  const level = text.slice(at + 1);
  return at > 0 && LEVELS.has(level) ? { text: text.slice(0, at), level } : { text };
}
