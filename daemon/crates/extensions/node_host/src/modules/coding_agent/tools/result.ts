/** Results of tools. */

export interface ToolResult {
  content: ({ type: "text"; text: string } | { type: "image"; data: string; mimeType: string })[];
  details?: unknown;
  structuredContent?: unknown;
  isError?: boolean;
}

export type OnUpdate = (partial: ToolResult) => void;

export function textResult(text: string, details?: unknown): ToolResult {
  return { content: [{ type: "text", text }], details };
}

/** Throws when the call was withdrawn. */
export function checkAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new Error("Operation aborted");
}
