/** `ExtensionRunner`: the extensions of an agent, as its opener uses them. */
import type { AgentExtensionError, AgentHost } from "../../../services.ts";

export type ErrorListener = (error: AgentExtensionError) => void;

/** The extensions of an agent, for those who run handlers of it by themselves. */
export class ExtensionRunner {
  readonly #host: AgentHost;
  readonly #onError: ErrorListener;
  readonly #listeners = new Set<ErrorListener>();

  constructor(host: AgentHost, onError: ErrorListener) {
    this.#host = host;
    this.#onError = onError;
  }

  hasHandlers(event: string): boolean {
    return this.#host.hasHandlers(event);
  }

  emit(event: { type: string }): Promise<unknown> {
    return this.#host.emit(event, (error) => {
      this.#onError(error);
      for (const listener of this.#listeners) listener(error);
    });
  }

  onError(listener: ErrorListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
