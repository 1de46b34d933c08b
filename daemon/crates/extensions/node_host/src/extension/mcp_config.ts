/** Checks of `pi.registerMcpServer`. Pure. */
import { isObject, type JsonObject } from "../protocol/records.ts";

const EXPOSURES = ["codemode", "deferred", "direct", "hidden"];
/** Older name, still accepted. */
const EXPOSURE_ALIASES: Record<string, string> = { "codemode-deferred": "codemode" };
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** Servers whose names differ only in `-` and `_` share a namespace. */
export function mcpNamespace(name: string): string {
  return `mcp__${name.replace(/-/g, "_")}`;
}

/** The config with today's names, or why it is wrong. */
export function checkMcpServer(name: string, raw: unknown): JsonObject | string {
  if (!/^[A-Za-z0-9_-]+$/.test(name)) return `invalid server name "${name}" (use letters, digits, "_" and "-")`;
  if (!isObject(raw)) return `server "${name}" must be an object`;
  const config = withoutAliases(raw);
  const error = checkBase(config) ?? checkTransport(name, config) ?? checkExposures(config) ?? checkAuth(config);
  if (error === undefined) return config;
  return error.startsWith("server ") ? error : `server "${name}": ${error}`;
}

function withoutAliases(raw: JsonObject): JsonObject {
  const rename = (value: unknown) => (typeof value === "string" ? (EXPOSURE_ALIASES[value] ?? value) : value);
  const config = { ...raw };
  if (config["exposure"] !== undefined) config["exposure"] = rename(config["exposure"]);
  if (isObject(config["toolExposure"])) {
    config["toolExposure"] = Object.fromEntries(Object.entries(config["toolExposure"]).map(([tool, value]) => [tool, rename(value)]));
  }
  return config;
}

function checkBase({ enabled, timeout, description }: JsonObject): string | undefined {
  if (enabled !== undefined && typeof enabled !== "boolean") return "enabled must be a boolean";
  if (description !== undefined && typeof description !== "string") return "description must be a string";
  if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0)) return "timeout must be a positive number of seconds";
  return undefined;
}

function checkTransport(name: string, config: JsonObject): string | undefined {
  const { type, url, command } = config;
  if (type === "sse") return "legacy SSE transport is not supported; use the streamable HTTP URL";
  if (typeof url === "string" && (type === undefined || type === "http" || type === "streamable-http")) return checkHttp(config, url);
  if (typeof command === "string" && (type === undefined || type === "stdio")) return checkStdio(config);
  return `server "${name}" needs either "command" (stdio) or "url" (streamable HTTP)`;
}

function checkHttp(config: JsonObject, url: string): string | undefined {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return "url must be an http or https URL";
  if (config["headers"] !== undefined && !isStringRecord(config["headers"])) return "headers must map names to strings";
  if (config["oauth"] !== undefined && !isObject(config["oauth"])) return "oauth must be an object";
  return undefined;
}

function checkStdio({ args, env, cwd }: JsonObject): string | undefined {
  if (args !== undefined && !(Array.isArray(args) && args.every((arg) => typeof arg === "string"))) return "args must be an array of strings";
  if (env !== undefined && !isStringRecord(env)) return "env must map names to strings";
  if (cwd !== undefined && typeof cwd !== "string") return "cwd must be a string";
  return undefined;
}

function checkExposures({ exposure, toolExposure }: JsonObject): string | undefined {
  const names = EXPOSURES.map((value) => `"${value}"`).join(", ");
  if (exposure !== undefined && !EXPOSURES.includes(String(exposure))) return `exposure must be one of ${names}`;
  if (toolExposure === undefined) return undefined;
  if (!isObject(toolExposure)) return "toolExposure must map tool names to exposures";
  for (const [tool, value] of Object.entries(toolExposure)) {
    if (!EXPOSURES.includes(String(value))) return `toolExposure "${tool}" must be one of ${names}`;
  }
  return undefined;
}

/** The credential of a provider goes to `url`, which must then be private. */
function checkAuth({ auth, url }: JsonObject): string | undefined {
  if (auth === undefined || typeof url !== "string") return undefined;
  if (!isObject(auth) || typeof auth["provider"] !== "string" || auth["provider"] === "") return "auth.provider must be a provider name";
  const { protocol, hostname } = new URL(url);
  if (protocol !== "https:" && !LOOPBACK.includes(hostname)) return "auth requires an https URL, or http on localhost, 127.0.0.1, or [::1]";
  return undefined;
}

function isStringRecord(value: unknown): boolean {
  return isObject(value) && Object.values(value).every((entry) => typeof entry === "string");
}
