// Logs every event that extensions get, with the shape of its payload and what its context says, one JSON line each.
import { appendFileSync } from "node:fs";
import { join } from "node:path";

const EVENTS = [
  "project_trust", "session_start", "resources_discover", "session_info_changed", "session_before_switch", "session_before_fork",
  "session_before_compact", "session_compact", "session_compact_failed", "session_before_tree", "session_tree", "session_shutdown",
  "mcp_servers_change", "input", "before_agent_start", "agent_start", "agent_end", "agent_before_settle", "agent_settled", "turn_start",
  "turn_end", "message_start", "message_update", "message_end", "context", "context_with_system", "before_provider_headers",
  "before_provider_request", "after_provider_response", "provider_stream_event", "tool_execution_start", "tool_execution_update",
  "tool_execution_end", "tool_call", "tool_result", "model_select", "thinking_level_select", "user_bash", "cache_warming_decision",
  "ui_prompt_start", "ui_prompt_end",
];

/// The kinds of a value's parts. Lists have the kinds of their elements, each once.
function shape(value, depth) {
  if (value === null) return "null";
  if (Array.isArray(value)) return depth === 0 ? "list" : [...new Set(value.map((item) => JSON.stringify(shape(item, depth - 1))))].map((text) => JSON.parse(text));
  if (value instanceof AbortSignal) return "signal";
  if (typeof value !== "object") return typeof value;
  if (depth === 0) return "object";
  const shown = {};
  for (const key of Object.keys(value).sort()) if (value[key] !== undefined) shown[key] = shape(value[key], depth - 1);
  return shown;
}

/// Words whose values are the same in each program.
const WORDS = ["reason", "source", "level", "previousLevel", "streamingBehavior", "messageType", "position", "outcome", "continue", "aborted", "isError", "willRetry", "fromExtension", "action", "kind", "toolName", "turnIndex", "excludeFromContext", "name", "text", "prompt", "status"];

export default function (pi) {
  const log = join(process.env.HOME, "probe.jsonl");
  const write = (line) => appendFileSync(log, `${JSON.stringify(line)}\n`);
  for (const name of EVENTS) {
    pi.on(name, (event, ctx) => {
      const words = Object.fromEntries(WORDS.filter((word) => ["string", "number", "boolean"].includes(typeof event[word])).map((word) => [word, event[word]]));
      const message = event.message?.role;
      const said = name === "project_trust" ? {} : {
        idle: ctx.isIdle(), signal: ctx.signal !== undefined, pending: ctx.hasPendingMessages(), leaf: ctx.sessionManager.getLeafEntry()?.type,
        session: pi.getSessionName(), model: ctx.model?.id, thinking: pi.getThinkingLevel(), entries: ctx.sessionManager.getEntries().length,
      };
      write({ event: name, words, ...(message && { message }), shape: shape(event, name === "message_update" ? 2 : 3), ctx: said });
    });
  }
  pi.on("model_select", (event, ctx) => ctx.ui.setStatus("probe", `model ${event.model.id}`));
  pi.on("thinking_level_select", (event, ctx) => ctx.ui.setStatus("probe", `thinking ${event.level}`));
  pi.registerCommand("mark", { handler: async (args) => write({ mark: args }) });
  pi.registerCommand("navigate", {
    handler: async (args, ctx) => {
      const target = ctx.sessionManager.getEntries().find((entry) => entry.message?.role === "user");
      write({ navigated: await ctx.navigateTree(target.id, args === "summarize" ? { summarize: true, label: "left" } : {}) });
    },
  });
  pi.registerCommand("ask", {
    handler: async (_args, ctx) => {
      write({ select: await ctx.ui.select("Which?", ["a", "b"]) });
    },
  });
  pi.registerCommand("say", {
    handler: async (args) => {
      pi.sendMessage({ customType: "probe", content: args, display: true }, { triggerTurn: args === "go" });
    },
  });
}
