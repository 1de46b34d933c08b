// One session of the user's daemon, watched by a second client while the first one works in it.
import { Agentd } from "agentd-client";

const worker = await Agentd.connect({ name: "worker", start: true });
const watcher = await Agentd.connect({ name: "watcher", role: "observe" });
try {
  const session = await worker.openSession({ ephemeral: true });
  const watched = (await watcher.attachSession(session.id)).events();
  const watching = (async () => {
    for await (const event of watched) {
      if (event.type === "tool_execution_start") console.log(`watcher: ${event.toolName}`);
      if (event.type === "agent_settled") break;
    }
  })();
  console.log(`worker: ${await session.ask(process.argv[2] ?? "How many files are there?")}`);
  await watching;
  await session.close();
} finally {
  await watcher.close();
  await worker.close();
}
