/** The tool `bash` over operations of an extension. */
import { randomBytes } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, formatSize, type TruncationResult, truncateTail } from "../truncate.ts";
import { type BashOperations, CommandTimeout, createLocalBashOperations } from "./local_shell.ts";
import { type OnUpdate, textResult, type ToolResult } from "./result.ts";

export interface BashSpawnContext {
  command: string;
  cwd: string;
  env: NodeJS.ProcessEnv;
}

export interface BashToolOptions {
  operations?: BashOperations;
  commandPrefix?: string;
  shellPath?: string;
  exposeSessionEnvironment?: boolean;
  spawnHook?: (context: BashSpawnContext) => BashSpawnContext;
}

/** Updates come at most this often. */
const UPDATE_MS = 100;
/** Output kept in memory: what the result can show, with room for cutting at lines. */
const TAIL_BYTES = 2 * DEFAULT_MAX_BYTES;
/** Output that a caller of the tool gets in one piece. */
const STRUCTURED_BYTES = 1024 * 1024;

/** The end of the output in memory, and all of it in a file once it is long. */
class OutputBuffer {
  #decoder = new StringDecoder("utf8");
  #tail = "";
  /** The beginning of the output, as far as `structuredContent` may need it. */
  #head = "";
  #tailLong = "";
  #lines = 0;
  #bytes = 0;
  #pending: Buffer[] = [];
  #file: { path: string; descriptor: number } | undefined;

  add(data: Buffer): void {
    this.#bytes += data.length;
    for (const byte of data) if (byte === 10) this.#lines += 1;
    if (this.#file) writeSync(this.#file.descriptor, data);
    else this.#pending.push(data);
    if (!this.#file && (this.#bytes > DEFAULT_MAX_BYTES || this.#lines > DEFAULT_MAX_LINES)) this.#openFile();
    const text = this.#decoder.write(data);
    this.#tail = (this.#tail + text).slice(-TAIL_BYTES);
    if (this.#head.length < STRUCTURED_BYTES) this.#head = (this.#head + text).slice(0, STRUCTURED_BYTES);
    this.#tailLong = (this.#tailLong + text).slice(-STRUCTURED_BYTES / 2);
  }

  #openFile(): void {
    const path = join(tmpdir(), `pi-bash-${randomBytes(8).toString("hex")}.log`);
    const descriptor = openSync(path, "w", 0o600);
    for (const data of this.#pending) writeSync(descriptor, data);
    this.#pending = [];
    this.#file = { path, descriptor };
  }

  close(): void {
    this.#tail += this.#decoder.end();
    if (this.#file) closeSync(this.#file.descriptor);
  }

  get path(): string | undefined {
    return this.#file?.path;
  }

  /** What a model sees. Totals are those of the whole output. */
  shown(): TruncationResult {
    const cut = truncateTail(this.#tail);
    if (!this.#file) return cut;
    const endsWithLf = this.#tail.endsWith("\n");
    const totalLines = this.#lines + (endsWithLf ? 0 : 1);
    const truncatedBy = cut.truncatedBy ?? (this.#lines > DEFAULT_MAX_LINES ? "lines" : "bytes");
    return { ...cut, truncated: true, truncatedBy, totalLines, totalBytes: this.#bytes };
  }

  /** What another tool gets: all of it, or its two ends. */
  structured(): { output: string; truncated: boolean } {
    if (this.#bytes <= STRUCTURED_BYTES) return { output: this.#head, truncated: false };
    const half = STRUCTURED_BYTES / 2;
    const omitted = this.#bytes - STRUCTURED_BYTES;
    const head = this.#head.slice(0, half);
    return { output: `${head}\n\n[... ${omitted} bytes omitted ...]\n\n${this.#tailLong}`, truncated: true };
  }
}

/** The line that tells what of the output is shown. */
function notice(shown: TruncationResult, path: string): string {
  const end = shown.totalLines;
  if (shown.lastLinePartial) {
    return `[Showing last ${formatSize(shown.outputBytes)} of line ${end} (line is ${formatSize(shown.totalBytes)}). Full output: ${path}]`;
  }
  const range = `${end - shown.outputLines + 1}-${end} of ${end}`;
  const limit = shown.truncatedBy === "bytes" ? ` (${formatSize(DEFAULT_MAX_BYTES)} limit)` : "";
  return `[Showing lines ${range}${limit}. Full output: ${path}]`;
}

function outputText(buffer: OutputBuffer, placeholder: string): { text: string; details: unknown } {
  const shown = buffer.shown();
  const path = buffer.path;
  if (!shown.truncated || path === undefined) return { text: shown.content || placeholder, details: undefined };
  return {
    text: `${shown.content}\n\n${notice(shown, path)}`,
    details: { truncation: shown, fullOutputPath: path },
  };
}

/** Runs a command and returns what a model sees of it. */
export async function runBash(
  cwd: string,
  options: BashToolOptions,
  params: { command: string; timeout?: number },
  sessionEnvironment: Record<string, string>,
  signal: AbortSignal | undefined,
  onUpdate: OnUpdate | undefined,
): Promise<ToolResult> {
  const { shellPath } = options;
  const operations = options.operations ?? createLocalBashOperations(shellPath === undefined ? {} : { shellPath });
  const command = options.commandPrefix ? `${options.commandPrefix}\n${params.command}` : params.command;
  const env = { ...process.env, ...(options.exposeSessionEnvironment === false ? {} : sessionEnvironment) };
  const spawned = options.spawnHook?.({ command, cwd, env }) ?? { command, cwd, env };

  const buffer = new OutputBuffer();
  let timer: NodeJS.Timeout | undefined;
  const update = (): void => {
    timer = undefined;
    const shown = buffer.shown();
    const details = shown.truncated ? { truncation: shown, fullOutputPath: buffer.path } : {};
    onUpdate?.(textResult(shown.content, details));
  };
  onUpdate?.({ content: [], details: undefined });
  const started = performance.now();
  const finish = (): void => {
    buffer.close();
    if (timer === undefined) return;
    clearTimeout(timer);
    update();
  };
  let exitCode: number | null;
  try {
    ({ exitCode } = await operations.exec(spawned.command, spawned.cwd, {
      onData: (data) => {
        buffer.add(data);
        if (onUpdate) timer ??= setTimeout(update, UPDATE_MS);
      },
      ...(signal === undefined ? {} : { signal }),
      ...(params.timeout === undefined ? {} : { timeout: params.timeout }),
      env: spawned.env,
    }));
  } catch (error) {
    finish();
    throw failure(error, buffer, signal);
  }
  finish();
  const { text, details } = outputText(buffer, "(no output)");
  if (exitCode === null) throw new Error(`${text}\n\nCommand terminated without an exit code`);
  const structured = buffer.structured();
  const structuredContent = {
    output: structured.output,
    truncated: structured.truncated,
    ...(structured.truncated ? { full_output_path: buffer.path } : {}),
    exit_code: exitCode,
    wall_time_seconds: (performance.now() - started) / 1000,
  };
  if (exitCode === 0) return { ...textResult(text, details), structuredContent };
  return {
    ...textResult(`${text}\n\nCommand exited with code ${exitCode}`, details),
    structuredContent,
    isError: true,
  };
}

/** The error of a command that did not come to its end, with its output so far. */
function failure(error: unknown, buffer: OutputBuffer, signal: AbortSignal | undefined): Error {
  const { text } = outputText(buffer, "");
  const withOutput = (reason: string): Error => new Error(text ? `${text}\n\n${reason}` : reason);
  const message = error instanceof Error ? error.message : String(error);
  // Operations of extensions tell both cases by these messages.
  const timeout = /^timeout:([\d.]+)$/.exec(message);
  if (error instanceof CommandTimeout || timeout) {
    return withOutput(`Command timed out after ${timeout?.[1] ?? "?"} seconds`);
  }
  if (signal?.aborted || message === "aborted") return withOutput("Command aborted");
  return error instanceof Error ? error : new Error(message);
}
