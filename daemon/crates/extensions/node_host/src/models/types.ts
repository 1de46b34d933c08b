/** Model data as far as the host looks into it; all else passes through. */
import type { JsonObject } from "../protocol/records.ts";

export interface ModelInfo extends JsonObject {
  provider: string;
  id: string;
  name?: string;
  api?: string;
  type?: string;
}

export interface ProviderInfo {
  name?: string;
  configured: boolean;
  source?: string;
  oauth?: boolean;
}

/** Value of the topic `models`. */
export interface ModelsValue {
  models: ModelInfo[];
  providers: Record<string, ProviderInfo>;
  error?: string;
}

export interface ScopedModel {
  model: ModelInfo;
  thinkingLevel?: string;
}

export interface ModelRef {
  provider: string;
  id: string;
}

export function modelRef(model: { provider: string; id: string }): ModelRef {
  return { provider: model.provider, id: model.id };
}
