/**
 * Measures the host on this machine: `npm run bench`. With PI_EXAMPLES (see examples.test.ts) also the load of examples.
 * HOST_NODE names another Node.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { extension, FakeDaemon, type Json } from "./fake_daemon.ts";

const EXAMPLES = process.env["PI_EXAMPLES"];
const STARTS = 9;

function percentile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function report(name: string, values: number[], unit = "ms"): void {
  const show = (value: number) => value.toFixed(value < 10 ? 3 : 1);
  console.log(`${name}: median ${show(percentile(values, 0.5))} ${unit}, p99 ${show(percentile(values, 0.99))} ${unit} (${values.length} runs)`);
}

function residentMiB(daemon: FakeDaemon): number {
  const status = readFileSync(`/proc/${daemon.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** Processor time of all threads so far, in milliseconds: on a busy machine it says more than the clock. */
function cpuMs(pid: number): number {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
  }
  return nanoseconds / 1e6;
}

/** What Node itself costs: a program that writes one line. */
async function benchBareNode(): Promise<void> {
  const wall: number[] = [];
  const cpu: number[] = [];
  for (let run = 0; run < STARTS; run++) {
    const begin = performance.now();
    const child = spawn(process.env["HOST_NODE"] ?? process.execPath, ["-e", "process.stdin.on('data', () => process.exit()); console.log('up')"], { stdio: ["pipe", "pipe", "inherit"] });
    await once(child.stdout, "data");
    wall.push(performance.now() - begin);
    cpu.push(cpuMs(child.pid ?? 0));
    const exit = once(child, "exit");
    child.stdin.write("end");
    await exit;
  }
  report("bare Node to its first line", wall);
  report("bare Node to its first line, CPU", cpu);
}

function exampleFiles(count: number): Json[] {
  const files = readdirSync(EXAMPLES ?? "").filter((name) => name.endsWith(".ts")).sort();
  return files.slice(0, count).map((name) => ({ ext: name, path: join(EXAMPLES ?? "", name), entry: join(EXAMPLES ?? "", name) }));
}

interface Start {
  greeted: number;
  loaded: number;
  cpu: number;
  rss: number;
}

async function start(cacheDir: string, examples: Json[]): Promise<Start> {
  const begin = performance.now();
  const daemon = FakeDaemon.start({ hello: { cacheDir } });
  await daemon.hello();
  const greeted = performance.now() - begin;
  await daemon.loadFiles(examples);
  await daemon.bind();
  const loaded = performance.now() - begin;
  const rss = residentMiB(daemon);
  const cpu = cpuMs(daemon.child.pid ?? 0);
  await daemon.stop();
  return { greeted, loaded, cpu, rss };
}

async function benchStart(): Promise<void> {
  for (const count of EXAMPLES === undefined ? [0] : [0, 1, 10]) {
    const examples = count === 0 ? [] : exampleFiles(count);
    const cold: Start[] = [];
    const warm: Start[] = [];
    for (let run = 0; run < STARTS; run++) {
      const cacheDir = mkdtempSync(join(tmpdir(), "node-host-bench-"));
      cold.push(await start(cacheDir, examples));
      warm.push(await start(cacheDir, examples));
      rmSync(cacheDir, { recursive: true, force: true });
    }
    const all = [...cold, ...warm];
    report(`start to the answer of hello (before ${count} extensions)`, all.map((one) => one.greeted));
    for (const [name, starts] of [["cold", cold], ["warm", warm]] as const) {
      report(`start to ${count} loaded, ${name} cache`, starts.map((one) => one.loaded));
      report(`start to ${count} loaded, ${name} cache, CPU`, starts.map((one) => one.cpu));
      report(`RSS after ${count} loaded, ${name} cache`, starts.map((one) => one.rss), "MiB");
    }
  }
}

async function timed(count: number, run: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const begin = performance.now();
    await run();
    times.push(performance.now() - begin);
  }
  return times;
}

async function benchCalls(): Promise<void> {
  const body = `
    pi.on('tool_call', () => {});
    pi.on('context', (event) => ({ messages: event.messages }));
    pi.registerTool({ name: 't', label: '', description: '', parameters: { type: 'object' }, execute: async () => ({ content: [] }) });
    pi.registerCommand('sync', { handler(args) {
      const times = [];
      for (let i = 0; i < 5000; i++) { const begin = performance.now(); pi.appendEntry('t', { i }); times.push(performance.now() - begin); }
      pi.events.emit('done');
      console.error('times ' + JSON.stringify(times) + ' end');
    } });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { "session.appendEntry": () => "e" } });
  const handlers = daemon.handlersOf("tool_call");
  const small = { type: "tool_call", toolName: "bash", toolCallId: "c", input: { command: "ls" } };
  await timed(500, () => daemon.hook(small, handlers));
  report("hook round trip, small payload", await timed(5000, () => daemon.hook(small, handlers)));
  const large = { ...small, input: { command: "x".repeat(20_000) } };
  report("hook round trip, 20 KB payload", await timed(2000, () => daemon.hook(large, handlers)));
  const messages = Array.from({ length: 200 }, (_, i) => ({ m: `k${i}`, v: { role: "user", content: [{ type: "text", text: "y".repeat(5000) }], timestamp: i } }));
  const contexts = daemon.handlersOf("context");
  await daemon.hook({ type: "context", messages }, contexts);
  const keys = messages.map(({ m }) => ({ m }));
  report("context hook, 1 MB of known transcript", await timed(1000, () => daemon.hook({ type: "context", messages: keys }, contexts)));
  report("tool.execute round trip", await timed(2000, () => daemon.tool("t")));
  await daemon.command("sync", "", "one");
  await daemon.whenPrinted(" end");
  report("synchronous call round trip", JSON.parse(/times (\[.*\]) end/.exec(daemon.stderr)?.[1] ?? "[]") as number[]);
  console.log(`RSS after the calls: ${residentMiB(daemon).toFixed(1)} MiB`);
  await daemon.stop();
}

console.log(`node ${process.env["HOST_NODE"] ?? process.version}, ${availableParallelism()} cores, load ${loadavg().map((load) => load.toFixed(1)).join(" ")}`);
await benchBareNode();
await benchStart();
await benchCalls();
