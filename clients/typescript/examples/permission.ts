// The user is asked before a command runs.
import { createInterface } from "node:readline/promises";

import { Agentd } from "agentd-client";

const agentd = await Agentd.spawn({
  args: ["--no-session", "--permissions", "workspace"],
  async onPermission(question, { signal }) {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    // Another client may be first: then the signal ends the question.
    const answer = await terminal.question(`${question.title} [y/n] `, { signal }).finally(() => terminal.close());
    return answer === "y" ? "once" : { decision: "deny", message: "The user does not want that." };
  },
});
try {
  const session = await agentd.currentSession();
  console.log(await session.ask(process.argv[2] ?? "Build the project."));
} finally {
  await agentd.close();
}
