/** What the error texts of model services mean, and retries. */
import type { AssistantMessage } from "./types.ts";

/** Texts with which services say that the prompt is too long. */
const OVERFLOW = [
  /prompt is too long/i,
  /prompt (?:exceeds|too long)/i,
  /input is too long for requested model/i,
  /request_too_large/i,
  /too many tokens/i,
  /context[_ ]length[_ ]exceeded/i,
  /maximum context length/i,
  /exceeds (?:the )?(?:model'?s )?context window/i,
  /reduce the length of the messages/i,
  /token limit exceeded/i,
  /exceeded model token limit/i,
  /input token count.*exceeds the maximum/i,
  /maximum prompt length is \d+/i,
  /too large for model with \d+ maximum context length/i,
  /prompt has \d+ tokens, but the configured context size/i,
  /exceeds (?:the )?maximum allowed input length/i,
  /exceeds the available context size/i,
  /exceed_context_size_error/i,
  /greater than the context length/i,
  /context window exceeds limit/i,
  /longer than the model'?s context length/i,
  /exceeded (?:max )?context length/i,
  /range of input length should be/i,
  /model_context_window_exceeded/i,
  /exceeds the limit of \d+/i,
  /\b413\b/,
];

/** Texts that look like an overflow and are none. */
const NOT_OVERFLOW = [/^(?:throttling error|service unavailable):/i, /rate limit/i, /too many requests/i];

/** Only Cerebras means an overflow by a status without a body. */
const EMPTY_BODY = /\b(?:400|413)\b.*no body/i;

/** How full the window is when an empty answer of the longest length counts as an overflow. */
const FULL_WINDOW = 0.99;

/** The patterns of overflow texts. */
export function getOverflowPatterns(): RegExp[] {
  return [...OVERFLOW];
}

/** Whether an answer failed, or was cut off, because the prompt did not fit. */
export function isContextOverflow(message: AssistantMessage, contextWindow?: number): boolean {
  if (message.stopReason === "error") {
    const text = message.errorMessage ?? "";
    if (NOT_OVERFLOW.some((pattern) => pattern.test(text))) return false;
    return (message.provider === "cerebras" && EMPTY_BODY.test(text)) || OVERFLOW.some((pattern) => pattern.test(text));
  }
  if (contextWindow === undefined || contextWindow <= 0) return false;
  const input = message.usage.input + message.usage.cacheRead;
  if (message.stopReason === "stop") return input > contextWindow;
  return message.stopReason === "length" && message.usage.output === 0 && input >= contextWindow * FULL_WINDOW;
}

/** Whether an answer stopped for its length before it reached the length that was asked for. */
export function isRecoverableLength(message: AssistantMessage, desiredMaxOutput: number): boolean {
  return message.stopReason === "length" && message.usage.output < desiredMaxOutput;
}

/** Limits of the account, which time does not mend. */
const NEVER_RETRIED =
  /insufficient[_ ]quota|quota (?:exceeded|exhausted)|exceeded your (?:current )?quota|(?:monthly|free)[ -](?:usage )?limit|out of budget|billing|available balance|subscription sharing|\b1308\b/i;

const RETRIED = [
  /\b(?:429|500|502|503|504|520|524)\b/,
  /overloaded|busy|at capacity|high demand|rate.?limit|too many requests|unavailable|server error|internal error|provider returned error|resource.?exhausted/i,
  /ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|connection (?:refused|reset|lost|closed|error)|socket hang up|other side closed|getaddrinfo|upstream (?:connect|request)|http\/?2|websocket|fetch failed|network error/i,
  /timed? ?out|timeout|ETIMEDOUT/i,
  /stream ended|ended without|ended early|before (?:the )?(?:message|response|terminal|completion)|premature|disconnected|terminated|interrupted|cancelled by/i,
  /please retry|try again|retry (?:your|the) request/i,
];

/** Whether a failed answer is worth another request. Overflow is to be looked at first. */
export function isRetryableAssistantError(message: AssistantMessage): boolean {
  if (message.stopReason !== "error" || !message.errorMessage) return false;
  const text = message.errorMessage;
  return !NEVER_RETRIED.test(text) && RETRIED.some((pattern) => pattern.test(text));
}

export interface RetryPolicy {
  enabled: boolean;
  maxRetries: number;
  baseDelayMs: number;
  maxAgentDelayMs?: number;
}

export const DEFAULT_MAX_AGENT_RETRY_DELAY_MS = 60_000;

/** The wait before a retry: it doubles with each one, up to the cap. */
export function retryDelayMs(policy: Pick<RetryPolicy, "baseDelayMs" | "maxAgentDelayMs">, attempt: number): number {
  return Math.min(policy.baseDelayMs * 2 ** (attempt - 1), policy.maxAgentDelayMs ?? DEFAULT_MAX_AGENT_RETRY_DELAY_MS);
}

export interface RetryCallbacks {
  onRetryScheduled?: (attempt: number, maxAttempts: number, delayMs: number, error: string) => void | Promise<void>;
  onRetryAttemptStart?: () => void | Promise<void>;
  onRetryFinished?: (success: boolean, attempt: number, finalError?: string) => void | Promise<void>;
}

/** Waits; resolves to false when the signal ends the wait. */
function wait(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal?.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const stop = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve(true);
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Makes a request, and again while it fails for reasons that pass. */
export async function retryAssistantCall(
  produce: () => Promise<AssistantMessage>,
  policy: RetryPolicy | undefined,
  signal: AbortSignal | undefined,
  callbacks: RetryCallbacks = {},
): Promise<AssistantMessage> {
  let message = await produce();
  if (!policy?.enabled) return message;
  let attempt = 0;
  while (isRetryableAssistantError(message) && attempt < policy.maxRetries) {
    attempt += 1;
    const delay = retryDelayMs(policy, attempt);
    await callbacks.onRetryScheduled?.(attempt, policy.maxRetries, delay, message.errorMessage ?? "");
    if (!(await wait(delay, signal))) {
      const aborted = { ...message, stopReason: "aborted" };
      await callbacks.onRetryFinished?.(false, attempt, message.errorMessage);
      return aborted;
    }
    await callbacks.onRetryAttemptStart?.();
    message = await produce();
  }
  if (attempt > 0) {
    const success = message.stopReason !== "error" && message.stopReason !== "aborted";
    await callbacks.onRetryFinished?.(success, attempt, success ? undefined : message.errorMessage);
  }
  return message;
}
