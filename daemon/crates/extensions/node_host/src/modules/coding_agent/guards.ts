/** Small helpers around tools and events. Pure. */

interface Named {
  toolName?: string;
}

function isResultOf(tool: string): (event: Named) => boolean {
  return (event) => event.toolName === tool;
}

export const isBashToolResult = isResultOf("bash");
export const isPowerShellToolResult = isResultOf("powershell");
export const isReadToolResult = isResultOf("read");
export const isEditToolResult = isResultOf("edit");
export const isWriteToolResult = isResultOf("write");
export const isGrepToolResult = isResultOf("grep");
export const isFindToolResult = isResultOf("find");
export const isLsToolResult = isResultOf("ls");

export function isToolCallEventType(toolName: string, event: Named): boolean {
  return event.toolName === toolName;
}

/** Gives a tool definition its type; it comes back as it is. */
export function defineTool<T>(tool: T): T {
  return tool;
}

export interface SourceInfo {
  path: string;
  source: string;
  scope: string;
  origin: string;
  baseDir?: string;
  changelogPath?: string;
}

export function createSyntheticSourceInfo(
  path: string,
  options: { source: string; scope?: string; origin?: string; baseDir?: string; changelogPath?: string },
): SourceInfo {
  return {
    path,
    source: options.source,
    scope: options.scope ?? "temporary",
    origin: options.origin ?? "top-level",
    ...(options.baseDir === undefined ? {} : { baseDir: options.baseDir }),
    ...(options.changelogPath === undefined ? {} : { changelogPath: options.changelogPath }),
  };
}

function lineNumber(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

/** The lines of a read call, as `:5-7`; nothing when neither is given or one is no number. */
export function formatReadLineRange(offset: unknown, limit: unknown): string {
  const given = (value: unknown): boolean => value !== undefined && value !== null;
  if (!given(offset) && !given(limit)) return "";
  const start = given(offset) ? lineNumber(offset) : 1;
  if (start === undefined) return "";
  if (!given(limit)) return `:${start}`;
  const count = lineNumber(limit);
  if (count === undefined) return "";
  const end = start + count - 1;
  return `:${start}-${end || ""}`.replace(/-$/, "");
}

/** The parts of a message that names a skill, or null. */
export function parseSkillBlock(
  text: string,
): { name: string; location: string; content: string; userMessage: string | undefined } | null {
  const match = /^<skill name="([^"]+)" location="([^"]+)">\n([\s\S]*?)\n<\/skill>(?:\n\n([\s\S]+))?$/.exec(text);
  if (!match) return null;
  return {
    name: match[1] as string,
    location: match[2] as string,
    content: match[3] as string,
    userMessage: match[4]?.trim() || undefined,
  };
}

/** A credential that is stored and of which the rest of the process could not be told. */
export class CredentialSynchronizationError extends Error {
  readonly providerId: string;
  readonly operation: string;
  readonly credential: unknown;

  constructor(providerId: string, operation: string, credential: unknown, options?: { cause?: unknown }) {
    super(`The credential of ${providerId} is stored (${operation}), but could not be taken over`, options);
    this.name = "CredentialSynchronizationError";
    this.providerId = providerId;
    this.operation = operation;
    this.credential = credential;
  }
}
