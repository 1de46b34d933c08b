/** Whether repeating a request to keep its prompt cached pays. Pure. */
import type { Model } from "./types.ts";

export const CACHE_WARMING_MAX_AGE_MS = 3_600_000;
export const CACHE_WARMING_MAX_IDLE_AGE_MS = 1_800_000;
export const CACHE_WARMING_MINIMUM_EXPECTED_SAVINGS = 0.05;
export const CACHE_WARMING_IDLE_CONTINUATION_PROBABILITY = 0.15;

const MARGIN = 0.1;
const MIN_MARGIN_MS = 10_000;
const PER_TOKENS = 1_000_000;

/** When to refresh an entry with this lifetime, or undefined when it is too short. */
export function getCacheWarmingDelayMs(ttlMs: number): number | undefined {
  const delay = Math.floor(ttlMs - Math.max(ttlMs * MARGIN, MIN_MARGIN_MS));
  return delay > 0 ? delay : undefined;
}

interface CacheOptions {
  cacheRetention?: "none" | "short" | "long";
  reasoning?: string;
}

/** Lifetime of the entry that a request writes, or undefined when there is none. */
export function getPromptCacheTtlMs(model: Model, options: CacheOptions | undefined): number | undefined {
  const retention = options?.cacheRetention ?? "short";
  if (retention === "none") return undefined;
  const seconds = model.promptCache?.[retention];
  return seconds === undefined ? undefined : seconds * 1000;
}

/** Whether a repetition with a smaller output limit finds the same entry. */
export function isCacheWarmingReplayable(model: Model, options: CacheOptions | undefined): boolean {
  if (model.api !== "anthropic-messages" || !options?.reasoning) return true;
  return model.compat?.forceAdaptiveThinking === true;
}

/** Options of a repetition: one token of output, no retries. */
export function getCacheWarmingRequestOptions<T extends object>(options: T, signal: AbortSignal): T {
  return { ...options, maxTokens: 1, maxRetries: 0, disableContinuation: true, signal };
}

/** Weighs the price of a refresh against the price of losing the entry. */
export function evaluateCacheWarming(
  model: Model,
  promptTokens: number,
  phase: "streaming" | "idle",
): {
  phase: string;
  warmCost: number;
  missCost: number;
  continuationProbability: number;
  expectedSavings: number;
  economicsAvailable: boolean;
  action: "warm" | "stop";
} {
  const { cost } = model;
  const priceOf = (price: number, tokens: number): number => (price / PER_TOKENS) * tokens;
  const readCost = priceOf(cost.cacheRead, promptTokens);
  const warmCost = readCost + priceOf(cost.output, 1);
  const writeCost = priceOf(cost.cacheWrite > 0 ? cost.cacheWrite : cost.input, promptTokens);
  const missCost = Math.max(0, writeCost - readCost);
  const continuationProbability = phase === "streaming" ? 1 : CACHE_WARMING_IDLE_CONTINUATION_PROBABILITY;
  const expectedSavings = continuationProbability * missCost - warmCost;
  const economicsAvailable = promptTokens > 0 && (readCost > 0 || writeCost > 0);
  const action = economicsAvailable && expectedSavings >= CACHE_WARMING_MINIMUM_EXPECTED_SAVINGS ? "warm" : "stop";
  return { phase, warmCost, missCost, continuationProbability, expectedSavings, economicsAvailable, action };
}
