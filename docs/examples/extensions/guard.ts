// An extension for agentd and pi: asks before `rm -rf`, has a tool that counts words, and the command /shout.
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return;
    const command = String(event.input.command);
    if (!command.includes("rm -rf")) return;
    if (!(await ctx.ui.confirm("Delete?", command))) return { block: true, reason: "The user said no." };
  });

  pi.registerTool({
    name: "count_words",
    label: "Count words",
    description: "Counts the words of a text",
    promptSnippet: "count the words of a text",
    parameters: Type.Object({ text: Type.String() }),
    async execute(_id, { text }) {
      const count = text.split(/\s+/).filter(Boolean).length;
      return { content: [{ type: "text", text: String(count) }], details: { count } };
    },
  });

  pi.registerCommand("shout", {
    description: "Shows its text in capitals",
    handler: async (args, ctx) => ctx.ui.notify(args.toUpperCase(), "info"),
  });
}
