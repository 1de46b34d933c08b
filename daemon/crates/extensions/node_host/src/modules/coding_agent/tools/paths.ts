/** Path arguments of tools. */
import { homedir } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const UNICODE_SPACES = /[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g;

/** The absolute path that a model means. */
export function resolveToolPath(given: string, cwd: string): string {
  const path = given.replace(UNICODE_SPACES, " ").replace(/^@/, "");
  if (path.startsWith("file://")) return fileURLToPath(path);
  if (path === "~") return homedir();
  if (path.startsWith("~/")) return resolve(homedir(), path.slice(2));
  return isAbsolute(path) ? path : resolve(cwd, path);
}
