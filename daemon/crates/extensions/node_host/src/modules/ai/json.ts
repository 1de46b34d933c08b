/** JSON as models write it: cut off, and with mistakes in its strings. Pure. */
import { parse as parsePartial } from "partial-json";

const ESCAPES = "\"\\/bfnrt";
const CONTROL_ESCAPES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

function escapeControl(character: string): string {
  return CONTROL_ESCAPES[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Escapes raw control characters in strings and doubles backslashes that begin no escape. */
export function repairJson(json: string): string {
  let repaired = "";
  let inString = false;
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charAt(at);
    if (!inString) {
      inString = character === '"';
      repaired += character;
    } else if (character === '"') {
      inString = false;
      repaired += character;
    } else if (character === "\\") {
      const next = json.charAt(at + 1);
      const valid = next === "u" ? /^[0-9a-f]{4}$/i.test(json.slice(at + 2, at + 6)) : next !== "" && ESCAPES.includes(next);
      if (valid) {
        repaired += character + next;
        at += 1;
      } else {
        repaired += "\\\\";
      }
    } else {
      repaired += character < " " ? escapeControl(character) : character;
    }
  }
  return repaired;
}

/** Parses JSON, after a repair when it does not parse as it is. */
export function parseJsonWithRepair<T>(json: string): T {
  try {
    return JSON.parse(json) as T;
  } catch (error) {
    const repaired = repairJson(json);
    if (repaired === json) throw error;
    return JSON.parse(repaired) as T;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Arguments of a tool call that is complete. Malformed ones are told in `argumentsError`. */
export function parseToolCallArguments(json: string | undefined): {
  arguments: Record<string, unknown>;
  argumentsError?: string;
} {
  if (!json || json.trim() === "") return { arguments: {} };
  const failed = (reason: string): { arguments: Record<string, unknown>; argumentsError: string } => ({
    arguments: {},
    argumentsError: `${reason}\n\nReceived arguments:\n${json}`,
  });
  let value: unknown;
  try {
    value = parseJsonWithRepair(json);
  } catch (error) {
    return failed(messageOf(error));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return failed("Tool arguments must be a JSON object");
  }
  return { arguments: value as Record<string, unknown> };
}

/** The value of JSON that may be incomplete; an empty object when nothing can be read. */
export function parseStreamingJson<T = Record<string, unknown>>(partialJson: string | undefined): T {
  if (!partialJson || partialJson.trim() === "") return {} as T;
  try {
    return parseJsonWithRepair(partialJson);
  } catch {
    // Incomplete: read below.
  }
  for (const text of [partialJson, repairJson(partialJson)]) {
    try {
      return (parsePartial(text) ?? {}) as T;
    } catch {
      // The repaired text is read next.
    }
  }
  return {} as T;
}
