// Agents that extensions run in their own process, in agentd and in pi: the same extension, the same model.

import { test } from "node:test";

import { both, call } from "./conversation.mjs";
import { scripted } from "./model_server.mjs";

/// An extension whose command `/agent NAME` runs the function of that name, and shows what it gives back.
const source = `
  import * as pi_ from "@earendil-works/pi-coding-agent";
  import { Agent } from "@earendil-works/pi-agent-core";
  import { streamSimple } from "@earendil-works/pi-ai/compat";
  import { Type } from "typebox";
  const { createAgentSession, DefaultResourceLoader, ModelRuntime, SessionManager, SettingsManager, getAgentDir, resolveCliModel } = pi_;

  const textOf = (message) => typeof message.content === "string" ? message.content : (message.content ?? []).map((part) => part.text ?? part.name ?? part.type).join("");
  const shown = (messages) => messages.filter((message) => message.role !== "system").map((message) => message.role + ": " + textOf(message));

  async function opened(ctx, more = {}, loading = {}) {
    const modelRuntime = await ModelRuntime.create();
    const settingsManager = SettingsManager.create(ctx.cwd, getAgentDir());
    const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), settingsManager, noExtensions: true, noSkills: true, noPromptTemplates: true, noContextFiles: true, ...loading });
    await resourceLoader.reload();
    const options = { cwd: ctx.cwd, modelRuntime, model: modelRuntime.getModel("fake", "one"), thinkingLevel: "off", resourceLoader, settingsManager, sessionManager: SessionManager.inMemory(ctx.cwd), ...more };
    const { session } = await createAgentSession(options);
    const events = [];
    session.subscribe((event) => events.push(event.type === "message_end" ? event.type + " " + event.message.role : event.type));
    return { session, events, modelRuntime, resourceLoader };
  }
  const counted = (events) => events.filter((type, index) => type !== "message_update" || events[index - 1] !== type);

  const runs = {
    async answer(ctx) {
      const { session, events } = await opened(ctx);
      const before = [session.isIdle, session.isStreaming, session.messages.length, session.model.id, session.thinkingLevel, session.getActiveToolNames()];
      let partial = "";
      session.subscribe((event) => { if (event.type === "message_update") partial = textOf(event.assistantMessageEvent.partial); });
      await session.prompt("Work.");
      const { tokens, cost, userMessages, assistantMessages, toolCalls } = session.getSessionStats();
      const after = [session.isIdle, shown(session.messages), session.getLastAssistantText(), partial, session.sessionFile, { tokens: tokens.total > 0, cost, userMessages, assistantMessages, toolCalls }];
      session.dispose();
      return { before, events: counted(events), after };
    },
    async tools(ctx) {
      const seen = [];
      const twice = { name: "twice", label: "Twice", description: "Doubles a number", parameters: Type.Object({ n: Type.Number() }), async execute(id, { n }, signal, onUpdate, ctx) { seen.push(["ctx", ctx.mode, ctx.hasUI, ctx.model.id]); return { content: [{ type: "text", text: String(2 * n) }], details: { n } }; } };
      const guard = { name: "guard", factory: (api) => {
        api.on("session_start", (event) => { seen.push(["start", event.reason]); });
        api.on("tool_call", (event) => { seen.push(["call", event.toolName]); if (event.toolName === "bash") return { block: true, reason: "No shell here." }; });
        api.on("agent_end", (event, ctx) => { seen.push(["end", ctx.sessionManager.getEntries().filter((entry) => entry.type === "message").length > 0]); });
        api.on("session_shutdown", () => { seen.push(["shutdown"]); });
        api.registerTool({ name: "inline", label: "Inline", description: "Of an inline extension", parameters: Type.Object({}), async execute() { return { content: [{ type: "text", text: "inline" }], details: {} }; } });
      } };
      const { session, events } = await opened(ctx, { tools: ["bash", "twice", "inline"], customTools: [twice] }, { extensionFactories: [guard] });
      await session.bindExtensions({ mode: "print" });
      await session.prompt("Work with tools.");
      if (session.extensionRunner.hasHandlers("session_shutdown")) await session.extensionRunner.emit({ type: "session_shutdown", reason: "quit" });
      const names = session.getAllTools().map((tool) => tool.name).filter((name) => ["bash", "twice", "inline"].includes(name)).sort();
      session.dispose();
      return { seen, names, active: session.getActiveToolNames().sort(), messages: shown(session.messages), ends: events.filter((type) => type === "tool_execution_end").length };
    },
    async queued(ctx) {
      const { session, events } = await opened(ctx);
      const first = session.prompt("Work slowly.");
      await new Promise((resolve) => { const stop = session.subscribe((event) => { if (event.type === "message_start" && event.message.role === "assistant") { stop(); resolve(); } }); });
      const refused = await session.prompt("Again.").catch((error) => error.message.includes("streamingBehavior"));
      const how = [await session.steer("Steer."), await session.followUp("Follow.")];
      ctx.ui.notify("queued");
      const waiting = [session.pendingMessageCount, [...session.getSteeringMessages()], [...session.getFollowUpMessages()], session.agent.hasQueuedMessages()];
      await first;
      const after = [session.pendingMessageCount, session.agent.hasQueuedMessages(), shown(session.messages)];
      session.dispose();
      return { refused, how, waiting, after };
    },
    async aborted(ctx) {
      const { session } = await opened(ctx);
      const first = session.prompt("Work for ever.");
      await new Promise((resolve) => { const stop = session.subscribe((event) => { if (event.type === "tool_execution_start") { stop(); resolve(); } }); });
      await session.abort();
      await first;
      const after = [session.isIdle, session.messages.at(-1).role, session.state.pendingToolCalls.size];
      session.dispose();
      return after;
    },
    async stored(ctx) {
      const file = ctx.cwd + "/kept.jsonl";
      const one = await opened(ctx, { sessionManager: SessionManager.open(file, undefined, ctx.cwd) });
      one.session.setSessionName("Kept");
      await one.session.prompt("Work.");
      const of = [one.session.sessionFile === file, one.session.sessionId === one.session.sessionManager.getSessionId(), one.session.sessionManager.getSessionName(), one.session.sessionManager.getEntries().map((entry) => entry.type)];
      one.session.dispose();
      const two = await opened(ctx, { sessionManager: SessionManager.open(file, undefined, ctx.cwd) });
      const before = shown(two.session.messages);
      await two.session.prompt("Work on.");
      two.session.dispose();
      return { of, before, after: shown(two.session.messages) };
    },
    async changed(ctx) {
      const { session, modelRuntime } = await opened(ctx);
      await session.setModel(modelRuntime.getModel("fake", "two"));
      const model = [session.model.id, session.thinkingLevel, session.supportsThinking()];
      await session.setModel(modelRuntime.getModel("fake", "one"));
      session.setThinkingLevel("high");
      session.setActiveToolsByName(["read", "nothing"]);
      const of = [session.model.id, session.thinkingLevel, session.getActiveToolNames()];
      await session.prompt("Work.");
      session.dispose();
      return { model, of };
    },
    async prompted(ctx) {
      const { session } = await opened(ctx, { noTools: "all" }, { systemPrompt: "You are a parrot.", appendSystemPrompt: ["You say everything twice."] });
      const prompt = session.systemPrompt;
      await session.prompt("Work.");
      session.dispose();
      return [prompt.includes("You are a parrot."), prompt.includes("You say everything twice."), session.getActiveToolNames()];
    },
    async refused() {
      const runtime = await ModelRuntime.create();
      const names = ["fake/one:high", "one", "fake/three", "nope/x"].map((cliModel) => { const { model, thinkingLevel, warning, error } = resolveCliModel({ cliModel, modelRuntime: runtime }); return [model?.provider, model?.id, thinkingLevel, warning, error]; });
      return { names, available: (await runtime.getAvailable()).map((model) => model.id), auth: runtime.hasConfiguredAuth("fake") };
    },
    async loop(ctx) {
      const events = [];
      const auth = await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model);
      const tool = { name: "decide", label: "Decide", description: "Decides", parameters: Type.Object({ yes: Type.Boolean() }), async execute(id, { yes }) { return { content: [{ type: "text", text: "noted " + yes }], details: {} }; } };
      const agent = new Agent({ initialState: { systemPrompt: "Decide.", model: ctx.model, thinkingLevel: "off", tools: [tool] }, streamFn: (model, context, options) => streamSimple(model, context, { ...options, apiKey: auth.apiKey }), toolExecution: "sequential" });
      agent.subscribe((event) => { events.push(event.type); });
      await agent.prompt("Work in a loop.");
      return { events: counted(events), messages: shown(agent.state.messages), error: agent.state.errorMessage };
    },
  };

  export default function (pi) {
    pi.registerCommand("agent", { description: "Runs an agent", handler: async (args, ctx) => {
      let said;
      try { said = await runs[args](ctx); } catch (error) { said = "failed: " + error.stack; }
      ctx.ui.notify(JSON.stringify(said, null, 1));
    } });
  }`;

/// Lets the slow answer of each program's model come to its end.
const release = {};

const what = {
  files: { "agent/extensions/agents.ts": source },
  // agentd has on record which agents worked in a session.
  extra: [(entry) => entry.type === "custom" && entry.customType === "agentd.subagents"],
  answer: (program) => scripted(
    ["Work slowly.", () => ({ text: "Slowly.", hold: new Promise((resolve) => (release[program] = resolve)) })],
    [["Work with tools.", 0], { calls: [call("t1", "twice", { n: 4 }), call("t2", "bash", { command: "touch made" }), call("t3", "inline", {})] }],
    ["Work with tools.", { text: "Done with tools." }],
    [["Work for ever.", 0], { calls: [call("b1", "bash", { command: "sleep 100" })] }],
    [["Work in a loop.", 0], { calls: [call("d1", "decide", { yes: true })] }],
    ["Work in a loop.", { text: "Decided." }],
    ["Steer.", { text: "Steered." }], ["Follow.", { text: "Followed." }],
    ["Work on.", { text: "Worked on." }],
    ["Work.", { text: "Worked." }],
  ),
};

for (const name of ["answer", "tools", "queued", "aborted", "stored", "changed", "prompted", "refused", "loop"]) {
  test(`an agent of an extension: ${name}`, (t) => both(t, what, async (place) => {
    const client = place.start();
    if (name === "queued") client.event((record) => record.message === "queued").then(() => release[place.program]());
    await client.command(`/agent ${name}`);
  }));
}
