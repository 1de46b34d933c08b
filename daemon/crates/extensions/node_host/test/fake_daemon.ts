/** A daemon for tests: starts the host on a socket pair and speaks the protocol as a script says. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { Duplex } from "node:stream";

export type Json = Record<string, unknown>;
export type CallHandler = (params: Json, call: Json, daemon: FakeDaemon) => unknown;

interface Waiting {
  matches(record: Json): boolean;
  resolve(record: Json): void;
}

interface Standing {
  matches(record: Json): boolean;
  run(record: Json): void;
}

export interface StartOptions {
  hello?: Json;
  calls?: Record<string, CallHandler>;
  env?: Record<string, string>;
  /** How the records travel; a socket by default. */
  transport?: "socket" | "pipes" | "stdio";
}

/** The built host; tests run from the folder of the package. */
export const HOST_FILE = join(process.cwd(), "dist", "host.mjs");
const NODE = process.env["HOST_NODE"] ?? process.execPath;

const living = new Set<FakeDaemon>();

// A failed test leaves its host behind.
after(async () => {
  for (const daemon of living) await daemon.stop();
});

export class RemoteError extends Error {
  constructor(
    message: string,
    readonly code: string | undefined,
  ) {
    super(message);
  }
}

export class FakeDaemon {
  readonly received: Json[] = [];
  readonly calls: Record<string, CallHandler>;
  readonly folder: string;
  stderr = "";
  stdout = "";
  epoch = 1;
  readonly exited: Promise<number | string>;
  private nextId = 1;
  private readonly pending = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private waiting: Waiting[] = [];
  private readonly standing: Standing[] = [];
  private readonly printed = new Set<() => void>();

  private constructor(
    readonly child: ChildProcess,
    private readonly input: NodeJS.ReadableStream,
    private readonly output: NodeJS.WritableStream,
    private readonly options: StartOptions,
  ) {
    this.folder = mkdtempSync(join(tmpdir(), "node-host-test-"));
    this.calls = { ...defaultCalls(), ...options.calls };
    this.exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal ?? "")));
    child.stderr?.on("data", (data: Buffer) => {
      this.stderr += data.toString();
      for (const check of [...this.printed]) check();
    });
    if (child.stdout !== input) child.stdout?.on("data", (data: Buffer) => (this.stdout += data.toString()));
    living.add(this);
    this.read();
  }

  static start(options: StartOptions = {}): FakeDaemon {
    // The host would write its cache into `dist/`.
    const env: NodeJS.ProcessEnv = { NODE_DISABLE_COMPILE_CACHE: "1", ...process.env, ...options.env };
    if (options.transport === "pipes") {
      env["AGENTD_HOST_FD"] = "3,4";
      const child = spawn(NODE, [HOST_FILE], { env, stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"] });
      return new FakeDaemon(child, child.stdio[4] as Duplex, child.stdio[3] as Duplex, options);
    }
    if (options.transport === "stdio") {
      delete env["AGENTD_HOST_FD"];
      const child = spawn(NODE, [HOST_FILE], { env, stdio: ["pipe", "pipe", "pipe"] });
      return new FakeDaemon(child, child.stdout, child.stdin, options);
    }
    env["AGENTD_HOST_FD"] ??= "3";
    // A `pipe` of Node is one end of a Unix socket pair.
    const child = spawn(NODE, [HOST_FILE], { env, stdio: ["ignore", "pipe", "pipe", "pipe"] });
    const socket = child.stdio[3] as Duplex;
    socket.on("error", () => {});
    return new FakeDaemon(child, socket, socket, options);
  }

  /** Starts a host and greets it. */
  static async greeted(options: StartOptions = {}): Promise<FakeDaemon> {
    const daemon = FakeDaemon.start(options);
    await daemon.hello();
    return daemon;
  }

  /** Starts a host, loads extensions given by their source, and binds. */
  static async bound(sources: Record<string, string>, options: StartOptions = {}): Promise<FakeDaemon> {
    const daemon = await FakeDaemon.greeted(options);
    await daemon.load(sources);
    await daemon.bind();
    return daemon;
  }

  hello(): Promise<unknown> {
    return this.request("hello", {
      protocol: 1,
      daemon: { name: "fake", version: "0" },
      epoch: 1,
      sessionId: "s1",
      cwd: this.folder,
      agentDir: join(this.folder, "agent"),
      configDirName: ".pi",
      mode: "rpc",
      hasUI: true,
      trusted: true,
      env: {},
      limits: { maxLineBytes: 64 * 1024 * 1024, syncCallMs: 5000 },
      cacheDir: process.env["HOST_TEST_CACHE"] ?? join(tmpdir(), "node-host-test-cache"),
      ansi: true,
      features: [],
      ...this.options.hello,
    });
  }

  /** Writes an extension into the folder of this daemon and returns its path. */
  write(name: string, source: string): string {
    const file = join(this.folder, name.includes(".") ? name : `${name}.ts`);
    writeFileSync(file, source);
    return file;
  }

  load(sources: Record<string, string>, fields: Json = {}): Promise<LoadValue> {
    const extensions = Object.entries(sources).map(([ext, source]) => {
      const file = this.write(ext, source);
      return { ext, path: file, entry: file, baseDir: this.folder, sourceInfo: {} };
    });
    return this.loadFiles(extensions, fields);
  }

  loadFiles(extensions: Json[], fields: Json = {}): Promise<LoadValue> {
    const record = { epoch: this.epoch, reason: "startup", clearCache: false, extensions, flags: {}, ...fields };
    return this.request("load", record) as Promise<LoadValue>;
  }

  bind(core: Json = {}, flags: Json = {}): Promise<unknown> {
    return this.request("bind", { epoch: this.epoch, flags, core: { ...defaultCore(this.folder), ...core } });
  }

  request(type: string, fields: Json = {}): Promise<unknown> & { id: number } {
    const id = this.nextId++;
    const promise = new Promise<unknown>((resolve, reject) => this.pending.set(id, { resolve, reject })) as Promise<unknown> & { id: number };
    promise.id = id;
    this.send({ id, type, ...fields });
    return promise;
  }

  /** Runs the handlers of an event, as the host registered them. */
  async hook(event: Json, handlers = this.handlersOf(String(event["type"]))): Promise<Json[]> {
    const value = (await this.request("hook", { epoch: this.epoch, handlers, event })) as { returns: Json[] };
    return value.returns;
  }

  /** Sends a hook without waiting; the promise has the request's id. */
  startHook(event: Json): Promise<unknown> & { id: number } {
    return this.request("hook", { epoch: this.epoch, handlers: this.handlersOf(String(event["type"])), event });
  }

  handlersOf(event: string): number[] {
    const gone = new Set(this.notes("unregister").map((note) => note["h"]));
    return this.registered("handler")
      .filter((note) => note["event"] === event && note["epoch"] === this.epoch && !gone.has(note["h"]))
      .map((note) => note["h"] as number);
  }

  registered(kind: string): Json[] {
    return this.notes("register").filter((note) => note["kind"] === kind);
  }

  notes(type: string): Json[] {
    return this.received.filter((record) => record["type"] === type);
  }

  callsOf(method: string): Json[] {
    return this.notes("call").filter((call) => call["method"] === method);
  }

  command(name: string, args = "", ext = name): Promise<unknown> & { id: number } {
    return this.request("command.run", { epoch: this.epoch, name, ext, args, source: "rpc" });
  }

  tool(tool: string, params: unknown = {}, fields: Json = {}): Promise<unknown> & { id: number } {
    return this.request("tool.execute", { epoch: this.epoch, tool, toolCallId: "call_1", params, ...fields });
  }

  cancel(id: number): void {
    this.send({ type: "cancel", id });
  }

  core(patch: Json): void {
    this.send({ type: "state", seq: this.nextId++, topic: "core", patch });
  }

  send(record: Json): void {
    this.output.write(`${JSON.stringify(record)}\n`);
  }

  sendRaw(text: string): void {
    this.output.write(text);
  }

  /** The first record that matches, among those received and those to come. */
  when(matches: (record: Json) => boolean): Promise<Json> {
    const known = this.received.find(matches);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve) => this.waiting.push({ matches, resolve }));
  }

  /** Runs `run` for every record to come that matches. */
  always(matches: (record: Json) => boolean, run: (record: Json) => void): void {
    this.standing.push({ matches, run });
  }

  whenCalled(method: string): Promise<Json> {
    return this.when((record) => record["type"] === "call" && record["method"] === method);
  }

  /** Resolves when the host has printed `text` to standard error. */
  whenPrinted(text: string): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!this.stderr.includes(text)) return;
        this.printed.delete(check);
        resolve();
      };
      this.printed.add(check);
      check();
    });
  }

  /** Stops reading what the host sends. */
  stopReading(): void {
    this.input.pause();
  }

  resumeReading(): void {
    this.input.resume();
  }

  /** Closes the connection, as a daemon that dies does. */
  disconnect(): void {
    (this.input as Duplex).destroy();
    (this.output as Duplex).destroy();
  }

  async stop(): Promise<void> {
    living.delete(this);
    this.disconnect();
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }

  private read(): void {
    const parts: string[] = [];
    this.input.setEncoding("utf8");
    this.input.on("data", (chunk: string) => {
      const lines = chunk.split("\n");
      for (let i = 0; i < lines.length - 1; i++) {
        parts.push(lines[i] ?? "");
        this.take(JSON.parse(parts.join("")) as Json);
        parts.length = 0;
      }
      parts.push(lines.at(-1) ?? "");
    });
  }

  private take(record: Json): void {
    this.received.push(record);
    if (record["type"] === "result") this.settle(record);
    else if (record["type"] === "call") void this.answer(record);
    const waiting = this.waiting.filter((one) => one.matches(record));
    this.waiting = this.waiting.filter((one) => !waiting.includes(one));
    for (const one of waiting) one.resolve(record);
    for (const one of this.standing) if (one.matches(record)) one.run(record);
  }

  private settle(record: Json): void {
    const pending = this.pending.get(record["id"] as number);
    this.pending.delete(record["id"] as number);
    if (record["ok"] === true) pending?.resolve(record["value"]);
    else {
      const error = record["error"] as { message: string; code?: string };
      pending?.reject(new RemoteError(error.message, error.code));
    }
  }

  private async answer(call: Json): Promise<void> {
    const { id } = call;
    const handler = this.calls[String(call["method"])];
    try {
      if (handler === undefined) throw new RemoteError(`no answer for ${String(call["method"])}`, "unsupported");
      const answer = handler(call["params"] as Json, call, this);
      const value = answer instanceof Promise ? await answer : answer;
      this.send({ type: "result", id, ok: true, value: value ?? null });
    } catch (error) {
      const { message, code } = error as RemoteError;
      this.send({ type: "result", id, ok: false, error: { message, code } });
    }
  }
}

export interface LoadValue {
  extensions: { ext: string; ok: boolean; error?: string; ms: number; missing?: string[] }[];
}

export function defaultCore(cwd: string): Json {
  return {
    idle: true,
    run: null,
    pendingCount: 0,
    model: { provider: "fake", id: "m1", name: "M1", api: "openai-completions" },
    thinkingLevel: "off",
    contextUsage: { tokens: 10, contextWindow: 1000, percent: 1 },
    sessionId: "s1",
    sessionFile: `${cwd}/s1.jsonl`,
    sessionDir: cwd,
    cwd,
    leafId: null,
    entryCount: 0,
    trusted: true,
    activeTools: ["read", "bash"],
    hasUI: true,
    mode: "rpc",
  };
}

function defaultCalls(): Record<string, CallHandler> {
  return {
    read: ({ topic }) => {
      if (topic === "entries") return { etag: "1", value: { header: null, entries: [], leafId: null } };
      return { etag: "1", value: topic === "models" ? { models: [], providers: {} } : [] };
    },
  };
}

/** An extension that runs `body` in its factory. */
export function extension(body: string): string {
  return `export default async function (pi) {\n${body}\n}\n`;
}
