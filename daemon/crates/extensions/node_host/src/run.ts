/** Runs the host in this process until the daemon is gone. */
import { Link } from "./connection/link.ts";
import type { Descriptors } from "./connection/shared.ts";
import { Host, type ModuleFactories } from "./host/host.ts";

/** Exit code after a violation of the protocol. */
const EXIT_VIOLATION = 70;

export function runHost(workerFile: URL, factories: ModuleFactories): void {
  const link: Link = new Link(workerFile, readDescriptors(process.env["AGENTD_HOST_FD"]), {
    onRecord: (record) => host.receive(record),
    onEnd: () => process.exit(0),
    onViolation: (message) => {
      console.error(`agentd host: ${message}`);
      process.exit(EXIT_VIOLATION);
    },
  });
  const host = new Host(link, factories);
  // An extension may end the process; what it sent before must arrive.
  process.on("exit", () => link.flush());
  process.on("uncaughtException", (error) => host.reportUncaught(error));
  process.on("unhandledRejection", (reason) => host.reportUncaught(reason));
}

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
