/** Running of shell commands in this process, for extensions that wrap or redirect them. */
import { spawn } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { constants as osConstants } from "node:os";

export interface ExecOptions {
  onData: (data: Buffer) => void;
  signal?: AbortSignal;
  /** Seconds. */
  timeout?: number;
  env?: NodeJS.ProcessEnv;
}

export interface BashOperations {
  exec(command: string, cwd: string, options: ExecOptions): Promise<{ exitCode: number | null }>;
}

export interface ShellConfig {
  shell: string;
  args: string[];
}

/** Longest time-out of a timer, in seconds. */
const MAX_TIMEOUT_SECONDS = 2147483.647;
/** How long pipes that a background process holds are read on after the shell has ended. */
const QUIET_MS = 100;

function onPath(name: string): string | undefined {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/** The shell and its arguments before the command. */
export function getShellConfig(customShellPath?: string): ShellConfig {
  if (customShellPath !== undefined) {
    if (!existsSync(customShellPath)) throw new Error(`Custom shell path not found: ${customShellPath}`);
    return { shell: customShellPath, args: ["-c"] };
  }
  if (existsSync("/bin/bash")) return { shell: "/bin/bash", args: ["-c"] };
  return { shell: onPath("bash") ?? "sh", args: ["-c"] };
}

export function getPowerShellConfig(): never {
  throw new Error("The powershell tool is only available on Windows.");
}

/** Thrown when a command ran longer than it might. */
export class CommandTimeout extends Error {
  constructor(seconds: number) {
    super(`timeout:${seconds}`);
    this.name = "CommandTimeout";
  }
}

function checkTimeout(seconds: number | undefined): void {
  if (seconds === undefined) return;
  if (!Number.isFinite(seconds) || seconds <= 0) throw new Error("Invalid timeout: must be a finite number of seconds");
  if (seconds > MAX_TIMEOUT_SECONDS) throw new Error(`Invalid timeout: maximum is ${MAX_TIMEOUT_SECONDS} seconds`);
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone already.
  }
}

function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number | null {
  if (code !== null) return code;
  return signal === null ? null : 128 + osConstants.signals[signal];
}

/** Runs commands with the local shell, each in a process group of its own. */
export function createLocalBashOperations(options: { shellPath?: string } = {}): BashOperations {
  return {
    exec(command, cwd, { onData, signal, timeout, env }) {
      return new Promise((resolve, reject) => {
        checkTimeout(timeout);
        if (!existsSync(cwd)) {
          throw new Error(`Working directory does not exist: ${cwd}\nCannot execute bash commands.`);
        }
        if (signal?.aborted) throw new Error("aborted");
        const { shell, args } = getShellConfig(options.shellPath);
        const child = spawn(shell, [...args, command], {
          cwd,
          detached: true,
          env: env ?? process.env,
          stdio: ["ignore", "pipe", "pipe"],
        });
        let timedOut = false;
        const abort = (): void => killGroup(child.pid);
        const timer =
          timeout === undefined
            ? undefined
            : setTimeout(() => {
                timedOut = true;
                abort();
              }, timeout * 1000);
        let quiet: NodeJS.Timeout | undefined;
        let exited: { code: number | null; signal: NodeJS.Signals | null } | undefined;
        const finish = (): void => {
          clearTimeout(timer);
          clearTimeout(quiet);
          signal?.removeEventListener("abort", abort);
          child.stdout.destroy();
          child.stderr.destroy();
          if (timedOut) reject(new CommandTimeout(timeout as number));
          else if (signal?.aborted) reject(new Error("aborted"));
          else resolve({ exitCode: exitCodeOf(exited?.code ?? null, exited?.signal ?? null) });
        };
        const waitForQuiet = (): void => {
          clearTimeout(quiet);
          quiet = setTimeout(finish, QUIET_MS);
        };
        const take = (data: Buffer): void => {
          onData(data);
          if (exited) waitForQuiet();
        };
        child.stdout.on("data", take);
        child.stderr.on("data", take);
        signal?.addEventListener("abort", abort, { once: true });
        child.once("error", (error) => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", abort);
          reject(error);
        });
        child.once("exit", (code, exitSignal) => {
          exited = { code, signal: exitSignal };
          waitForQuiet();
        });
        child.once("close", finish);
      });
    },
  };
}
