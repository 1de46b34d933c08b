// agentd on stdin and stdout, for suites whose subject is not the client.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { agentd, awaited } from "./support.mjs";

/// Starts agentd in the home, with `env` beside the home's own variables; it ends before the home is removed.
export function connect(home, args = [], env = {}) {
  const child = spawn(agentd, ["--mode", "rpc", ...args], {
    cwd: home.project, env: { ...process.env, ...home.env, ...env }, stdio: ["pipe", "pipe", "inherit"],
  });
  const listeners = new Set();
  const listen = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const record = JSON.parse(line);
    for (const listener of [...listeners]) listener(record);
  });
  let next = 0;
  const client = {
    /// Calls `listener` with every line from now on, until the function that it gives back is called.
    listen,
    /// Waits for an event of that type.
    event: (type) => awaited(listen, (record) => record.type === type, type),
    /// Sends a command, and gives back its whole response.
    async send(command) {
      const id = `c${++next}`;
      const response = awaited(listen, (record) => record.type === "response" && record.id === id, command.type);
      child.stdin.write(`${JSON.stringify({ id, ...command })}\n`);
      return response;
    },
    /// Sends a line that is not answered.
    say(line) {
      child.stdin.write(`${JSON.stringify(line)}\n`);
    },
    /// Sends a command that has to succeed, and gives back its data.
    async done(command) {
      const response = await client.send(command);
      assert.ok(response.success, JSON.stringify(response));
      return response.data;
    },
    /// Sends a prompt and waits for the end of its run.
    async prompt(message, more = {}) {
      const settled = client.event("agent_settled");
      await client.done({ type: "prompt", message, ...more });
      await settled;
    },
    /// Sends a command that agentd does not survive, and waits for its death by a signal.
    async dieOf(command) {
      const exit = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));
      child.stdin.write(`${JSON.stringify(command)}\n`);
      assert.equal(await exit, "SIGKILL", "what ended agentd");
    },
    /// Kills agentd as the kernel would.
    async kill() {
      const exit = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exit;
    },
    /// Ends agentd by the end of its input.
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = new Promise((resolve) => child.once("exit", resolve));
      child.stdin.end();
      assert.equal(await exit, 0, "agentd's exit code at the end of its input");
    },
  };
  home.cleanups.push(() => client.end());
  return client;
}
