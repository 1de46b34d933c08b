// Measures what extensions cost, and prints a table. Not a test: times depend on the machine, and on what else it does.
//
//   AGENTD_BIN_DIR=target/release tests/outside/extensions/measure     # all; or the names of some: hooks start tools
//
// The programs of AGENTD_BIN_DIR are driven on standard input and output, in homes of their own, with a model on a loopback port. Times
// inside of a session are taken by an extension around what it calls, or from the records that a client gets.

import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

import { scripted } from "./model_server.mjs";
import { side } from "./side.mjs";

const chosen = process.argv.slice(2);
const rows = [];

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

function row(what, times, budget = "", unit = "ms") {
  const sorted = [...times].sort((one, other) => one - other);
  const shown = (value) => (value === undefined ? "-" : `${value.toFixed(value < 10 ? 3 : 1)} ${unit}`);
  rows.push([what, shown(at(sorted, 0.5)), shown(at(sorted, 0.99)), String(times.length), budget]);
  console.error(rows.at(-1).join(" | "));
}

/// Runs `use` with a started program in a home that has `extensions` (sources by their names).
async function inHome(program, { extensions = {}, answer, files = {}, args, settings }, use) {
  const cleanups = [];
  const place = await side({ after: (cleanup) => cleanups.push(cleanup) }, program, {
    answer: answer ?? scripted([() => true, { text: "Well." }]), settings,
    files: { ...files, ...Object.fromEntries(Object.entries(extensions).map(([name, source]) => [`agent/extensions/${name}`, source])) },
  });
  try {
    return await use(place, (more = []) => place.start([...(args?.(place) ?? []), ...more]));
  } finally {
    for (const cleanup of cleanups) await cleanup();
  }
}

/// The time from a record that fits `from` to the next one that fits `to`, for all of them.
function spans(client, from, to) {
  const times = [];
  let begun;
  client.listen((record) => {
    const now = performance.now();
    if (from(record)) begun = now;
    else if (begun !== undefined && to(record)) {
      times.push(now - begun);
      begun = undefined;
    }
  });
  return times;
}

const isStart = (record) => record.type === "tool_execution_start";
const isEnd = (record) => record.type === "tool_execution_end";

/// The extension that times what it calls itself: it writes its times into the file `times.json` of the project at the command `/times`.
const timing = `
  import { writeFileSync } from "node:fs";
  const times = {};
  const note = (name, begun) => (times[name] ??= []).push(performance.now() - begun);
  export default function (pi) {
    pi.registerCommand("sync", { handler: async (args, ctx) => {
      ctx.sessionManager.getEntries();
      for (let i = 0; i < 2000; i++) {
        let begun = performance.now();
        pi.setLabel(ctx.sessionManager.getLeafId(), undefined);
        note("set", begun);
        begun = performance.now();
        pi.getSessionName();
        note("read", begun);
      }
    } });
    pi.registerCommand("times", { handler: async () => writeFileSync("times.json", JSON.stringify(times)) });
  }`;

const listening = (events, body = "") => `export default function (pi) { for (const name of ${JSON.stringify(events)}) pi.on(name, () => { ${body} }); }`;
const everything = ["input", "before_agent_start", "agent_start", "agent_end", "agent_before_settle", "agent_settled", "turn_start", "turn_end", "message_start", "message_update", "message_end", "context", "tool_execution_start", "tool_execution_update", "tool_execution_end", "tool_call", "tool_result"];

/// A model that reads a file `count` times, one call an answer.
const reading = (count) => scripted([(asked) => asked.results < count, (asked) => ({ calls: [{ id: `c${asked.results}`, name: "read", args: { path: "a.txt" } }] })], [() => true, { text: "Done." }]);
const aFile = { "project/a.txt": "one\ntwo\n" };
const CALLS = 200;

/// The time of one turn with a call of `read`, from its answer's end to the next turn's start.
async function turns(program, extensions) {
  return inHome(program, { extensions, answer: reading(CALLS), files: aFile }, async (place, start) => {
    const client = start();
    await client.prompt("warm up");
    const times = spans(client, isStart, (record) => record.type === "turn_start");
    await client.prompt("go");
    await client.end();
    return times;
  });
}

const parts = {
  async hooks() {
    // A handler of input that does nothing: the time that it adds to a prompt which it takes.
    const taken = async (extensions) => inHome("agentd", { extensions }, async (place, start) => {
      const client = start();
      await client.command("/nothing");
      const times = [];
      for (let i = 0; i < 1000; i++) {
        const begun = performance.now();
        await client.command("/nothing");
        times.push(performance.now() - begun);
      }
      await client.end();
      return times;
    });
    row("a command of an extension, there and back, as a client sees it", await taken({ "a.ts": `export default (pi) => pi.registerCommand("nothing", { handler: async () => {} });` }), "0.3 / 1.5");
    row("input that a handler takes, as a client sees it", await taken({ "a.ts": `export default (pi) => pi.on("input", () => ({ action: "handled" }));` }), "0.3 / 1.5");
    const { set, read } = await inHome("agentd", { extensions: { "a.ts": timing } }, async (place, start) => {
      const client = start();
      await client.prompt("hello");
      await client.command("/sync");
      await client.command("/times");
      await client.end();
      return JSON.parse(readFileSync(place.at("project/times.json"), "utf8"));
    });
    row("a synchronous call (setLabel)", set, "0.2 / 1");
    row("a synchronous read of the mirror (getSessionName)", read, "0.2 / 1");
    const calls = async (extensions) => inHome("agentd", { extensions, answer: reading(CALLS), files: aFile }, async (place, start) => {
      const client = start();
      await client.prompt("warm up");
      const times = spans(client, isStart, isEnd);
      await client.prompt("go");
      await client.end();
      return times;
    });
    row("a call of read, nobody listens", await calls({}));
    row("a call of read, tool_call and tool_result listen", await calls({ "a.ts": listening(["tool_call", "tool_result"]) }), "1 more");
    // The transcript: 200 messages of 5 kB.
    const transcript = (place) => {
      const line = (at) => JSON.stringify({
        type: "message", id: at.toString(16).padStart(8, "0"), parentId: at === 1 ? null : (at - 1).toString(16).padStart(8, "0"), timestamp: "2026-01-01T00:00:00.000Z",
        message: at % 2 ? { role: "user", content: "five kilobytes ".repeat(340), timestamp: at } : {
          role: "assistant", content: [{ type: "text", text: "five kilobytes ".repeat(340) }], api: "openai-completions", provider: "fake", model: "one", stopReason: "stop", timestamp: at,
          usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
        },
      });
      const header = JSON.stringify({ type: "session", version: 3, id: "0198a000-0000-7000-8000-000000000001", timestamp: "2026-01-01T00:00:00.000Z", cwd: place.project });
      writeFileSync(place.at("long.jsonl"), `${[header, ...Array.from({ length: 200 }, (_, index) => line(index + 1))].join("\n")}\n`);
      return ["--session", place.at("long.jsonl")];
    };
    const contexts = (extensions) => inHome("agentd", { extensions, answer: reading(CALLS / 4), files: aFile, args: transcript }, async (place, start) => {
      const client = start();
      await client.prompt("warm up");
      const times = spans(client, (record) => record.type === "turn_start", (record) => record.type === "message_start" && record.message.role === "assistant");
      await client.prompt("go");
      await client.end();
      return times;
    });
    row("a model call with 1 MB before it, nobody listens", await contexts({}));
    row("a model call with 1 MB before it, context listens", await contexts({ "a.ts": listening(["context"]) }), "2 more");
    row("a model call with 1 MB before it, context filters", await contexts({ "a.ts": `export default (pi) => pi.on("context", (event) => ({ messages: event.messages.slice(-100) }));` }), "2 more");
    const streams = (program, extensions, said, runs) => inHome(program, { extensions, answer: scripted([() => true, { text: "word ".repeat(4 * said.pieces), ...said }]) }, async (place, start) => {
      const client = start();
      await client.prompt("warm up");
      const times = [];
      for (let run = 0; run < runs; run++) {
        const begun = performance.now();
        await client.prompt("go");
        times.push(performance.now() - begun);
      }
      await client.end();
      return times;
    });
    const everyDelta = { "a.ts": listening(["message_update"]) };
    for (const program of ["agentd", "pi"]) {
      row(`${program}: an answer of 5,000 deltas without pauses, nobody listens`, await streams(program, {}, { pieces: 5_000 }, 10));
      row(`${program}: the same, message_update listens`, await streams(program, everyDelta, { pieces: 5_000 }, 10));
      // A fast model: 200 deltas in a second.
      row(`${program}: an answer of 400 deltas, 5 ms apart, nobody listens`, await streams(program, {}, { pieces: 400, pause: 5 }, 4));
      row(`${program}: the same, message_update listens`, await streams(program, everyDelta, { pieces: 400, pause: 5 }, 4), "2 % more");
    }
  },
  async tools() {
    const calls = (extensions, name) => inHome("agentd", {
      extensions, answer: scripted([(asked) => asked.results < CALLS, (asked) => ({ calls: [{ id: `c${asked.results}`, name, args: {} }] })], [() => true, { text: "Done." }]),
    }, async (place, start) => {
      const client = start();
      await client.prompt("warm up");
      const times = spans(client, isStart, isEnd);
      const updates = spans(client, isStart, (record) => record.type === "tool_execution_update");
      await client.prompt("go");
      await client.end();
      return { times, updates };
    });
    const source = (body) => `export default (pi) => pi.registerTool({ name: "own", label: "own", description: "A tool", parameters: { type: "object", properties: {} }, async execute(id, params, signal, onUpdate) { ${body} return { content: [{ type: "text", text: "ok" }], details: {} }; } });`;
    row("a call of a tool of an extension, as a client sees it", (await calls({ "a.ts": source("") }, "own")).times, "0.5");
    const hundred = (await calls({ "a.ts": source("for (let i = 0; i < 100; i++) onUpdate({ content: [{ type: 'text', text: String(i) }], details: {} });") }, "own")).times;
    row("the same with 100 partial results, each of them", hundred.map((time) => time / 100), "0.1");
    for (const program of ["agentd", "pi"]) {
      row(`${program}: a turn with a call of read: no extension`, await turns(program, {}));
      row(`${program}: the same, one that listens to nothing`, await turns(program, { "a.ts": listening([]) }), "0 more");
      row(`${program}: the same, one that listens to everything`, await turns(program, { "a.ts": listening(everything) }));
    }
  },
  async start() {
    const small = (index) => `import { Type } from "typebox"; export default (pi) => { pi.registerTool({ name: "t${index}", label: "t", description: "A tool", parameters: Type.Object({}), async execute() { return { content: [], details: {} }; } }); pi.on("agent_end", () => {}); };`;
    for (const program of ["agentd", "pi"]) {
      for (const count of [0, 1, 10]) {
        const extensions = Object.fromEntries(Array.from({ length: count }, (_, index) => [`e${index}.ts`, small(index)]));
        await inHome(program, { extensions }, async (place, start) => {
          const warm = [], resident = [];
          // Each begins with nothing that was translated before.
          for (const kept of ["agent/cache/extensions", "tmp/jiti"]) rmSync(place.at(kept), { force: true, recursive: true });
          for (let run = 0; run < 12; run++) {
            const begun = performance.now();
            const client = start(["--no-session"]);
            await client.prompt("hello");
            // What was translated is kept from the first start on.
            if (run === 0) row(`${program}: start to the end of the first answer, ${count} extensions, nothing translated`, [performance.now() - begun]);
            else warm.push(performance.now() - begun);
            resident.push(...residents(client.child.pid));
            await client.end();
          }
          row(`${program}: start to the end of the first answer, ${count} extensions`, warm, program === "agentd" && count === 10 ? "150 more than without" : "");
          row(`${program}: memory of ${program === "pi" || count === 0 ? "the program" : "the extension host"}, ${count} extensions`, resident, "", "MiB");
        });
      }
    }
  },
};

/// The resident memory of the Node process below a process, or of the process itself.
function residents(pid) {
  const below = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${entry}/status`, "utf8"))[1]);
      const isHost = readFileSync(`/proc/${entry}/cmdline`, "utf8").includes("host.mjs");
      if (isHost && (parent === pid || parentOf(parent) === pid)) below.push(Number(entry));
    } catch {
      // Gone meanwhile.
    }
  }
  return (below.length > 0 ? below : [pid]).map((process) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${process}/status`, "utf8"))[1]) / 1024);
}

const parentOf = (pid) => Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

for (const name of chosen.length > 0 ? chosen : Object.keys(parts)) await parts[name]();
console.log(["| what | median | p99 | runs | budget (median / p99) |", "| --- | --- | --- | --- | --- |", ...rows.map((cells) => `| ${cells.join(" | ")} |`)].join("\n"));
