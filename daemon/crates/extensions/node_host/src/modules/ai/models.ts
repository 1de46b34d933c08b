/** Arithmetic over models: costs and thinking levels. Pure. */
import type { CostRates, Model, Usage } from "./types.ts";

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
/** Levels that a model has only when its map names them. */
const OPTIONAL_LEVELS = new Set<string>(["xhigh", "max"]);
const PER_TOKENS = 1_000_000;
/** Writes with a retention of an hour cost this many times the input price. */
const LONG_WRITE_FACTOR = 2;

/** Prices for a request of so many input tokens; those of the highest tier that it reaches. */
function ratesFor(model: Model, inputTokens: number): CostRates {
  let rates: CostRates = model.cost;
  let above = -1;
  for (const tier of model.cost.tiers ?? []) {
    if (inputTokens > tier.inputTokensAbove && tier.inputTokensAbove > above) {
      rates = tier;
      above = tier.inputTokensAbove;
    }
  }
  return rates;
}

/** Fills in and returns the cost of usage, in US dollars. */
export function calculateCost(model: Model, usage: Usage): Usage["cost"] {
  const rates = ratesFor(model, usage.input + usage.cacheRead + usage.cacheWrite);
  const longWrites = usage.cacheWrite1h ?? 0;
  const cost = usage.cost;
  cost.input = (rates.input / PER_TOKENS) * usage.input;
  cost.output = (rates.output / PER_TOKENS) * usage.output;
  cost.cacheRead = (rates.cacheRead / PER_TOKENS) * usage.cacheRead;
  cost.cacheWrite =
    (rates.cacheWrite * (usage.cacheWrite - longWrites) + rates.input * LONG_WRITE_FACTOR * longWrites) / PER_TOKENS;
  cost.total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
  cost.totalFromProvider = false;
  return cost;
}

/** The thinking levels of a model, from low to high. */
export function getSupportedThinkingLevels(model: Model): string[] {
  if (!model.reasoning) return ["off"];
  const map = model.thinkingLevelMap ?? {};
  return LEVELS.filter((level) => {
    if (map[level] === null) return false;
    return OPTIONAL_LEVELS.has(level) ? map[level] !== undefined : true;
  });
}

/** The level of a model that comes nearest: the same, else the next higher one, else the highest below. */
export function clampThinkingLevel(model: Model, level: string): string {
  const supported = getSupportedThinkingLevels(model);
  if (supported.includes(level)) return level;
  const lowest = supported[0] ?? "off";
  const wanted = LEVELS.indexOf(level as (typeof LEVELS)[number]);
  if (wanted < 0) return lowest;
  const rank = (name: string): number => LEVELS.indexOf(name as (typeof LEVELS)[number]);
  return supported.find((name) => rank(name) > wanted) ?? supported.at(-1) ?? lowest;
}

export function getModelType(model: { type?: string }): string {
  return model.type ?? "chat";
}

export function isModelType(model: { type?: string }, type: string): boolean {
  return getModelType(model) === type;
}

export function hasApi(model: { api: string }, api: string): boolean {
  return model.api === api;
}

type ModelKey = { id: string; provider: string } | null | undefined;

export function modelsAreEqual(first: ModelKey, second: ModelKey): boolean {
  return !!first && !!second && first.id === second.id && first.provider === second.provider;
}

/** An error of a collection of models: `code` tells of which kind. */
export class ModelsError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "ModelsError";
    this.code = code;
  }
}
