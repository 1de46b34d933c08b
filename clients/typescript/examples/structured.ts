// An answer for a program: an object that fits a JSON Schema.
import { Agentd } from "agentd-client";

interface Review {
  verdict: "good" | "bad";
  reasons: string[];
}

const schema = {
  type: "object",
  required: ["verdict", "reasons"],
  additionalProperties: false,
  properties: { verdict: { enum: ["good", "bad"] }, reasons: { type: "array", items: { type: "string" } } },
};

const agentd = await Agentd.spawn({ args: ["--no-session", "--tools", "read,submit_answer"] });
try {
  const session = await agentd.currentSession();
  const review = await session.askFor<Review>(schema, process.argv[2] ?? "Review the change in change.diff.");
  console.log(review.verdict);
  for (const reason of review.reasons) console.log(`- ${reason}`);
} finally {
  await agentd.close();
}
