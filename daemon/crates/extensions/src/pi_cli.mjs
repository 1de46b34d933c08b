// Becomes agentd in the form of pi's command line. Extensions that start an agent run this file, which is `process.argv[1]` of their host.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("./bin/pi", import.meta.url));
const args = process.argv.slice(2);

// From 22.15 on Node can put another program into its own place.
if (typeof process.execve === "function") process.execve(program, [program, ...args], process.env);

// An older one stands between: what it is told by signals is passed on, and it ends as the program does. If it is killed, the program
// ends with the process group of the host at the latest.
const child = spawn(program, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  process.stderr.write(`Error: cannot start ${program}: ${error.message}\n`);
  process.exitCode = 1;
});
child.on("exit", (code, signal) => {
  process.exitCode = code ?? 128 + constants.signals[signal];
});
