// What the suites share: a home of its own for each test, a scripted model in it, and the examples of docs/clients.md.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = join(dirname(fileURLToPath(import.meta.url)), "../../..");

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: start this with tests/outside/run`);
  return value;
}

/// The folder that the packages were installed into.
export const packages = required("AGENTD_OUTSIDE_PACKAGES");
export const agentd = join(required("AGENTD_BIN_DIR"), "agentd");

/// The answers of the scripted model, chosen by what it is asked (docs/scripted-model.md).
const steps = [
  { when: { prompt: "hello" }, emit: [{ thinking: ["A ", "greeting."] }, { text: ["Hello ", "back."] }, { usage: { input: 20, output: 4 } }] },
  { when: { prompt: "see", images: 1 }, emit: [{ text: "An image." }] },
  { when: { prompt: "use a tool", results: 1 }, emit: [{ text: "It said hi." }] },
  { when: { prompt: "use a tool" }, emit: [{ text: "Looking." }, { toolCall: { id: "call_1", name: "bash", arguments: { command: "printf 'one\\n'; printf 'two\\n'" } } }] },
  { when: { prompt: "hold", results: 1 }, emit: [{ text: "Held." }] },
  { when: { prompt: "hold" }, emit: [{ toolCall: { id: "call_2", name: "bash", arguments: { command: "cat gate" } } }] },
  { when: { prompt: "hang" }, emit: [{ text: "Thinking about it" }, { hang: true }] },
  { when: { prompt: "fail" }, emit: [{ fail: { message: "overloaded", kind: "retryable" } }] },
  { when: { prompt: "refuse" }, emit: [{ fail: { message: "not that", kind: "fatal" } }] },
  { when: { promptContains: "" }, emit: [{ text: "Well." }, { usage: { input: 30, output: 2 } }] },
];

/// A temporary home with an agent directory whose models are `script/one` (it reasons) and `script/two`.
///
/// `t` is the test that it belongs to, at whose end it is removed.
export function home(t, settings = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "agentd-outside-")));
  const cleanups = [() => rmSync(root, { recursive: true, force: true })];
  t.after(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });
  for (const name of ["home", "agent", "project", "tmp"]) mkdirSync(join(root, name));
  const at = (...names) => join(root, ...names);
  writeFileSync(at("script.json"), JSON.stringify({ steps }));
  const model = (id, more) => ({ id, contextWindow: 100000, maxTokens: 1000, ...more });
  writeFileSync(at("agent/models.json"), JSON.stringify({
    providers: {
      script: {
        api: "scripted", baseUrl: at("script.json"), apiKey: "none",
        models: [model("one", { reasoning: true, input: ["text", "image"] }), model("two", {})],
      },
    },
  }));
  writeFileSync(at("agent/settings.json"), JSON.stringify({
    defaultProvider: "script", defaultModel: "one",
    compaction: { keepRecentTokens: 2 }, retry: { maxRetries: 1, baseDelayMs: 1 }, ...settings,
  }));
  return {
    /// What has to be done before the folder is removed; the last one first.
    cleanups,
    at, project: at("project"), agentDir: at("agent"),
    env: { HOME: at("home"), PI_CODING_AGENT_DIR: at("agent"), TMPDIR: at("tmp"), AGENTD_BIN: agentd, AGENTD_DIR: "" },
    /// A named pipe in the project; `open` lets its readers go on.
    gate() {
      execFileSync("mkfifo", [at("project/gate")]);
      return { open: () => execFileSync("/bin/sh", ["-c", "echo through > gate"], { cwd: at("project") }) };
    },
  };
}

/// The code block of docs/clients.md whose first line names the file.
export function documented(name) {
  const text = readFileSync(join(repository, "docs/clients.md"), "utf8");
  for (const [, block] of text.matchAll(/^```\w+\n([^]*?)^```$/gm)) {
    if (/^(\/\/|#) (\S+)\n/.exec(block)?.[2] === name) return block;
  }
  throw new Error(`docs/clients.md has no code block that begins with the file name ${name}`);
}

/// Waits until `listen` called its argument with something that `fits`, and gives that back.
export function awaited(listen, fits, what, timeout = 30_000) {
  return new Promise((resolve, reject) => {
    const seen = [];
    const timer = setTimeout(() => {
      stop();
      reject(new Error(`waited for ${what}; there came only: ${seen.join(", ")}`));
    }, timeout);
    const stop = listen((event) => {
      seen.push(event.type);
      if (!fits(event)) return;
      clearTimeout(timer);
      stop();
      resolve(event);
    });
  });
}

/// The processes of this machine that run this very agentd in this home.
export function running(home) {
  const listed = execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" });
  return listed.split("\n").map((line) => line.trim()).filter((line) => {
    const [pid] = line.split(" ");
    if (!line.includes("agentd") || !existsSync(`/proc/${pid}/environ`)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(home.agentDir);
    } catch {
      return false; // gone meanwhile, or another user's
    }
  });
}
