/** `pi.exec`: runs a program without a shell. */
import { constants } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";

export interface ExecOptions {
  signal?: AbortSignal;
  /** Milliseconds; 0 and absent: no limit. */
  timeout?: number;
  cwd?: string;
  /** Bytes of both outputs together. */
  maxBuffer?: number;
}

export interface ExecResult {
  stdout: string;
  stderr: string;
  code: number;
  killed: boolean;
  truncated: boolean;
}

const DEFAULT_MAX_BUFFER = 256 * 1024 * 1024;
const KILL_AFTER_MS = 5000;
/** Outputs that a detached descendant holds open are waited for this long after the last data. */
const IDLE_AFTER_EXIT_MS = 100;

export async function execProgram(command: string, args: string[], cwd: string, options: ExecOptions = {}): Promise<ExecResult> {
  const maxBuffer = options.maxBuffer ?? DEFAULT_MAX_BUFFER;
  if (!Number.isInteger(maxBuffer) || maxBuffer < 0 || maxBuffer > constants.MAX_STRING_LENGTH) {
    throw new RangeError(`maxBuffer must be an integer between 0 and ${constants.MAX_STRING_LENGTH} bytes`);
  }
  const child = spawn(command, args, { cwd, shell: false, stdio: ["ignore", "pipe", "pipe"] });
  const killer = new Killer(child);
  const output = new Output(maxBuffer, () => {
    child.stdout?.destroy();
    child.stderr?.destroy();
    killer.kill();
  });
  child.stdout?.on("data", (data: Buffer) => output.take("stdout", data));
  child.stderr?.on("data", (data: Buffer) => output.take("stderr", data));
  const onAbort = () => killer.kill();
  if (options.signal?.aborted) onAbort();
  else options.signal?.addEventListener("abort", onAbort, { once: true });
  const timer = options.timeout !== undefined && options.timeout > 0 ? setTimeout(onAbort, options.timeout) : undefined;
  try {
    const end = await ended(child);
    const { stdout, stderr } = output.text();
    if ("error" in end) return { stdout, stderr: stderr || end.error.message, code: 1, killed: killer.sent, truncated: output.truncated };
    // A death by signal reads as code 0; a truncated output never reads as success.
    const code = end.code ?? 0;
    return { stdout, stderr, code: output.truncated && code === 0 ? 1 : code, killed: killer.sent, truncated: output.truncated };
  } finally {
    clearTimeout(timer);
    killer.stop();
    options.signal?.removeEventListener("abort", onAbort);
  }
}

class Killer {
  sent = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly child: ChildProcess) {}

  kill(): void {
    if (this.sent) return;
    this.sent = true;
    this.child.kill("SIGTERM");
    this.timer = setTimeout(() => {
      if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGKILL");
    }, KILL_AFTER_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

class Output {
  truncated = false;
  private bytes = 0;
  private readonly texts = { stdout: "", stderr: "" };
  private readonly decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };

  constructor(
    private readonly maxBytes: number,
    private readonly onFull: () => void,
  ) {}

  take(which: "stdout" | "stderr", data: Buffer): void {
    if (this.truncated) return;
    const left = this.maxBytes - this.bytes;
    const part = data.length <= left ? data : data.subarray(0, left);
    this.bytes += part.length;
    this.texts[which] += this.decoders[which].write(part);
    if (part.length < data.length) {
      this.truncated = true;
      this.onFull();
    }
  }

  text(): { stdout: string; stderr: string } {
    if (!this.truncated) {
      this.texts.stdout += this.decoders.stdout.end();
      this.texts.stderr += this.decoders.stderr.end();
    }
    return this.texts;
  }
}

type End = { code: number | null } | { error: Error };

function ended(child: ChildProcess): Promise<End> {
  return new Promise((resolve) => {
    let idle: NodeJS.Timeout | undefined;
    const finish = (end: End) => {
      clearTimeout(idle);
      resolve(end);
    };
    child.once("error", (error) => {
      if (child.pid === undefined) finish({ error });
    });
    child.once("close", (code) => finish({ code }));
    child.once("exit", (code) => {
      const giveUp = () => {
        child.stdout?.destroy();
        child.stderr?.destroy();
        finish({ code });
      };
      const restart = () => {
        clearTimeout(idle);
        idle = setTimeout(giveUp, IDLE_AFTER_EXIT_MS);
      };
      child.stdout?.on("data", restart);
      child.stderr?.on("data", restart);
      restart();
    });
  });
}
