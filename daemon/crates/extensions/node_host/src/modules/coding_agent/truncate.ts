/** Limits of tool output, and cutting to them. Pure. */
import { Text } from "../tui/components/component.ts";

export const DEFAULT_MAX_LINES = 2000;
/** 50 KiB. */
export const DEFAULT_MAX_BYTES = 50 * 1024;
/** UTF-16 units of a line of `grep`. */
const GREP_LINE_UNITS = 500;
const KIB = 1024;

export interface TruncationOptions {
  maxLines?: number;
  maxBytes?: number;
}

export interface TruncationResult {
  content: string;
  truncated: boolean;
  truncatedBy: "lines" | "bytes" | null;
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
  lastLinePartial: boolean;
  firstLineExceedsLimit: boolean;
  maxLines: number;
  maxBytes: number;
}

export function formatSize(bytes: number): string {
  if (bytes < KIB) return `${bytes}B`;
  if (bytes < KIB * KIB) return `${(bytes / KIB).toFixed(1)}KB`;
  return `${(bytes / (KIB * KIB)).toFixed(1)}MB`;
}

/** Lines of text; an LF at the end adds none. */
function linesOf(content: string): string[] {
  if (content === "") return [];
  const lines = content.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

interface Measured {
  lines: string[];
  base: Omit<TruncationResult, "content" | "truncated" | "truncatedBy" | "outputLines" | "outputBytes">;
  fits: boolean;
}

function measure(content: string, options: TruncationOptions): Measured {
  const maxLines = options.maxLines ?? DEFAULT_MAX_LINES;
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  const lines = linesOf(content);
  const totalBytes = Buffer.byteLength(content);
  return {
    lines,
    fits: lines.length <= maxLines && totalBytes <= maxBytes,
    base: {
      totalLines: lines.length,
      totalBytes,
      lastLinePartial: false,
      firstLineExceedsLimit: false,
      maxLines,
      maxBytes,
    },
  };
}

function resultOf(
  { base }: Measured,
  content: string,
  truncatedBy: "lines" | "bytes" | null,
  outputLines: number,
  outputBytes: number,
): TruncationResult {
  const { totalLines, totalBytes, ...rest } = base;
  const truncated = truncatedBy !== null;
  return { content, truncated, truncatedBy, totalLines, totalBytes, outputLines, outputBytes, ...rest };
}

function whole(content: string, measured: Measured): TruncationResult {
  return resultOf(measured, content, null, measured.base.totalLines, measured.base.totalBytes);
}

function cut(kept: string[], truncatedBy: "lines" | "bytes", measured: Measured): TruncationResult {
  const content = kept.join("\n");
  return resultOf(measured, content, truncatedBy, kept.length, Buffer.byteLength(content));
}

/** Takes whole lines as long as they fit. */
function takeLines(lines: Iterable<string>, maxLines: number, maxBytes: number): { kept: string[]; by: "lines" | "bytes" } {
  const kept: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    if (kept.length >= maxLines) return { kept, by: "lines" };
    const size = Buffer.byteLength(line) + (kept.length > 0 ? 1 : 0);
    if (bytes + size > maxBytes) return { kept, by: "bytes" };
    kept.push(line);
    bytes += size;
  }
  return { kept, by: "lines" };
}

/** Keeps whole lines from the beginning. */
export function truncateHead(content: string, options: TruncationOptions = {}): TruncationResult {
  const measured = measure(content, options);
  if (measured.fits) return whole(content, measured);
  const { maxLines, maxBytes } = measured.base;
  if (Buffer.byteLength(measured.lines[0] ?? "") > maxBytes) {
    return { ...cut([], "bytes", measured), firstLineExceedsLimit: true };
  }
  const { kept, by } = takeLines(measured.lines, maxLines, maxBytes);
  return cut(kept, by, measured);
}

/** Keeps whole lines from the end; of a last line that is too long by itself, its end. */
export function truncateTail(content: string, options: TruncationOptions = {}): TruncationResult {
  const measured = measure(content, options);
  if (measured.fits) return whole(content, measured);
  const { maxLines, maxBytes } = measured.base;
  const { kept, by } = takeLines([...measured.lines].reverse(), maxLines, maxBytes);
  if (kept.length > 0 || by === "lines") return cut(kept.reverse(), by, measured);
  const last = lastBytes(measured.lines.at(-1) ?? "", maxBytes);
  return { ...cut([last], maxLines <= 1 ? "lines" : "bytes", measured), lastLinePartial: true };
}

function lastBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  let start = Math.max(0, bytes.length - maxBytes);
  while (start < bytes.length && ((bytes[start] as number) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start).toString("utf8");
}

/** Cuts one line, never within a surrogate pair. */
export function truncateLine(line: string, maxChars: number = GREP_LINE_UNITS): { text: string; wasTruncated: boolean } {
  if (line.length <= maxChars) return { text: line, wasTruncated: false };
  const last = line.charCodeAt(maxChars - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? maxChars - 1 : maxChars;
  return { text: `${line.slice(0, end)}... [truncated]`, wasTruncated: true };
}

/** Keeps so many lines of wrapped text, the last ones or the first ones. */
export function truncateToVisualLines(
  text: string,
  maxVisualLines: number,
  width: number,
  paddingX = 0,
  keep: "start" | "end" = "end",
): { visualLines: string[]; skippedCount: number } {
  const lines = new Text(text, paddingX, 0).render(width);
  if (lines.length <= maxVisualLines) return { visualLines: lines, skippedCount: 0 };
  const visualLines = keep === "end" ? lines.slice(-maxVisualLines) : lines.slice(0, maxVisualLines);
  return { visualLines, skippedCount: lines.length - maxVisualLines };
}
