/** How requests tell services who makes them. Pure. */

export interface ClientAttribution {
  name: string;
  url: string;
  categories?: string[];
}

export interface ClientIdentity {
  userAgent?: "short" | "detailed" | { custom: string };
  attribution?: ClientAttribution | null;
  version?: string;
}

export interface ClientIdentityTarget {
  readonly provider: string;
  readonly baseUrl: string;
}

/** The version of pi whose interface the modules have. */
export const PI_AI_VERSION = "1.5.2";

export const PI_ATTRIBUTION: ClientAttribution = { name: "pi", url: "https://pi.dev", categories: ["cli-agent"] };

/** Joins identities field by field; later ones win. */
export function mergeClientIdentity(...sources: (ClientIdentity | undefined)[]): ClientIdentity | undefined {
  const merged: Record<string, unknown> = {};
  for (const source of sources) {
    for (const [name, value] of Object.entries(source ?? {})) if (value !== undefined) merged[name] = value;
  }
  const { userAgent, attribution, version } = merged as ClientIdentity;
  const known = {
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(attribution === undefined ? {} : { attribution }),
    ...(version === undefined ? {} : { version }),
  };
  return Object.keys(known).length > 0 ? known : undefined;
}

export function getClientVersion(identity?: ClientIdentity): string {
  return identity?.version ?? PI_AI_VERSION;
}

export function formatUserAgent(identity?: ClientIdentity): string {
  const mode = identity?.userAgent ?? "detailed";
  if (typeof mode === "object") return mode.custom;
  if (mode === "short") return "pi";
  return `pi/${getClientVersion(identity)} (${process.platform}; node/${process.version}; ${process.arch})`;
}

function servedBy(target: ClientIdentityTarget, providers: string[], domain: string): boolean {
  if (providers.includes(target.provider)) return true;
  if (!URL.canParse(target.baseUrl)) return false;
  const { hostname } = new URL(target.baseUrl);
  return hostname === domain || hostname.endsWith(`.${domain}`);
}

function isOpenCode(target: ClientIdentityTarget): boolean {
  return servedBy(target, ["opencode", "opencode-go"], "opencode.ai");
}

/** Headers by which some services attribute requests to an application. */
export function getAttributionHeaders(target: ClientIdentityTarget, identity?: ClientIdentity): Record<string, string> {
  const attribution = identity?.attribution;
  if (!attribution) return {};
  if (servedBy(target, ["openrouter"], "openrouter.ai")) {
    return {
      "HTTP-Referer": attribution.url,
      "X-OpenRouter-Title": attribution.name,
      ...(attribution.categories?.length ? { "X-OpenRouter-Categories": attribution.categories.join(",") } : {}),
    };
  }
  if (servedBy(target, ["nvidia"], "integrate.api.nvidia.com")) {
    return { "X-BILLING-INVOKE-ORIGIN": attribution.name.charAt(0).toUpperCase() + attribution.name.slice(1) };
  }
  return isOpenCode(target) ? { "x-opencode-client": attribution.name } : {};
}

/** The header by which OpenCode routes the requests of a conversation, or undefined for others. */
export function getOpenCodeSessionHeaders(
  target: ClientIdentityTarget,
  sessionId: string | undefined,
): Record<string, string> | undefined {
  return sessionId && isOpenCode(target) ? { "x-opencode-session": sessionId } : undefined;
}

export function getIdentityHeaders(target: ClientIdentityTarget, identity?: ClientIdentity): Record<string, string> {
  return { "User-Agent": formatUserAgent(identity), ...getAttributionHeaders(target, identity) };
}
