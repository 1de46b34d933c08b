// The answer as it comes, and the tool calls in between; Ctrl-C stops the run.
import { Agentd, AgentdError } from "agentd-client";

const interrupt = new AbortController();
process.once("SIGINT", () => interrupt.abort());

const agentd = await Agentd.spawn({ args: ["--no-session"] });
try {
  const session = await agentd.currentSession();
  const run = session.prompt(process.argv[2] ?? "How many files are there?", { signal: interrupt.signal });
  for await (const event of run) {
    if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") {
      process.stdout.write(event.assistantMessageEvent.delta);
    } else if (event.type === "tool_execution_start") {
      console.log(`\n[${event.toolName}] ${JSON.stringify(event.args)}`);
    }
  }
  const { turns, usage } = await run.result();
  console.log(`\n${turns} answers, ${usage.output} tokens, $${usage.costUsd.toFixed(4)}`);
} catch (error) {
  if (!(error instanceof AgentdError)) throw error;
  console.error(`${error.code}: ${error.message}`, error.hint ?? "");
  process.exitCode = 1;
} finally {
  await agentd.close();
}
