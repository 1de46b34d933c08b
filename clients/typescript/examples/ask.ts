// One question, one answer: node ask.ts "What is in this folder?"
import { Agentd } from "agentd-client";

const agentd = await Agentd.spawn({ args: ["--no-session"] });
try {
  const session = await agentd.currentSession();
  console.log(await session.ask(process.argv[2] ?? "What is in this folder?"));
} finally {
  await agentd.close();
}
