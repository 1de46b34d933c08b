import type { BudgetLimits, Image, StreamingBehavior } from "./protocol.js";

/** How a prompt is sent. */
export interface PromptOptions {
  /** Images beside the text. */
  images?: Image[];
  /** Where the message goes while a run is active: to its next turn, or after it. Without it such a prompt fails with `busy`. */
  streamingBehavior?: StreamingBehavior;
  /** Limits of the run, beside those of the settings. */
  budget?: BudgetLimits;
  /** Stops the run. */
  signal?: AbortSignal;
}
