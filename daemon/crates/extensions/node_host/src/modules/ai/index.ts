/** The exports of pi-ai and of its entry points. */
import type { HostServices } from "../../services.ts";
import { StringEnum, Type } from "../typebox.ts";
import { unavailableAll } from "../unavailable.ts";
import * as cacheWarming from "./cache_warming.ts";
import { Catalogue } from "./catalogue.ts";
import * as diagnostics from "./diagnostics.ts";
import * as environment from "./environment.ts";
import * as eventStream from "./event_stream.ts";
import * as failures from "./failures.ts";
import * as faux from "./faux.ts";
import * as identity from "./identity.ts";
import * as json from "./json.ts";
import * as models from "./models.ts";
import * as stores from "./stores.ts";
import { StreamingJsonParser, ToolCallArgumentsStream } from "./streaming_json.ts";
import { lazyApi, lazyStream, ModelRequests, type StreamOptions } from "./streams.ts";
import * as transcript from "./transcript.ts";
import type { AssistantMessage, Context, Model } from "./types.ts";
import { uuidv7 } from "./uuid.ts";
import * as validation from "./validation.ts";

export const AI_PACKAGE = "@earendil-works/pi-ai";

/** Exports that make collections of providers in the process, images, and tools of pi's own tests. */
const UNAVAILABLE = [
  "createFauxCore",
  "createModels",
  "createProvider",
  "fauxProvider",
  "generateImages",
  "generateImagesOpenRouter",
  "registerFauxProvider",
  "setBedrockProviderModule",
  "withClientIdentity",
];
const UNAVAILABLE_PROVIDERS = ["builtinModels", "builtinProviders", "radiusProvider"];

/** Nothing is measured in the host. */
const AI_TELEMETRY_SCHEMA = { version: 1, spans: {}, metrics: {} };

/** Factories of the adapters, by the api they are of. */
const API_FACTORIES: Record<string, string> = {
  anthropicMessagesApi: "anthropic-messages",
  azureOpenAIResponsesApi: "azure-openai-responses",
  bedrockConverseStreamApi: "bedrock-converse-stream",
  googleGenerativeAIApi: "google-generative-ai",
  googleVertexApi: "google-vertex",
  mistralConversationsApi: "mistral-conversations",
  openAICodexResponsesApi: "openai-codex-responses",
  openAICompletionsApi: "openai-completions",
  openAIResponsesApi: "openai-responses",
  piMessagesApi: "pi-messages",
};

/** Old names of the two functions of an adapter. */
const API_ALIASES: Record<string, string> = {
  Anthropic: "anthropic-messages",
  AzureOpenAIResponses: "azure-openai-responses",
  Google: "google-generative-ai",
  GoogleVertex: "google-vertex",
  Mistral: "mistral-conversations",
  OpenAICodexResponses: "openai-codex-responses",
  OpenAICompletions: "openai-completions",
  OpenAIResponses: "openai-responses",
};

function requestExports(requests: ModelRequests): Record<string, unknown> {
  const exports: Record<string, unknown> = {};
  for (const [name, api] of Object.entries(API_FACTORIES)) exports[name] = () => requests.api(api);
  for (const [name, api] of Object.entries(API_ALIASES)) {
    const { stream, streamSimple } = requests.api(api);
    exports[`stream${name}`] = stream;
    exports[`streamSimple${name}`] = streamSimple;
  }
  const request =
    (simple: boolean) =>
    (model: Model, context: Context, options?: StreamOptions): eventStream.AssistantMessageEventStream =>
      requests.stream(model, context, options, simple);
  const complete =
    (simple: boolean) =>
    (model: Model, context: Context, options?: StreamOptions): Promise<AssistantMessage> =>
      requests.stream(model, context, options, simple).result();
  return {
    ...exports,
    stream: request(false),
    streamSimple: request(true),
    complete: complete(false),
    completeSimple: complete(true),
    registerApiProvider: (...args: Parameters<ModelRequests["register"]>) => requests.register(...args),
    unregisterApiProviders: (sourceId: string) => requests.unregister(sourceId),
    resetApiProviders: () => requests.reset(),
    getApiProvider: (api: string) => requests.find(api),
    getApiProviders: () => requests.all(),
    // The daemon's adapters are always there.
    registerBuiltInApiProviders: () => undefined,
    setBedrockProviderLoader: () => undefined,
  };
}

function imageRegistry(): Record<string, unknown> {
  const registered = new Map<string, { api: string }>();
  return {
    registerImagesApiProvider: (provider: { api: string }) => void registered.set(provider.api, provider),
    getImagesApiProvider: (api: string) => registered.get(api),
    registerBuiltInImagesApiProviders: () => undefined,
  };
}

/** Reads of the catalogue under their two names: those of the compat entry and of `providers/all`. */
function catalogueExports(catalogue: Catalogue): { compat: Record<string, unknown>; all: Record<string, unknown> } {
  const getModels = (provider: string): Model[] => catalogue.ofType("chat", provider);
  const getModel = (provider: string, id: string): Model | undefined => catalogue.find("chat", provider, id);
  const getProviders = (): string[] => catalogue.providers();
  const getImageModels = (provider: string): Model[] => catalogue.ofType("image", provider);
  const getImageModel = (provider: string, id: string): Model | undefined => catalogue.find("image", provider, id);
  return {
    compat: {
      getModel,
      getModels,
      getProviders,
      getImageModel,
      getImageModels,
      getImageProviders: () => [...new Set(catalogue.ofType("image").map((model) => model.provider))],
    },
    all: {
      getBuiltinModel: getModel,
      getBuiltinModels: getModels,
      getBuiltinProviders: getProviders,
      getBuiltinImageModel: getImageModel,
      getBuiltinImageModels: getImageModels,
      getBuiltinClassifierModel: (provider: string, id: string) => catalogue.find("classifier", provider, id),
      getBuiltinClassifierModels: (provider: string) => catalogue.ofType("classifier", provider),
      getAllBuiltinModels: (provider?: string) =>
        catalogue.all().filter((model) => provider === undefined || model.provider === provider),
      // The daemon does not tell when its catalogue was made.
      getBuiltinModelDataGeneratedAt: () => undefined,
    },
  };
}

/** The exports of each entry point, by the part of the specifier behind the package's name. */
export function createAiModules(services: HostServices): Record<string, Record<string, unknown>> {
  const catalogue = catalogueExports(new Catalogue(services));
  const missing = unavailableAll(AI_PACKAGE, UNAVAILABLE);
  const main: Record<string, unknown> = {
    ...missing,
    ...cacheWarming,
    ...diagnostics,
    ...environment,
    ...eventStream,
    ...failures,
    ...faux,
    ...identity,
    ...json,
    ...models,
    ...stores,
    ...transcript,
    ...validation,
    ...requestExports(new ModelRequests(services)),
    ...imageRegistry(),
    ...catalogue.compat,
    AI_TELEMETRY_SCHEMA,
    StreamingJsonParser,
    StringEnum,
    ToolCallArgumentsStream,
    Type,
    lazyApi,
    lazyStream,
    uuidv7,
  };
  return {
    "": main,
    "/compat": main,
    "/models": {
      ...models,
      AI_TELEMETRY_SCHEMA,
      createModels: main.createModels,
      createProvider: main.createProvider,
    },
    "/oauth": {},
    "/providers/all": { ...unavailableAll(`${AI_PACKAGE}/providers/all`, UNAVAILABLE_PROVIDERS), ...catalogue.all },
  };
}
