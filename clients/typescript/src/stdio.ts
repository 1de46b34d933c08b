import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";

import { AgentdError } from "./error.js";
import { LineStreams, type Transport, type TransportListener } from "./transport.js";

/** How `agentd --stdio` is started. */
export interface ProcessOptions {
  /** The program; default `agentd`, looked for on `PATH`. */
  program?: string;
  /** More flags, after `--stdio`: such as `--no-session`, `--model NAME`, `--tools read`. */
  args?: string[];
  /** The folder to work in; default the current one. */
  cwd?: string;
  /** The environment, with the keys of providers; default this process's. */
  env?: NodeJS.ProcessEnv;
  /** Gets what agentd writes to stderr; without it, only the end is kept, for errors. */
  onStderr?: (text: string) => void;
}

/** How much of stderr an error shows, in characters. */
const SHOWN_STDERR = 4096;

/** How long agentd may take to end after the end of its input, and after SIGTERM, in milliseconds. */
const END_GRACE_MS = 5000;
const TERM_GRACE_MS = 2000;

/** Starts `agentd --stdio` as a child process. */
export async function startProcess(
  options: ProcessOptions,
  listener: TransportListener,
  maxLineBytes: number | undefined,
): Promise<Transport> {
  const program = options.program ?? "agentd";
  const child = spawn(program, ["--stdio", ...(options.args ?? [])], {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-SHOWN_STDERR);
    options.onStderr?.(text);
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error: NodeJS.ErrnoException) => reject(notStarted(program, error)));
  });
  const reason = async (cause: unknown): Promise<AgentdError> => {
    // An agentd whose output has ended is of no use any more, even if it has not ended itself.
    await ended(child, exited, TERM_GRACE_MS);
    // A process that agentd started may hold its stderr open: what it said last is not waited for in vain.
    await Promise.race([closed, delay(TERM_GRACE_MS, undefined, { ref: false })]);
    const how = child.signalCode ? `signal ${child.signalCode}` : `exit code ${child.exitCode}`;
    const said = stderr.trim();
    return new AgentdError("connection_lost", `agentd has ended (${how})${said ? `: ${said}` : "."}`, { cause });
  };
  const streams = new LineStreams(child.stdout, child.stdin, listener, maxLineBytes, reason);
  return {
    write: (text) => streams.write(text),
    setPaused: (isPaused) => streams.setPaused(isPaused),
    close: async () => {
      streams.finish();
      await ended(child, exited, END_GRACE_MS);
      child.stdout.destroy();
      child.stderr.destroy();
      await streams.ended;
    },
  };
}

/** Waits for the end of the process, and enforces it after the time. */
async function ended(child: ChildProcess, exited: Promise<void>, grace: number): Promise<void> {
  const terminate = setTimeout(() => child.kill("SIGTERM"), grace);
  const kill = setTimeout(() => child.kill("SIGKILL"), grace + TERM_GRACE_MS);
  await exited;
  clearTimeout(terminate);
  clearTimeout(kill);
}

function notStarted(program: string, error: NodeJS.ErrnoException): AgentdError {
  const why = error.code === "ENOENT" ? "there is no such program" : error.message;
  return new AgentdError("not_started", `${program} does not start: ${why}.`, {
    hint: "Install agentd, or name it by the option program.",
    cause: error,
  });
}
