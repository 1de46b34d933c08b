/** Runs the host in this process until the daemon is gone. */
import { Link } from "./connection/link.ts";
import { Host, type ModuleFactories } from "./host/host.ts";

/** Exit code after a violation of the protocol. */
const EXIT_VIOLATION = 70;

export function runHost(workerFile: URL, factories: ModuleFactories): void {
  const descriptor = process.env["AGENTD_HOST_FD"];
  const fd = descriptor === undefined || descriptor === "" ? undefined : Number(descriptor);
  const link: Link = new Link(workerFile, fd, {
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
