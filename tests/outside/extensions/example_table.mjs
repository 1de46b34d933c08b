// All example extensions of pi 1.5.2, and the conversation in which each shows what it does.
//
// One row an example: `works` is `yes`, `partly` (then `but` says what does not) or `no` (then `but` says why: what it is about is drawn on
// a terminal). The same stands in docs/extension-examples.md. A row is driven in agentd and in pi's RPC mode, and what they do is compared,
// so that a row with `yes` whose conversation differs fails. `targets` names the rows that targets.test.mjs drives.
//
// A row has what a side takes (side.mjs), and
//   `prepare(place)`: what is to be there before the start
//   `args`: more arguments of the program
//   `dialogs`: answers of dialogs by their method, or a function that makes these for one program
//   `talk(client, place)`: the conversation; what it gives back is compared, too
//   `greets`: how many requests it makes to the user at the start; they are waited for
//   `programs`: those of `files` that are programs, in bin/
//   `holds`: `answer` gets a promise that `place.letGo()` keeps
//   `unordered`: `{why, which}`: records whose place among the others is not compared
//   `waits`: it does not work yet, so that a difference is none for the suite
//   `installed`: its npm packages are there (run)
//   `wanted`: differences that are wanted (compare.mjs)
//   `apart`: both programs use one thing of the machine, so that one runs after the other

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { scripted } from "./model_server.mjs";

const call = (name, args = {}, id = "c1") => ({ id, name, args });
const always = () => true;

/// A model that makes these calls, one answer each, and then says that it is done.
const calling = (...batches) => scripted(
  ...batches.map((batch, at) => [(asked) => asked.results === batches.slice(0, at).flat().length && asked.prompt !== "", { calls: [batch].flat() }]),
  [always, { text: "Done." }],
);

const plain = scripted([always, { text: "Well." }]);

const identity = { GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
const git = (place, ...args) => execFileSync("git", args, { cwd: place.project, env: { ...process.env, ...identity }, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

/// A repository with one commit, and one change that is in none.
function repository(place) {
  git(place, "init", "-q", "-b", "main");
  writeFileSync(place.at("project/a.txt"), "one\n");
  git(place, "add", "-A");
  git(place, "commit", "-q", "-m", "first");
  writeFileSync(place.at("project/a.txt"), "one\ntwo\n");
}

/// What fits in the system prompts of the model's requests, one line a request.
const prompted = (place, pattern) => place.server.requests.map(({ body }) => {
  const system = body.messages.filter((message) => message.role === "system" || message.role === "developer");
  return JSON.stringify(system).match(pattern)?.[0] ?? "-";
});

/// The tools of the model's requests.
const offered = (place) => place.server.requests.map(({ body }) => (body.tools ?? []).map((tool) => tool.function.name).sort().join());

/// Runs commands of extensions, one after the other.
const commands = async (client, ...messages) => {
  for (const message of messages) await client.command(message);
};

const isSystem = (message) => message?.role === "system";
const promptIsReplaced = {
  why: "agentd keeps a prompt that an extension has put in the place of its own in the transcript, and pi sends it with the request alone",
  change: (record) => {
    if (isSystem(record.message)) return undefined;
    if (record.parentId) return { ...record, parentId: undefined };
    return record.messages ? { ...record, messages: record.messages.filter((message) => !isSystem(message)) } : record;
  },
};

export const rows = {
  "auto-commit-on-exit": {
    works: "yes", prepare: repository, env: () => identity, answer: plain,
    async talk(client, place) {
      await client.prompt("hello");
      await client.end();
      return [git(place, "log", "--format=%s"), git(place, "status", "--porcelain")];
    },
  },
  "bash-spawn-hook": {
    works: "yes", files: { "home/.profile": "export FROM_PROFILE=yes\n" },
    answer: calling([call("bash", { command: "echo $PI_SPAWN_HOOK $FROM_PROFILE" })], [call("bash", { command: "exit 3" }, "c2")]),
    talk: (client) => client.prompt("go"),
  },
  bookmark: {
    works: "yes", answer: plain,
    async talk(client) {
      await commands(client, "/bookmark too early");
      await client.prompt("hello");
      await commands(client, "/bookmark here", "/unbookmark", "/unbookmark", "/bookmark again");
    },
  },
  "border-status-editor": { works: "no", but: "it draws the editor's border", answer: plain, talk: (client) => client.prompt("hello") },
  "built-in-tool-renderer": {
    works: "yes", files: { "project/a.txt": "one\ntwo\n" },
    answer: calling(
      [call("read", { path: "a.txt" }), call("read", { path: "missing" }, "c2")], [call("bash", { command: "echo out; exit 2" }, "c3")],
      [call("edit", { path: "a.txt", edits: [{ oldText: "one", newText: "three" }] }, "c4")], [call("write", { path: "new/b.txt", content: "b\n" }, "c5")],
    ),
    async talk(client, place) {
      await client.prompt("go");
      return [readFileSync(place.at("project/a.txt"), "utf8"), readFileSync(place.at("project/new/b.txt"), "utf8")];
    },
  },
  "claude-rules": {
    works: "yes", files: { "project/.claude/rules/one.md": "1", "project/.claude/rules/deep/two.md": "2", "project/.claude/rules/no.txt": "3" },
    answer: plain, wanted: [promptIsReplaced],
    async talk(client, place) {
      await client.prompt("hello");
      return prompted(place, /Project Rules.*?for guidance/);
    },
  },
  commands: {
    works: "yes", files: { "agent/prompts/review.md": "---\ndescription: A review\n---\nReview $1" }, answer: plain,
    dialogs: { select: (request) => ({ value: request.options.find((option) => option.startsWith("/commands")) }), confirm: () => ({ confirmed: true }) },
    wanted: [{
      why: "the commands of extensions that are built into pi",
      change: (record) => (record.method === "select" ? { ...record, options: record.options.filter((option) => !/^\/(mcp|llama|codemode)/.test(option)) } : record),
    }],
    async talk(client) {
      await commands(client, "/commands", "/commands prompt", "/commands skill");
    },
  },
  "confirm-destructive": {
    unordered: { why: "a command that extensions prevent is answered beside what they show", which: (record) => ["new_session", "switch_session", "fork"].includes(record.command) },
    works: "yes", answer: plain, masks: [[/entry [0-9a-f]{8}\?/g, "<entry>"]],
    dialogs() {
      let asked = 0;
      return { confirm: () => ({ confirmed: asked++ % 2 === 1 }), select: (request) => ({ value: request.options[asked++ % 2 === 1 ? 0 : 1] }) };
    },
    async talk(client) {
      await client.prompt("one");
      const { sessionFile } = await client.done({ type: "get_state" });
      const { messages } = await client.done({ type: "get_fork_messages" });
      for (const _ of [0, 1]) await client.send({ type: "fork", entryId: messages[0].entryId });
      await client.prompt("two");
      for (const _ of [0, 1]) await client.send({ type: "switch_session", sessionPath: sessionFile });
      for (const _ of [0, 1]) await client.send({ type: "new_session" });
    },
  },
  "custom-footer": { works: "no", but: "it draws a footer", answer: plain, talk: (client) => commands(client, "/footer", "/footer") },
  "custom-header": { works: "no", but: "it draws a header", answer: plain, talk: (client) => commands(client, "/builtin-header") },
  "custom-provider-gitlab-duo": {
    works: "yes", answer: plain, settings: { retry: { enabled: false } }, env: () => ({ GITLAB_TOKEN: "token" }),
    wanted: [{
      why: "an answer of agentd's begins before its provider fails",
      change: (record) => (record.type === "message_start" && record.message.role === "assistant" ? undefined : record),
    }],
    // Nothing leaves this machine: GitLab says no.
    files: {
      "agent/extensions/no-gitlab.ts": `export default function () {
        globalThis.fetch = async (url, init) => new Response(String(url).includes("gitlab.com") && init.headers.Authorization === "Bearer token" ? "not here" : "what?", { status: 403 });
      }`,
    },
    async talk(client) {
      const { models } = await client.unrecorded({ type: "get_available_models" });
      await client.done({ type: "set_model", provider: "gitlab-duo", modelId: "claude-haiku-4-5-20251001" });
      await client.prompt("hello");
      return models.filter((model) => model.provider === "gitlab-duo").map((model) => [model.id, model.name, model.contextWindow]);
    },
  },
  "debug-provider": {
    works: "yes", answer: plain,
    async talk(client) {
      await client.prompt("before");
      await commands(client, "/debug-provider what", "/debug-provider on");
      await client.prompt("hello");
      await commands(client, "/debug-provider");
      await client.prompt("after");
    },
  },
  "dirty-repo-guard": {
    unordered: { why: "a command that extensions prevent is answered beside what they show", which: (record) => ["new_session", "switch_session", "fork"].includes(record.command) },
    works: "yes", prepare: repository, env: () => identity, answer: plain,
    dialogs: () => {
      let asked = 0;
      return { select: (request) => ({ value: request.options[asked++ === 0 ? 1 : 0] }) };
    },
    async talk(client, place) {
      await client.prompt("one");
      for (const _ of [0, 1]) await client.send({ type: "new_session" });
      git(place, "checkout", "-q", "a.txt");
      await client.send({ type: "new_session" });
    },
  },
  "doom-overlay": { works: "no", but: "it is a game on the screen", answer: plain, talk: (client) => commands(client, "/doom-overlay") },
  "dynamic-resources": {
    works: "partly", but: "its theme has no use", answer: plain,
    async talk(client) {
      // A run waits for what extensions do at the start.
      await client.prompt("hello");
      const { commands: all } = await client.done({ type: "get_commands" });
      await client.prompt("/dynamic");
      await client.prompt("/skill:dynamic-resources now");
      return all.filter((command) => command.source !== "extension").map((command) => [command.name, command.source, command.description]);
    },
  },
  "dynamic-tools": {
    works: "yes",
    answer: scripted(
      [["one", 0], { calls: [call("echo_session", { message: "a" })] }], [["two", 0], { calls: [call("echo_session", { message: "b" }), call("shout", { message: "c" }, "c2")] }],
      [always, { text: "Done." }],
    ),
    async talk(client, place) {
      await client.prompt("one");
      await commands(client, "/add-echo-tool", "/add-echo-tool not good", "/add-echo-tool Shout", "/add-echo-tool shout");
      await client.prompt("two");
      return [prompted(place, /Echo back user-provided text with \[shout\] prefix/), offered(place).map((names) => names.includes("shout"))];
    },
  },
  "entry-renderer": { works: "partly", but: "its entries are stored, and not drawn", answer: plain, talk: (client) => commands(client, "/status-card All is well", "/status-card") },
  "event-bus": { works: "yes", answer: plain, talk: (client) => commands(client, "/emit a message", "/emit") },
  "file-trigger": {
    works: "yes", apart: true, greets: 1, answer: plain,
    prepare(place) {
      if (existsSync("/tmp/agent-trigger.txt")) throw new Error("/tmp/agent-trigger.txt is somebody's");
      writeFileSync("/tmp/agent-trigger.txt", "");
      place.cleanups.push(() => rmSync("/tmp/agent-trigger.txt", { force: true }));
    },
    async talk(client) {
      const settled = client.event("agent_settled");
      writeFileSync("/tmp/agent-trigger.txt", "Run the tests\n");
      await settled;
      const left = readFileSync("/tmp/agent-trigger.txt", "utf8");
      await client.end();
      rmSync("/tmp/agent-trigger.txt");
      return left;
    },
  },
  "git-checkpoint": {
    works: "yes", prepare: repository, env: () => identity, answer: calling([call("bash", { command: "echo three >> a.txt" })], [call("bash", { command: "echo four >> a.txt" }, "c2")]),
    async talk(client, place) {
      await client.prompt("go");
      const { messages } = await client.done({ type: "get_fork_messages" });
      await client.send({ type: "fork", entryId: messages[0].entryId });
      // A stash that was created is two commits that nothing names, of the index and of the files. They are counted by their trees: two
      // commits of the same index in the same second are one.
      const lost = git(place, "fsck", "--unreachable", "--no-reflogs").match(/(?<=commit )[0-9a-f]+/g) ?? [];
      return lost.map((commit) => git(place, "rev-parse", `${commit}^{tree}`).trim()).filter((tree, at, all) => all.indexOf(tree) === at).sort();
    },
  },
  "git-merge-and-resolve": {
    works: "yes", env: () => identity,
    prepare(place) {
      repository(place);
      git(place, "checkout", "-q", "a.txt");
      execFileSync("git", ["clone", "-q", "--bare", place.project, place.at("upstream.git")], { stdio: "ignore" });
      git(place, "remote", "add", "origin", place.at("upstream.git"));
      git(place, "fetch", "-q", "origin");
      git(place, "branch", "-q", "--set-upstream-to=origin/main");
      const commit = (text) => {
        writeFileSync(place.at("project/a.txt"), text);
        git(place, "commit", "-q", "-a", "-m", text.trim());
      };
      commit("theirs\n");
      git(place, "push", "-q", "origin", "HEAD:main");
      git(place, "reset", "-q", "--hard", "HEAD~1");
      commit("ours\n");
    },
    answer: scripted(
      [["Resolve these conflicts", 0], { calls: [call("bash", { command: "git checkout -q --ours a.txt && git add a.txt && git commit -q -m merged" })] }], [always, { text: "Done." }],
    ),
    async talk(client, place) {
      await client.prompt("go");
      return [git(place, "log", "-1", "--format=%s"), readFileSync(place.at("project/a.txt"), "utf8")];
    },
  },
  "github-issue-autocomplete": { works: "no", but: "it completes what is typed into pi's editor", answer: plain, talk: (client) => client.prompt("hello") },
  gondolin: {
    works: "partly", but: "its package is not in the registry, so that a folder stands in for its virtual machine",
    copies: { "agent/extensions/gondolin/node_modules/@earendil-works/gondolin": join(dirname(fileURLToPath(import.meta.url)), "stand_ins/gondolin") },
    files: { "project/a.txt": "one\ntwo\n", "project/b/c.md": "two\n" }, greets: 3, wanted: [promptIsReplaced],
    args: ["--tools", "read,bash,edit,write,grep,find,ls"],
    answer: calling(
      [call("read", { path: "a.txt", offset: 2 }), call("ls", {}, "c2")], [call("find", { pattern: "*.md" }, "c3"), call("grep", { pattern: "two" }, "c4")],
      [call("edit", { path: "a.txt", edits: [{ oldText: "one", newText: "three" }] }, "c5")], [call("write", { path: "d/e.txt", content: "d" }, "c6")],
      [call("bash", { command: "pwd | sed s:.*/::; exit 3" }, "c7")], [call("read", { path: "/workspace/absent" }, "c8")],
    ),
    async talk(client, place) {
      await client.prompt("go");
      await client.done({ type: "bash", command: "cat a.txt" });
      return [prompted(place, /\/workspace/), readFileSync(place.at("project/d/e.txt"), "utf8")];
    },
  },
  handoff: {
    works: "no", but: "it wants pi's own screen, and says so", answer: plain,
    async talk(client) {
      await client.prompt("hello");
      await commands(client, "/handoff go on");
    },
  },
  hello: { works: "yes", answer: calling([call("hello", { name: "Ada" })], [call("hello", {}, "c2")]), talk: (client) => client.prompt("go") },
  "hidden-thinking-label": { works: "no", but: "the label is one of pi's own screen", answer: plain, talk: (client) => commands(client, "/thinking-label Hm", "/thinking-label") },
  "inline-bash": {
    works: "yes", answer: plain,
    async talk(client) {
      await client.prompt("What is !{echo hi} and !{echo no >&2; exit 3}?");
      await client.prompt("Nothing here");
      await client.prompt("!echo a whole line !{echo x}");
    },
  },
  "input-transform-streaming": {
    works: "yes", prepare: repository, env: () => identity, holds: true,
    answer: (held) => scripted([["what changes", 0], { text: "Looking", calls: [call("bash", { command: "true" })], hold: held }], [always, { text: "Done." }]),
    async talk(client, place) {
      await client.prompt("nothing of it");
      const settled = client.event("agent_settled");
      const begun = client.event((record) => record.assistantMessageEvent?.type === "text_delta");
      await client.done({ type: "prompt", message: "what changes are there" });
      await begun;
      await client.done({ type: "prompt", message: "the diff, please", streamingBehavior: "steer" });
      await client.done({ type: "prompt", message: "and what is modified", streamingBehavior: "followUp" });
      place.letGo();
      await settled;
    },
  },
  "input-transform": {
    works: "yes", answer: plain,
    wanted: [{ why: "the time of day", change: (record) => (/^\d+\/\d+\/\d+, /.test(record.message) ? { ...record, message: "<now>" } : record) }],
    async talk(client) {
      await client.prompt("?quick What is TypeScript?");
      await commands(client, "?quick  ", "ping", "Time");
      await client.prompt("else");
    },
  },
  "interactive-shell": {
    works: "partly", but: "interactive commands need pi's own terminal, and are refused", answer: plain,
    async talk(client) {
      for (const command of ["vim a.txt", "i ls", "cat x | less", "echo plain"]) await client.done({ type: "bash", command });
    },
  },
  "jev-router": {
    works: "yes",
    models: (url) => ({
      "openai-codex": { api: "openai-completions", baseUrl: `${url}/v1`, apiKey: "none", models: ["gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna"].map((id) => ({ id, contextWindow: 272000, maxTokens: 1000, reasoning: true })) },
    }),
    answer: scripted([["go", 0], { calls: [call("write", { path: "a.txt", content: "a\n" })] }], [always, { text: "Done." }]),
    async talk(client, place) {
      await client.done({ type: "set_model", provider: "jev", modelId: "auto" });
      await client.done({ type: "get_state" });
      await client.prompt("plan");
      await client.prompt("go");
      await client.prompt("on");
      return place.server.requests.map(({ body }) => body.model);
    },
  },
  "mac-system-theme": { works: "no", but: "it changes the theme of pi's screen", answer: plain, talk: (client) => client.prompt("hello") },
  "message-renderer": {
    works: "partly", but: "its messages are sent and stored, and not drawn", answer: plain,
    async talk(client) {
      await commands(client, "/status All is well", "/status warn Look out", "/status error");
      await client.prompt("hello");
    },
  },
  "minimal-mode": {
    works: "yes", files: { "project/a.txt": "one\ntwo\n", "project/b/c.md": "two\n" },
    answer: calling(
      [call("read", { path: "a.txt", offset: 2 })], [call("ls", { path: "b" }, "c2")],
      [call("edit", { path: "a.txt", edits: [{ oldText: "absent", newText: "x" }] }, "c5")], [call("write", { path: "d.txt", content: "d" }, "c6")], [call("bash", { command: "echo out" }, "c7")],
    ),
    args: ["--tools", "read,bash,edit,write,grep,find,ls"],
    talk: (client) => client.prompt("go"),
  },
  "modal-editor": { works: "no", but: "it is an editor on pi's screen", answer: plain, talk: (client) => client.prompt("hello") },
  "model-status": {
    works: "yes", answer: plain,
    unordered: { why: "agentd answers a change of the model while handlers hear of it", which: (record) => record.command === "set_model" || record.command === "cycle_model" },
    async talk(client) {
      const change = async (command) => {
        const shown = client.event((record) => record.method === "setStatus");
        await client.done(command);
        await shown;
      };
      await change({ type: "set_model", provider: "fake", modelId: "two" });
      await client.done({ type: "set_model", provider: "fake", modelId: "two" });
      await change({ type: "cycle_model" });
    },
  },
  notify: { works: "no", but: "it writes to pi's terminal", answer: plain, talk: (client) => client.prompt("hello") },
  "overlay-qa-tests": {
    works: "no", but: "it draws overlays", answer: plain,
    talk: (client) => commands(client, ...["animation", "anchors", "margins", "stack", "overflow", "edge", "percent", "maxheight", "sidepanel", "toggle", "passive", "focus", "streaming"].map((name) => `/overlay-${name}`)),
  },
  "overlay-test": { works: "no", but: "it draws an overlay", answer: plain, talk: (client) => commands(client, "/overlay-test") },
  pirate: {
    works: "yes", answer: plain, wanted: [promptIsReplaced],
    async talk(client, place) {
      await client.prompt("before");
      await commands(client, "/pirate");
      await client.prompt("hello");
      await commands(client, "/pirate");
      await client.prompt("after");
      return prompted(place, /PIRATE MODE/);
    },
  },
  preset: {
    works: "yes", wanted: [promptIsReplaced],
    files: {
      "agent/presets.json": JSON.stringify({
        plan: { provider: "fake", model: "two", thinkingLevel: "off", tools: ["read", "nothing"], instructions: "PLAN ONLY" },
        deep: { provider: "fake", model: "one", thinkingLevel: "high", tools: ["read", "bash"] }, lost: { provider: "no", model: "such" },
      }),
    },
    answer: plain, args: ["--preset", "plan"],
    async talk(client, place) {
      await client.prompt("one");
      await commands(client, "/preset", "/preset deep");
      await client.prompt("two");
      await commands(client, "/preset lost", "/preset absent");
      await client.prompt("three");
      const { sessionFile } = await client.done({ type: "get_state" });
      await client.end();
      const again = place.start(["--session", sessionFile]);
      await again.prompt("four");
      return [prompted(place, /PLAN ONLY/), offered(place)];
    },
  },
  "project-trust": { works: "yes", greets: 1, files: { "project/AGENTS.md": "Be kind.\n" }, answer: plain, talk: (client) => client.prompt("hello") },
  "prompt-customizer": {
    works: "yes", answer: plain,
    async talk(client, place) {
      await client.prompt("hello");
      return prompted(place, /- Use `read` for file contents.*?completely\./);
    },
  },
  "protected-paths": {
    works: "yes",
    answer: calling(
      [call("write", { path: ".env", content: "x" })], [call("edit", { path: "a/node_modules/x", edits: [{ oldText: "a", newText: "b" }] }, "c2"), call("write", { path: "fine.txt", content: "x" }, "c3")],
    ),
    async talk(client, place) {
      await client.prompt("go");
      return [existsSync(place.at("project/.env")), existsSync(place.at("project/fine.txt"))];
    },
  },
  "provider-payload": {
    works: "yes", files: { "project/.pi/keep": "" }, answer: plain,
    async talk(client, place) {
      await client.prompt("hello");
      const log = readFileSync(place.at("project/.pi/provider-payload.log"), "utf8");
      const payload = JSON.parse(log.slice(0, log.indexOf("\n\n")));
      const [status, headers] = log.match(/^\[(\d+)\] (.*)$/m).slice(1);
      return [payload.model, payload.stream, payload.messages.at(-1).role, status, JSON.parse(headers)["content-type"]];
    },
  },
  qna: {
    works: "no", but: "it wants pi's own screen, and says so", answer: plain,
    async talk(client) {
      await client.prompt("hello");
      await commands(client, "/qna");
    },
  },
  question: { works: "no", but: "it asks on pi's own screen, and says so", answer: calling([call("question", { question: "Which?", options: [{ label: "A" }, { label: "B", description: "b" }] })]), talk: (client) => client.prompt("go") },
  questionnaire: {
    works: "no", but: "it asks on pi's own screen, and says so",
    answer: calling([call("questionnaire", { questions: [{ id: "a", prompt: "Which?", options: [{ value: "x", label: "X" }] }] })]), talk: (client) => client.prompt("go"),
  },
  "rainbow-editor": { works: "no", but: "it is an editor on pi's screen", answer: plain, talk: (client) => client.prompt("hello") },
  "send-user-message": {
    works: "yes", holds: true,
    unordered: { why: "a command goes on beside the run that it starts, and beside the queue that it adds to", which: (record) => record.command === "prompt" || record.type === "queue_update" },
    answer: (held) => scripted([["hold", 0], { text: "Holding", calls: [call("bash", { command: "true" })], hold: held }], [always, { text: "Well." }]),
    async talk(client, place) {
      await commands(client, "/ask", "/steer", "/followup", "/askwith");
      for (const message of ["/ask What is 2+2?", "/askwith the time", "/steer at once", "/followup later"]) {
        const settled = client.event("agent_settled");
        await client.command(message);
        await settled;
      }
      const settled = client.event("agent_settled");
      const begun = client.event((record) => record.assistantMessageEvent?.type === "text_delta");
      await client.command("/ask hold");
      await begun;
      await commands(client, "/ask busy", "/askwith busy", "/steer Focus on X", "/followup And then?");
      place.letGo();
      await settled;
    },
  },
  "session-name": {
    works: "yes", answer: plain,
    async talk(client) {
      await commands(client, "/session-name", "/session-name My work", "/session-name");
      return (await client.unrecorded({ type: "get_state" })).sessionName;
    },
  },
  "shutdown-command": {
    works: "yes", answer: scripted([["deploy", 0], { calls: [call("deploy_and_exit", { environment: "staging" })] }], [["finish", 0], { calls: [call("finish_and_exit")] }], [always, { text: "Done." }]),
    async talk(client, place) {
      const codes = [];
      for (const message of ["deploy", "finish"]) {
        const one = message === "deploy" ? client : place.start();
        await one.prompt(message);
        codes.push(await one.exited);
      }
      const last = place.start();
      last.say({ type: "prompt", message: "/quit" });
      codes.push(await last.exited);
      return codes;
    },
  },
  snake: { works: "no", but: "it is a game on the screen", answer: plain, talk: (client) => commands(client, "/snake") },
  "space-invaders": { works: "no", but: "it is a game on the screen", answer: plain, talk: (client) => commands(client, "/invaders") },
  ssh: {
    works: "partly", but: "`--ssh` is a flag of agentd's own, which takes the tools of a session to another machine; without it the tools work here",
    files: { "project/a.txt": "one\ntwo\n" },
    answer: calling(
      [call("read", { path: "a.txt" })], [call("write", { path: "sub/b.txt", content: "b\n" }, "c2")], [call("edit", { path: "a.txt", edits: [{ oldText: "one", newText: "three" }] }, "c3")],
      [call("bash", { command: "cat sub/b.txt; exit 4" }, "c4")], [call("read", { path: "missing" }, "c5")],
    ),
    async talk(client, place) {
      await client.prompt("go");
      await client.done({ type: "bash", command: "cat a.txt" });
      return readFileSync(place.at("project/a.txt"), "utf8");
    },
  },
  "status-line": { works: "yes", answer: calling([call("bash", { command: "true" })]), talk: (client) => client.prompt("go") },
  "structured-output": {
    works: "yes", answer: calling([call("structured_output", { headline: "H", summary: "S", actionItems: ["a", "b"] })]), talk: (client) => client.prompt("go"),
  },
  summarize: {
    works: "partly", but: "the summary is made, and there is no screen for it",
    models: (url) => ({ openai: { api: "openai-completions", baseUrl: `${url}/v1`, apiKey: "key", models: [{ id: "gpt-5.2", reasoning: true, contextWindow: 100000, maxTokens: 1000 }] } }),
    answer: plain,
    async talk(client) {
      await commands(client, "/summarize");
      await client.prompt("hello");
      await commands(client, "/summarize");
    },
  },
  "system-prompt-header": {
    works: "yes", answer: plain,
    wanted: [{
      why: "each program's prompt has its own length",
      change: (record) => (record.statusText?.startsWith("System: ") ? { ...record, statusText: record.statusText.replace(/[1-9]\d*/, "N") } : record),
    }],
    talk: (client) => client.prompt("hello"),
  },
  "tic-tac-toe": {
    works: "partly", but: "the model can play, and the user cannot without a screen",
    answer: scripted([["go", 0], { calls: [call("tic_tac_toe", { action: "move_right" }), call("tic_tac_toe_see_board", {}, "c2"), call("tic_tac_toe", { action: "play" }, "c3"), call("tic_tac_toe", { action: "jump" }, "c4")] }], [always, { text: "Done." }]),
    async talk(client) {
      await commands(client, "/tic-tac-toe");
      await client.prompt("go");
    },
  },
  "timed-confirm": {
    works: "yes", answer: plain,
    dialogs: () => {
      let asked = 0;
      return { confirm: () => ({ confirmed: asked++ % 2 === 0 }), select: (request) => (asked++ === 2 ? { value: request.options[1] } : { cancelled: true }) };
    },
    talk: (client) => commands(client, "/timed", "/timed", "/timed-select", "/timed-select", "/timed-signal", "/timed-signal"),
  },
  "titlebar-spinner": {
    works: "yes", answer: plain,
    wanted: [{ why: "how often the spinner turns is a matter of time", change: (record) => (/^[⠀-⣿]/.test(record.title ?? "") ? undefined : record) }],
    async talk(client) {
      await client.prompt("hello");
      await client.done({ type: "set_session_name", name: "Named" });
      await client.prompt("again");
    },
  },
  tools: {
    works: "partly", but: "it keeps to a choice that is in the session, and choosing needs a screen", answer: plain,
    files: {
      "saved.jsonl": [
        { type: "session", version: 3, id: "0198a000-0000-7000-8000-000000000001", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" },
        { type: "custom", id: "00000001", parentId: null, timestamp: "2026-01-01T00:00:00.000Z", customType: "tools-config", data: { enabledTools: ["read", "gone"] } },
      ].map((line) => JSON.stringify(line)).join("\n") + "\n",
    },
    async talk(client, place) {
      await commands(client, "/tools");
      await client.prompt("hello");
      await client.done({ type: "switch_session", sessionPath: place.at("saved.jsonl") });
      await client.prompt("hello");
      return offered(place);
    },
  },
  "trigger-compact": {
    works: "yes", answer: plain, unordered: { why: "a compaction goes on beside the answer of the command that asks for it", which: (record) => record.command === "prompt" }, masks: [[/# Conversation\s+\[User\][^]*/g, "<summary prompt>"]],
    wanted: [{
      why: "each program's prompt has its own length, and pi says of a price that it comes from the provider",
      change: ({ systemMessage: _own, ...record }) => JSON.parse(JSON.stringify(record).replaceAll(/"estimatedTokensAfter":\d+/g, '"estimatedTokensAfter":0').replaceAll(/,"totalFromProvider":(true|false)/g, "")),
    }],
    async talk(client) {
      await client.prompt("hello");
      await client.prompt("again");
      const told = client.event((record) => record.message === "Compaction completed");
      await client.command("/trigger-compact names above all");
      await told;
    },
  },
  "truncated-tool": {
    works: "yes", files: { "bin/rg": "#!/bin/sh\ncase \"$*\" in *nothing*) exit 1;; *broken*) exit 2;; *many*) seq 1 3000;; *) echo \"a.txt:1:$*\";; esac\n" }, programs: ["bin/rg"],
    answer: calling([call("rg", { pattern: "one", glob: "*.txt" })], [call("rg", { pattern: "nothing" }, "c2"), call("rg", { pattern: "broken" }, "c3")], [call("rg", { pattern: "many" }, "c4")]),
    masks: [[/pi-rg-[A-Za-z0-9]{6}/g, "<folder>"]],
    talk: (client) => client.prompt("go"),
  },
  "widget-placement": { works: "yes", greets: 2, answer: plain, talk: (client) => client.prompt("hello") },
  "with-deps": {
    works: "yes", installed: true, answer: calling([call("parse_duration", { duration: "2 days" })], [call("parse_duration", { duration: "soon" }, "c2")]), talk: (client) => client.prompt("go"),
  },
  "working-indicator": {
    works: "partly", but: "it shows the choice, and the indicator is one of pi's own screen", answer: plain,
    talk: (client) => commands(client, "/working-indicator", "/working-indicator dot", "/working-indicator reset", "/working-indicator what"),
  },
  "working-message-test": { works: "no", but: "the message is one of pi's own screen", answer: plain, talk: (client) => client.prompt("hello") },
};

/// The rows that targets.test.mjs drives.
export const targets = {
  "custom-compaction": { works: "yes" },
  "custom-provider-anthropic": { works: "yes" },
  "permission-gate": { works: "yes" },
  "plan-mode": { works: "yes" },
  "reload-runtime": { works: "yes" },
  "rpc-demo": { works: "yes" },
  subagent: { works: "yes" },
  todo: { works: "partly", but: "the tool works, and the list of `/todos` needs a screen" },
  "tool-override": { works: "yes" },
};
