/** All of the host but its connection. */
import { EXIT_VIOLATION } from "./connection/descriptors.ts";
import type { Link } from "./connection/link.ts";
import { createAgentHost } from "./host/agent_host.ts";
import { Host } from "./host/host.ts";
import { convertToLlm, createModules, createTheme, unavailable } from "./modules/index.ts";

/** Runs the host in this process until the daemon is gone. */
export function runHost(link: Link): void {
  const host = new Host(link, {
    createModules,
    createTheme,
    unavailable,
    convertToLlm: (messages) => convertToLlm(messages as never[]),
    createAgentHost,
  });
  // An extension may end the process; what it sent before must arrive.
  process.on("exit", () => link.flush());
  process.on("uncaughtException", (error) => host.reportUncaught(error));
  process.on("unhandledRejection", (reason) => host.reportUncaught(reason));
  link.start({
    onRecord: (record) => host.receive(record),
    onEnd: () => process.exit(0),
    onViolation: (message) => {
      console.error(`agentd host: ${message}`);
      process.exit(EXIT_VIOLATION);
    },
  });
}
