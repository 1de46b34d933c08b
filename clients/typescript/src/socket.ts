import { spawn } from "node:child_process";
import { lstat } from "node:fs/promises";
import { type Socket, connect } from "node:net";

import { AgentdError } from "./error.js";
import { socketPath } from "./socket_path.js";
import { LineStreams, type Transport, type TransportListener } from "./transport.js";

/** Where the user's daemon is, and whether it may be started. */
export interface SocketOptions {
  /** The socket; default the one that agentd and agentctl use in this environment. */
  socket?: string;
  /** Whether to start the daemon (`agentctl up`) where none runs; default false. */
  start?: boolean;
  /** The program that starts it; default `agentctl`, looked for on `PATH`. */
  agentctl?: string;
  /** The environment by which the socket is found, and with which the daemon is started; default this process's. */
  env?: NodeJS.ProcessEnv;
}

/** Connects to the daemon's socket. */
export async function openSocket(
  options: SocketOptions,
  listener: TransportListener,
  maxLineBytes: number | undefined,
): Promise<Transport> {
  const env = options.env ?? process.env;
  const path = options.socket ?? socketPath(env);
  let socket = await connected(path);
  if (!socket && options.start) {
    await startDaemon(options.agentctl ?? "agentctl", { ...env, AGENTD_SOCKET: path });
    socket = await connected(path);
  }
  if (!socket) {
    throw new AgentdError("not_started", `No daemon listens at ${path}.`, {
      hint: "Start it by `agentctl up`, or set the option start.",
    });
  }
  const open = socket;
  const reason = async (cause: unknown): Promise<AgentdError> =>
    new AgentdError("connection_lost", "The daemon has ended the connection.", { cause });
  const streams = new LineStreams(open, open, listener, maxLineBytes, reason);
  return {
    write: (text) => streams.write(text),
    setPaused: (isPaused) => streams.setPaused(isPaused),
    close: async () => {
      streams.finish();
      await streams.ended;
    },
  };
}

/** A connection; nothing where no process listens. */
async function connected(path: string): Promise<Socket | undefined> {
  const unusable = (error: unknown): AgentdError =>
    new AgentdError("not_started", `The socket ${path} cannot be used: ${String(error)}`, { cause: error });
  try {
    const { uid } = await lstat(path);
    // In a folder that everyone can write to, another user may have made the socket. Root makes those of a service manager.
    if (process.getuid && uid !== process.getuid() && uid !== 0) throw unusable(`it belongs to user ${uid}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error instanceof AgentdError ? error : unusable(error);
  }
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.off("error", failed);
      resolve(socket);
    });
    const failed = (error: NodeJS.ErrnoException): void => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(undefined);
      else reject(unusable(error));
    };
    socket.once("error", failed);
  });
}

/** Runs `agentctl up`, which returns when the daemon answers. */
function startDaemon(program: string, env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["up", "--json"], { env, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-4096)));
    child.once("error", (error) => {
      const hint = "Install agentd, or name agentctl by the option agentctl.";
      reject(new AgentdError("not_started", `${program} does not start: ${error.message}`, { hint, cause: error }));
    });
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new AgentdError("not_started", said.trim() || `\`${program} up\` ended with ${code}.`));
    });
  });
}
