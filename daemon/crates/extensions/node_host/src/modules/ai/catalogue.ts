/** The catalogue of models, as the daemon has it. */
import type { HostServices } from "../../services.ts";
import { getModelType } from "./models.ts";
import type { Model } from "./types.ts";

interface ModelsTopic {
  models?: Model[];
  providers?: Record<string, unknown>;
}

export class Catalogue {
  readonly #services: HostServices;

  constructor(services: HostServices) {
    this.#services = services;
  }

  /** Every model of every provider. */
  all(): Model[] {
    return (this.#services.readTopic("models") as ModelsTopic | undefined)?.models ?? [];
  }

  providers(): string[] {
    return [...new Set(this.all().map((model) => model.provider))].sort();
  }

  ofType(type: string, provider?: string): Model[] {
    return this.all().filter(
      (model) => getModelType(model) === type && (provider === undefined || model.provider === provider),
    );
  }

  find(type: string, provider: string, id: string): Model | undefined {
    return this.ofType(type, provider).find((model) => model.id === id);
  }
}
