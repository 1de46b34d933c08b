/** Environment variables that hold keys of services, and authentication by them. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";

export const ANTHROPIC_API_KEY_ENV = "ANTHROPIC_API_KEY";
export const ANTHROPIC_AUTH_TOKEN_ENV = "ANTHROPIC_AUTH_TOKEN";
export const ANTHROPIC_FEDERATION_RULE_ID_ENV = "ANTHROPIC_FEDERATION_RULE_ID";
export const ANTHROPIC_IDENTITY_TOKEN_FILE_ENV = "ANTHROPIC_IDENTITY_TOKEN_FILE";
export const ANTHROPIC_OAUTH_TOKEN_ENV = "ANTHROPIC_OAUTH_TOKEN";
export const ANTHROPIC_ORGANIZATION_ID_ENV = "ANTHROPIC_ORGANIZATION_ID";
export const ANTHROPIC_SERVICE_ACCOUNT_ID_ENV = "ANTHROPIC_SERVICE_ACCOUNT_ID";
export const ANTHROPIC_WORKSPACE_ID_ENV = "ANTHROPIC_WORKSPACE_ID";

/** Names of the variables of each provider, in the order in which they are looked up. */
const KEY_VARIABLES: Record<string, readonly string[]> = {
  "ant-ling": ["ANT_LING_API_KEY"],
  anthropic: [ANTHROPIC_AUTH_TOKEN_ENV, ANTHROPIC_OAUTH_TOKEN_ENV, ANTHROPIC_API_KEY_ENV],
  azure: ["AZURE_OPENAI_API_KEY"],
  baseten: ["BASETEN_API_KEY"],
  cerebras: ["CEREBRAS_API_KEY"],
  "cloudflare-ai-gateway": ["CLOUDFLARE_API_KEY"],
  "cloudflare-workers-ai": ["CLOUDFLARE_API_KEY"],
  deepseek: ["DEEPSEEK_API_KEY"],
  fireworks: ["FIREWORKS_API_KEY"],
  "github-copilot": ["COPILOT_GITHUB_TOKEN"],
  google: ["GEMINI_API_KEY"],
  "google-vertex": ["GOOGLE_CLOUD_API_KEY"],
  groq: ["GROQ_API_KEY"],
  huggingface: ["HF_TOKEN"],
  "kimi-coding": ["KIMI_API_KEY"],
  meta: ["META_API_KEY"],
  minimax: ["MINIMAX_API_KEY"],
  "minimax-cn": ["MINIMAX_CN_API_KEY"],
  mistral: ["MISTRAL_API_KEY"],
  moonshotai: ["MOONSHOT_API_KEY"],
  "moonshotai-cn": ["MOONSHOT_API_KEY"],
  nvidia: ["NVIDIA_API_KEY"],
  openai: ["OPENAI_API_KEY"],
  opencode: ["OPENCODE_API_KEY"],
  "opencode-go": ["OPENCODE_API_KEY"],
  openrouter: ["OPENROUTER_API_KEY"],
  "qwen-token-plan": ["QWEN_TOKEN_PLAN_API_KEY"],
  "qwen-token-plan-cn": ["QWEN_TOKEN_PLAN_CN_API_KEY"],
  "qwen-token-plan-individual": ["QWEN_TOKEN_PLAN_API_KEY"],
  "qwen-token-plan-individual-cn": ["QWEN_TOKEN_PLAN_CN_API_KEY"],
  radius: ["RADIUS_API_KEY"],
  together: ["TOGETHER_API_KEY"],
  typesafe: ["TYPESAFE_API_KEY"],
  "vercel-ai-gateway": ["AI_GATEWAY_API_KEY"],
  xai: ["XAI_API_KEY"],
  xiaomi: ["XIAOMI_API_KEY"],
  "xiaomi-token-plan-ams": ["XIAOMI_TOKEN_PLAN_AMS_API_KEY"],
  "xiaomi-token-plan-cn": ["XIAOMI_TOKEN_PLAN_CN_API_KEY"],
  "xiaomi-token-plan-sgp": ["XIAOMI_TOKEN_PLAN_SGP_API_KEY"],
  zai: ["ZAI_API_KEY"],
  "zai-coding-cn": ["ZAI_CODING_CN_API_KEY"],
};

type Variables = Record<string, string | undefined>;

function lookUp(name: string, env: Variables | undefined): string | undefined {
  return env?.[name] || process.env[name] || undefined;
}

/** Names of the variables that are set and hold a key of the provider, or undefined when none is. */
export function findEnvKeys(provider: string, env?: Variables): string[] | undefined {
  const found = (KEY_VARIABLES[provider] ?? []).filter((name) => lookUp(name, env));
  return found.length > 0 ? found : undefined;
}

/** Stands for credentials that are no key. */
const AUTHENTICATED = "<authenticated>";
/** Variables by which AWS finds credentials; a group holds those that are needed together. */
const AWS_CREDENTIALS = [
  ["AWS_PROFILE"],
  ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
  ["AWS_BEARER_TOKEN_BEDROCK"],
  ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
  ["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
  ["AWS_WEB_IDENTITY_TOKEN_FILE"],
];

/** The key of a provider from its variables, or undefined. Tokens that are sent in another way are no keys. */
export function getEnvApiKey(provider: string, env?: Variables): string | undefined {
  if (provider === "amazon-bedrock") {
    const found = AWS_CREDENTIALS.some((group) => group.every((name) => lookUp(name, env)));
    return found ? AUTHENTICATED : undefined;
  }
  const name = findEnvKeys(provider, env)?.find((variable) => variable !== ANTHROPIC_AUTH_TOKEN_ENV);
  return name === undefined ? undefined : lookUp(name, env);
}

interface AuthContext {
  env(name: string): Promise<string | undefined>;
  fileExists(path: string): Promise<boolean>;
}

/** Reads the environment and looks for files. */
export function defaultProviderAuthContext(): AuthContext {
  return {
    env: (name) => Promise.resolve(process.env[name]),
    fileExists: (path) => Promise.resolve(existsSync(path.replace(/^~(?=$|\/)/, homedir()))),
  };
}

interface ApiKeyCredential {
  type: "api_key";
  key?: string;
  env?: Record<string, string>;
}

interface Interaction {
  prompt(prompt: { type: "secret"; message: string }): Promise<string>;
}

/** Authentication by a stored key, or else by the first variable that is set. */
export function envApiKeyAuth(name: string, envVars: readonly string[]): unknown {
  return {
    name,
    login: async (interaction: Interaction): Promise<ApiKeyCredential> => ({
      type: "api_key",
      key: await interaction.prompt({ type: "secret", message: `Enter ${name}` }),
    }),
    resolve: async ({ ctx, credential }: { ctx: AuthContext; credential?: ApiKeyCredential }): Promise<unknown> => {
      if (credential?.key) return { auth: { apiKey: credential.key }, env: credential.env, source: "stored credential" };
      for (const variable of envVars) {
        const value = credential?.env?.[variable] ?? (await ctx.env(variable));
        if (value) return { auth: { apiKey: value }, env: credential?.env, source: variable };
      }
      return undefined;
    },
  };
}

interface OAuthFlow {
  login(...args: unknown[]): Promise<unknown>;
  refresh(...args: unknown[]): Promise<unknown>;
  toAuth(...args: unknown[]): Promise<unknown>;
}

/** An OAuth flow that is loaded when it is first used. */
export function lazyOAuth(input: {
  name: string;
  isSubscription?: boolean;
  loginLabel?: string;
  load: () => Promise<OAuthFlow>;
}): OAuthFlow & { name: string; isSubscription?: boolean; loginLabel?: string } {
  let flow: Promise<OAuthFlow> | undefined;
  const loaded = (): Promise<OAuthFlow> => (flow ??= input.load());
  return {
    name: input.name,
    ...(input.isSubscription === undefined ? {} : { isSubscription: input.isSubscription }),
    ...(input.loginLabel === undefined ? {} : { loginLabel: input.loginLabel }),
    login: async (...args) => (await loaded()).login(...args),
    refresh: async (...args) => (await loaded()).refresh(...args),
    toAuth: async (...args) => (await loaded()).toAuth(...args),
  };
}
