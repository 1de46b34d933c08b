/** Where the connection is. */
import type { Descriptors } from "./shared.ts";

/** Exit code after a violation of the protocol, by either side. */
export const EXIT_VIOLATION = 70;

/** `3`: a socket; `3,4`: records come from 3 and go to 4; nothing: standard input and output. */
export function readDescriptors(text: string | undefined): Descriptors {
  if (text === undefined || text === "") return { input: 0, output: 1 };
  const match = /^(\d+)(?:,(\d+))?$/.exec(text);
  if (match === null) {
    console.error(`agentd host: AGENTD_HOST_FD must be one or two file descriptors, not "${text}"`);
    process.exit(EXIT_VIOLATION);
  }
  const input = Number(match[1]);
  return { input, output: match[2] === undefined ? input : Number(match[2]) };
}
