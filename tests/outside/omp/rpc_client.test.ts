// omp's own client class drives agentd: every public method that agentd has the command for.

import { RpcClient, defineRpcClientTool } from "@oh-my-pi/pi-coding-agent/modes/rpc/rpc-client";
import { afterEach, expect, test } from "bun:test";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { agentd, documented, home, packages } from "./support.mjs";

type Cleanup = () => unknown;
const cleanups: Cleanup[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** The names of the methods that were called and did not fail, over all tests. */
const called = new Set<string>();

/** Commands that agentd does not have, and `login`, which takes other fields: see docs/clients.md. */
const MISSING = ["setFastMode", "handoff", "getLoginProviders", "login"];
/** Methods about subagents, which have tests of their own. */
const ELSEWHERE = [
  "getSubagentMessages", "onSubagentLifecycle", "onSubagentProgress", "onSubagentEvent",
];

/** A started client in a home of its own. */
async function started(options: Record<string, unknown> = {}) {
  const place = home({ after: (cleanup: Cleanup) => cleanups.push(cleanup) });
  const { args = [], ...more } = options as { args?: string[] };
  const inner = new RpcClient({
    command: [agentd], cwd: place.project, env: place.env, provider: "script", model: "one", args: ["--ready", ...args], ...more,
  });
  const client = new Proxy(inner, {
    get(target, name: string) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) => {
        const result = member.apply(target, given);
        if (!(result instanceof Promise)) {
          called.add(name);
          return result;
        }
        return result.then((value: unknown) => {
          called.add(name);
          return value;
        });
      };
    },
  });
  cleanups.push(() => client.stop());
  await client.start();
  return { client, place };
}

/** What a client hears, in order, and waiting for it. */
function listening(client: RpcClient) {
  const heard: any[] = [];
  let woken = () => {};
  const hear = (event: unknown) => {
    heard.push(event);
    woken();
  };
  cleanups.push(client.onEvent(hear), client.onPromptResult(hear), client.onSessionSettled(() => hear({ type: "session_settled" })));
  return {
    heard,
    async until(wanted: (event: any) => boolean) {
      for (;;) {
        const found = heard.find(wanted);
        if (found) return found;
        await new Promise<void>((resolve) => (woken = resolve));
      }
    },
  };
}

const textOf = (message: any): string =>
  typeof message.content === "string" ? message.content : message.content.map((block: any) => block.text ?? "").join("");

test("a prompt, its events and its end", async () => {
  const { client } = await started();
  const { heard, until } = listening(client);
  const id = await client.prompt("hello");
  const result = await until((event) => event.type === "prompt_result");
  expect(result).toMatchObject({ id, agentInvoked: true, status: "completed", sessionSettled: true });
  await until((event) => event.type === "session_settled");
  const types = heard.map((event) => event.type);
  for (const type of ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]) {
    expect(types).toContain(type);
  }
  const deltas = heard.filter((event) => event.assistantMessageEvent?.type === "text_delta");
  expect(deltas.map((event) => event.assistantMessageEvent.delta).join("")).toBe("Hello back.");
  const end = heard.findLast((event) => event.type === "message_end");
  expect(new Set(deltas.map((event) => event.messageId))).toEqual(new Set([end.messageId]));
  expect(await client.getLastAssistantText()).toBe("Hello back.");
  expect((await client.getMessages()).map((message) => message.role)).toEqual(["system", "user", "assistant"]);
  expect((await client.getMessagesPage({ limit: 1 })).nextCursor).toBeString();
  expect((await client.getSessionStats()).assistantMessages).toBe(1);
  expect((await client.getEntries()).entries.length).toBeGreaterThan(2);
  expect((await client.getTree()).leafId).toBeString();
  await client.waitForSettled();
});

test("events are collected until the end of the prompt", async () => {
  const { client } = await started();
  const events = await client.promptAndWait("use a tool");
  const ended: any = events.find((event) => event.type === "tool_execution_end");
  expect(textOf(ended.result)).toBe("one\ntwo\n");
  // One after the other: of two that wait for the same event, the client forgets one.
  const collected = client.collectEvents();
  await client.prompt("hello");
  expect((await collected).at(-1)?.type).toBe("agent_end");
  await client.waitForSettled();
  const idle = client.waitForIdle();
  await client.prompt("hello");
  await idle;
  expect(client.getStderr()).toBe("");
});

test("events of subagents are asked for by level", async () => {
  const { client } = await started();
  for (const level of ["events", "progress", "off"] as const) expect(await client.setSubagentSubscription(level)).toBe(level);
  expect(await client.getSubagents()).toEqual([]);
});

test("a run is steered, stopped and replaced", async () => {
  const { client } = await started();
  const { until } = listening(client);
  const id = await client.prompt("hang");
  await until((event) => event.type === "message_update");
  await client.steer("left");
  await client.followUp("and then");
  expect(await client.getState()).toMatchObject({ isStreaming: true, queuedMessageCount: 2, isSettled: false, hasPendingAsyncWork: false });
  await client.abort();
  expect(await until((event) => event.type === "prompt_result" && event.id === id)).toMatchObject({ status: "aborted" });
  expect((await client.getState()).isStreaming).toBeFalse();
  await client.prompt("hang");
  await until((event) => event.type === "message_update");
  await client.abortAndPrompt("hello");
  await until((event) => event.type === "prompt_result" && event.status === "completed");
});

test("a failure says whether it passes", async () => {
  const { client } = await started();
  const { until } = listening(client);
  await client.prompt("fail");
  const { status, error } = await until((event) => event.type === "prompt_result");
  expect(status).toBe("error");
  expect(error).toMatchObject({ provider: "script", model: "one", retryable: true });
});

test("models, levels, modes and switches", async () => {
  const { client } = await started();
  expect(await client.setModel("script", "two")).toMatchObject({ provider: "script", id: "two" });
  expect((await client.getState()).model).toMatchObject({ id: "two" });
  expect((await client.cycleModel())?.model.id).toBe("one");
  expect((await client.getAvailableModels()).map((model) => model.id).sort()).toEqual(["one", "two"]);
  const levels = await client.getAvailableThinkingLevels();
  expect(levels).toContain("high");
  await client.setThinkingLevel("high" as any);
  expect((await client.getState()).thinkingLevel).toBe("high" as any);
  expect(await client.cycleThinkingLevel()).not.toBeNull();
  await client.setSteeringMode("all");
  await client.setFollowUpMode("all");
  await client.setAutoRetry(false);
  await client.abortRetry();
  await client.setAutoCompaction(false);
  expect(await client.getState()).toMatchObject({ steeringMode: "all", followUpMode: "all", autoCompactionEnabled: false });
});

test("commands of the user, sessions and their branches", async () => {
  const { client, place } = await started();
  expect((await client.bash("printf 'one\\n'")).output).toBe("one\n");
  await client.abortBash();
  await client.promptAndWait("hello");
  const first = await client.getState();
  const [prompted] = await client.getBranchMessages();
  expect(prompted?.text).toBe("hello");
  expect(await client.branch(prompted!.entryId)).toEqual({ text: "hello", cancelled: false });
  expect(await client.newSession()).toEqual({ cancelled: false });
  expect((await client.getState()).messageCount).toBe(0);
  expect(await client.switchSession(first.sessionFile!)).toEqual({ cancelled: false });
  expect((await client.getState()).sessionId).toBe(first.sessionId);
  expect((await client.exportHtml(place.at("page.html"))).path).toBe(place.at("page.html"));
  expect(readFileSync(place.at("page.html"), "utf8")).toContain("Hello back.");
  await client.promptAndWait("more");
  expect((await client.compact("Keep it short.")).summary).toBeString();
  const opened = await client.openSession(place.at("talks"));
  expect(opened).toMatchObject({ cancelled: false, resumed: false });
  expect(opened.sessionFile).toStartWith(place.at("talks"));
  await client.promptAndWait("hello");
  await client.newSession();
  expect(await client.openSession(place.at("talks"))).toMatchObject({ resumed: true });
});

test("tools of the host, their updates and their failures", async () => {
  const steps = [
    { when: { promptContains: "", results: 2 }, emit: [{ text: "Both." }] },
    { when: { promptContains: "", results: 1 }, emit: [{ toolCall: { id: "c2", name: "fail", arguments: {} } }] },
    { when: { promptContains: "" }, emit: [{ toolCall: { id: "c1", name: "look_up", arguments: { word: "x" } } }] },
  ];
  const lookUp = defineRpcClientTool({
    name: "look_up", label: "Look up", description: "Looks a word up.",
    parameters: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
    execute(params, context) {
      context.sendUpdate("half");
      return { content: [{ type: "text", text: `${params.word} for ${context.toolCallId}` }], details: { found: true } };
    },
  });
  const fail = defineRpcClientTool({
    name: "fail", description: "Fails.", parameters: { type: "object", properties: {} },
    execute() {
      throw new Error("not today");
    },
  });
  const { client, place } = await started({ customTools: [lookUp, fail] });
  writeFileSync(place.at("script.json"), JSON.stringify({ steps }));
  const events: any[] = await client.promptAndWait("go");
  const update = events.find((event) => event.type === "tool_execution_update");
  expect(textOf(update.partialResult)).toBe("half");
  const results = events.filter((event) => event.type === "tool_execution_end");
  expect(results.map((event) => [textOf(event.result), event.isError])).toEqual([["x for c1", false], ["not today", true]]);
  expect(await client.setCustomTools([])).toEqual([]);
});

test("a filter leaves events out, and answers and ends come all the same", async () => {
  const { client } = await started();
  const { heard } = listening(client);
  expect(await client.setEventFilter(["message_end"])).toEqual(["message_end"]);
  await client.promptAndWait("hello");
  const types = new Set(heard.map((event) => event.type));
  expect([...types].sort()).toEqual(["message_end", "prompt_result"]);
  expect(await client.setEventFilter(null)).toBeNull();
});

test("messages of more than a megabyte come in parts", async () => {
  const { client, place } = await started();
  const long = "Länger. ".repeat(200_000);
  writeFileSync(place.at("script.json"), JSON.stringify({ steps: [{ when: { promptContains: "" }, emit: [{ text: long }] }] }));
  const { until } = listening(client);
  await client.prompt("much");
  const end = await until((event) => event.type === "message_end" && event.message.role === "assistant");
  expect(textOf(end.message)).toBe(long);
  await client.waitForSettled();
  expect(textOf((await client.getMessages()).at(-1))).toBe(long);
});

test("commands that a message can begin with", async () => {
  const { client, place } = await started();
  const seen: unknown[] = [];
  cleanups.push(client.onAvailableCommandsUpdate((commands) => seen.push(commands)), client.onSessionEvent((event) => seen.push(event)));
  writeFileSync(place.at("project/note.txt"), "x");
  expect(await client.getAvailableCommands()).toBeArray();
});

test("a client is stopped and started again", async () => {
  const { client } = await started();
  await client.stop();
  await client.start();
  expect((await client.getState()).isSettled).toBeTrue();
  client[Symbol.dispose]();
});

test("the example of the page", async () => {
  const place = home({ after: (cleanup: Cleanup) => cleanups.push(cleanup) });
  writeFileSync(place.at("project/omp_rpc_client.ts"), documented("omp_rpc_client.ts"));
  symlinkSync(join(packages, "omp/node_modules"), place.at("project/node_modules"));
  const ran = Bun.spawnSync([process.execPath, "omp_rpc_client.ts"], { cwd: place.project, env: { ...process.env, ...place.env } });
  expect(ran.stderr.toString()).toBe("");
  expect(ran.stdout.toString()).toBe("Well.\n");
});

test("every method of the client was tried", () => {
  const declared = Object.getOwnPropertyNames(RpcClient.prototype).filter((name) => name !== "constructor");
  expect(declared.length).toBeGreaterThan(50);
  const untried = declared.filter((name) => !called.has(name) && !MISSING.includes(name) && !ELSEWHERE.includes(name));
  expect(untried).toEqual([]);
});
