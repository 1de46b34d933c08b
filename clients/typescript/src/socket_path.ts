import { homedir, userInfo } from "node:os";
import { isAbsolute } from "node:path";

import { AgentdError } from "./error.js";

/** The longest path of a socket in bytes: the system's field has 108, and the last one ends it. */
const MAX_BYTES = 107;

/**
 * The socket of the user's daemon, by the rules of agentd: `AGENTD_SOCKET`, else in `XDG_RUNTIME_DIR`, else in the agent
 * directory (`AGENTD_DIR`, else `PI_CODING_AGENT_DIR`, else `~/.agentd`); a path that is too long moves to the temporary
 * directory.
 */
export function socketPath(env: NodeJS.ProcessEnv = process.env, cwd: string = process.cwd()): string {
  const value = (name: string): string | undefined => env[name] || undefined;
  const home = value("HOME") ?? (env === process.env ? homedir() : undefined);
  const expanded = (path: string): string =>
    home && (path === "~" || path.startsWith("~/")) ? joined(cwd, joined(home, path.slice(1).replace(/^\/+/, ""))) : joined(cwd, path);
  const socket = value("AGENTD_SOCKET");
  if (socket) return expanded(socket);

  const named = value("AGENTD_DIR") ?? value("PI_CODING_AGENT_DIR");
  const standard = home ? joined(cwd, joined(home, ".agentd")) : undefined;
  const agentDir = named ? expanded(named) : standard;
  if (!agentDir) {
    throw new AgentdError("not_started", "There is no agent directory: HOME is not set.", { hint: "Set HOME or AGENTD_DIR." });
  }
  const file = `agentd-${hash(agentDir).toString(16).padStart(8, "0")}.sock`;
  const runtime = value("XDG_RUNTIME_DIR");
  const path =
    runtime && isAbsolute(runtime)
      ? joined(runtime, `agentd/${standard && isSame(agentDir, standard) ? "agentd.sock" : file}`)
      : joined(agentDir, "run/agentd.sock");
  if (fits(path)) return path;
  const below = (folder: string): string => joined(folder, `agentd-${userInfo().uid}/${file}`);
  const temporary = value("TMPDIR") ?? value("TMP") ?? value("TEMP");
  const inTemporary = temporary && below(joined(cwd, temporary));
  return inTemporary && fits(inTemporary) ? inTemporary : below("/tmp");
}

/** `..` stays: agentd does not take it out either, since what it leads to depends on links. */
function joined(folder: string, path: string): string {
  if (path === "") return folder;
  return isAbsolute(path) ? path : `${folder.replace(/\/+$/, "")}/${path}`;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

function isSame(one: string, other: string): boolean {
  return partsOf(one).join("/") === partsOf(other).join("/");
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= MAX_BYTES;
}

/** FNV-1a of 32 bits over the path's parts, each ended by a zero byte; the root is the part `/`. */
function hash(path: string): number {
  const parts = ["/", ...partsOf(path)];
  let sum = 0x811c9dc5;
  for (const byte of Buffer.from(`${parts.join("\0")}\0`)) sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  return sum;
}
