/** The tools `read`, `write`, `edit`, `ls` and `find` over operations of an extension. */
import { dirname, isAbsolute, join, relative } from "node:path";
import { DEFAULT_MAX_BYTES, formatSize, truncateHead } from "../truncate.ts";
import { applyEdits, type Edit, generateDiffString, generateUnifiedPatch } from "./edit_text.ts";
import { resolveToolPath } from "./paths.ts";
import { checkAborted, textResult, type ToolResult } from "./result.ts";
import { FIND_RESULTS, LS_ENTRIES } from "./specs.ts";

type Awaitable<T> = T | Promise<T>;

export interface ReadOperations {
  readFile: (path: string) => Promise<Buffer>;
  access: (path: string) => Promise<void>;
  detectImageMimeType?: (path: string) => Promise<string | null | undefined>;
}

export interface WriteOperations {
  writeFile: (path: string, content: string) => Promise<void>;
  mkdir: (folder: string) => Promise<void>;
}

export interface EditOperations {
  readFile: (path: string) => Promise<Buffer>;
  writeFile: (path: string, content: string) => Promise<void>;
  access: (path: string) => Promise<void>;
}

export interface LsOperations {
  exists: (path: string) => Awaitable<boolean>;
  stat: (path: string) => Awaitable<{ isDirectory: () => boolean }>;
  readdir: (path: string) => Awaitable<string[]>;
}

export interface FindOperations {
  exists: (path: string) => Awaitable<boolean>;
  glob: (pattern: string, cwd: string, options: { ignore: string[]; limit: number }) => Awaitable<string[]>;
}

const SIZE_LIMIT = formatSize(DEFAULT_MAX_BYTES);

/** Text of a file from a line on, with the line that tells how to go on. */
export function readText(
  content: string,
  path: string,
  offset: number | undefined,
  limit: number | undefined,
): ToolResult {
  const lines = content.split("\n");
  const total = lines.length;
  const start = Math.max(0, Math.trunc(offset ?? 0) - 1);
  if (start >= total) throw new Error(`Offset ${offset} is beyond end of file (${total} lines total)`);
  const wanted = limit === undefined ? total : start + Math.max(0, Math.trunc(limit));
  const selected = lines.slice(start, wanted).join("\n");
  const cut = truncateHead(selected);
  const first = start + 1;
  if (cut.firstLineExceedsLimit) {
    const size = formatSize(Buffer.byteLength(lines[start] as string));
    const text = `[Line ${first} is ${size}, exceeds ${SIZE_LIMIT} limit. Use bash: sed -n '${first}p' ${path} | head -c ${DEFAULT_MAX_BYTES}]`;
    return { ...textResult(text, { truncation: cut }), structuredContent: text };
  }
  let text = cut.content;
  if (cut.truncated) {
    const last = start + cut.outputLines;
    const by = cut.truncatedBy === "bytes" ? ` (${SIZE_LIMIT} limit)` : "";
    text += `\n\n[Showing lines ${first}-${last} of ${total}${by}. Use offset=${last + 1} to continue.]`;
  } else if (wanted < total) {
    text += `\n\n[${total - wanted} more lines in file. Use offset=${wanted + 1} to continue.]`;
  }
  return { ...textResult(text, cut.truncated ? { truncation: cut } : undefined), structuredContent: text };
}

export async function runRead(
  cwd: string,
  operations: ReadOperations,
  params: { path: string; offset?: number; limit?: number },
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const path = resolveToolPath(params.path, cwd);
  checkAborted(signal);
  await operations.access(path);
  const mimeType = await operations.detectImageMimeType?.(path);
  checkAborted(signal);
  const data = await operations.readFile(path);
  checkAborted(signal);
  if (mimeType) {
    // The daemon fits images to the model after the tool has ended.
    const image = { type: "image" as const, data: data.toString("base64"), mimeType };
    const note = `Read image file [${mimeType}]`;
    return {
      content: [{ type: "text", text: note }, image],
      details: undefined,
      structuredContent: { ...image, note },
    };
  }
  return readText(data.toString("utf8"), params.path, params.offset, params.limit);
}

export async function runWrite(
  cwd: string,
  operations: WriteOperations,
  params: { path: string; content: string },
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const path = resolveToolPath(params.path, cwd);
  checkAborted(signal);
  await operations.mkdir(dirname(path));
  checkAborted(signal);
  await operations.writeFile(path, params.content);
  return textResult(`Successfully wrote to ${params.path}`);
}

export async function runEdit(
  cwd: string,
  operations: EditOperations,
  params: { path: string; edits: Edit[] },
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const path = resolveToolPath(params.path, cwd);
  checkAborted(signal);
  try {
    await operations.access(path);
  } catch (error) {
    const code: unknown = (error as { code?: unknown } | undefined)?.code;
    throw new Error(`Could not edit file: ${params.path}. Error code: ${typeof code === "string" ? code : String(error)}.`);
  }
  const original = (await operations.readFile(path)).toString("utf8");
  checkAborted(signal);
  const { content, before, after } = applyEdits(original, params.edits, params.path);
  await operations.writeFile(path, content);
  const { diff, firstChangedLine } = generateDiffString(before, after);
  const patch = generateUnifiedPatch(params.path, before, after);
  return textResult(`Successfully replaced ${params.edits.length} block(s) in ${params.path}.`, {
    diff,
    patch,
    firstChangedLine,
  });
}

function countOf(limit: number | undefined, fallback: number): number {
  return limit === undefined ? fallback : Math.max(1, Math.floor(limit));
}

/** Joins lines, cuts them to the size limit, and tells what was left out. */
function listing(lines: string[], notices: string[], details: Record<string, unknown>): ToolResult {
  const cut = truncateHead(lines.join("\n"), { maxLines: Number.MAX_SAFE_INTEGER });
  if (cut.truncated) {
    notices.push(`${SIZE_LIMIT} limit reached`);
    details.truncation = cut;
  }
  const text = notices.length > 0 ? `${cut.content}\n\n[${notices.join(". ")}]` : cut.content;
  return textResult(text, Object.keys(details).length > 0 ? details : undefined);
}

export async function runLs(
  cwd: string,
  operations: LsOperations,
  params: { path?: string; limit?: number },
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const folder = resolveToolPath(params.path ?? ".", cwd);
  const limit = countOf(params.limit, LS_ENTRIES);
  checkAborted(signal);
  if (!(await operations.exists(folder))) throw new Error(`Path not found: ${folder}`);
  if (!(await operations.stat(folder)).isDirectory()) throw new Error(`Not a directory: ${folder}`);
  let names: string[];
  try {
    names = await operations.readdir(folder);
  } catch (error) {
    throw new Error(`Cannot read directory: ${error instanceof Error ? error.message : String(error)}`);
  }
  const sorted = [...names].sort((first, second) => first.toLowerCase().localeCompare(second.toLowerCase()));
  const entries: string[] = [];
  let reached = false;
  for (const name of sorted) {
    if (entries.length >= limit) {
      reached = true;
      break;
    }
    try {
      entries.push((await operations.stat(join(folder, name))).isDirectory() ? `${name}/` : name);
    } catch {
      // An entry that vanished or cannot be looked at is not shown.
    }
  }
  checkAborted(signal);
  if (entries.length === 0) return textResult("(empty directory)");
  const notices = reached ? [`${limit} entries limit reached. Use limit=${limit * 2} for more`] : [];
  return listing(entries, notices, reached ? { entryLimitReached: limit } : {});
}

const IGNORED = ["**/node_modules/**", "**/.git/**"];

export async function runFind(
  cwd: string,
  operations: FindOperations,
  params: { pattern: string; path?: string; limit?: number },
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const folder = resolveToolPath(params.path ?? ".", cwd);
  const limit = countOf(params.limit, FIND_RESULTS);
  checkAborted(signal);
  if (!(await operations.exists(folder))) throw new Error(`Path not found: ${folder}`);
  // One more than is shown tells whether there are more.
  const found = await operations.glob(params.pattern, folder, { ignore: IGNORED, limit: limit + 1 });
  checkAborted(signal);
  if (found.length === 0) return textResult("No files found matching pattern");
  const lines = found
    .slice(0, limit)
    .map((path) => (isAbsolute(path) ? relative(folder, path) + (path.endsWith("/") ? "/" : "") : path))
    .map((path) => path.replaceAll("\\", "/"));
  if (found.length <= limit) return listing(lines, [], {});
  return listing(lines, [`${limit} results limit reached`], { resultLimitReached: limit });
}

