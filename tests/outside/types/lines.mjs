// The lines of the golden transcripts, each with the type that it is of.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const zeros = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const usage = { ...zeros, totalTokens: 0, cost: { ...zeros, total: 0 } };

/// `[{ place, type, line }]`; lines that are sent to be refused are left out.
export function goldenLines(folder, commands) {
  const lines = [];
  for (const name of readdirSync(folder).filter((name) => name.endsWith(".jsonl"))) {
    readFileSync(join(folder, name), "utf8").split("\n").forEach((text, at) => {
      const sent = text.startsWith("> ");
      if (!sent && !text.startsWith("< ")) return;
      // Commands that are no JSON or no commands are part of the transcripts, of what is refused.
      const line = parsed(text.slice(2));
      if (sent && !(commands.has(line?.type) && (line.type !== "prompt" || typeof line.message === "string"))) return;
      // Sent to show that it is ignored.
      if (sent) delete line.surplus;
      const type = sent ? "Command" : line.type === "response" ? "Response" : "Event";
      lines.push({ place: `${name}:${at + 1}`, type, line });
    });
  }
  return lines;
}

function parsed(text) {
  try {
    // What the normaliser takes out is put back.
    return JSON.parse(text, (key, value) => (key === "usage" && value === "<usage>" ? usage : value));
  } catch {
    return undefined;
  }
}
