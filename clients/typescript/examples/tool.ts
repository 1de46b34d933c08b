// A tool of ours, which the model can call.
import { Agentd } from "agentd-client";

const agentd = await Agentd.spawn({ args: ["--no-session"] });
try {
  const session = await agentd.currentSession();
  await session.registerTool<{ times: number }>({
    name: "coin",
    description: "Throws a coin, and says what came up each time.",
    parameters: {
      type: "object",
      properties: { times: { type: "integer", minimum: 1, maximum: 100 } },
      required: ["times"],
    },
    execute: ({ times }, call) => {
      call.signal.throwIfAborted();
      return Array.from({ length: times }, () => (Math.random() < 0.5 ? "heads" : "tails")).join(", ");
    },
  });
  console.log(await session.ask(process.argv[2] ?? "Throw the coin three times."));
} finally {
  await agentd.close();
}
