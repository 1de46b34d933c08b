/** A daemon's side of `HostServices` that records calls and answers as it is told. */
import type { AgentHost, CallOptions, Hello, HostServices } from "../../src/services.ts";

export interface RecordedCall {
  method: string;
  params: Record<string, unknown>;
}

type Answer = (params: Record<string, unknown>, options: CallOptions) => unknown;

export class FakeServices implements HostServices {
  readonly hello: Hello;
  readonly calls: RecordedCall[] = [];
  readonly topics: Record<string, unknown> = {};
  readonly #answers = new Map<string, Answer>();

  constructor(overrides: Partial<Hello> = {}) {
    this.hello = {
      protocol: 1,
      daemon: { name: "agentd", version: "0" },
      epoch: 1,
      sessionId: "session",
      cwd: process.cwd(),
      agentDir: "/nonexistent/agent",
      configDirName: ".pi",
      mode: "rpc",
      hasUI: true,
      trusted: true,
      env: {},
      limits: { maxLineBytes: 1 << 20, syncCallMs: 5000 },
      cacheDir: "/nonexistent/cache",
      ansi: true,
      features: [],
      ...overrides,
    };
  }

  on(method: string, answer: Answer): this {
    this.#answers.set(method, answer);
    return this;
  }

  methods(): string[] {
    return this.calls.map(({ method }) => method);
  }

  async call(method: string, params: object, options: CallOptions = {}): Promise<unknown> {
    const record = { method, params: params as Record<string, unknown> };
    this.calls.push(record);
    const answer = this.#answers.get(method);
    if (!answer) throw Object.assign(new Error(`${method} is not supported`), { code: "unsupported" });
    return answer(record.params, options);
  }

  callSync(method: string): unknown {
    throw new Error(`unexpected synchronous call of ${method}`);
  }

  note(): void {}

  readTopic(topic: string): unknown {
    return this.topics[topic];
  }

  createAgentHost(): AgentHost {
    throw new Error("unexpected host of an agent");
  }

  currentExt(): string | undefined {
    return undefined;
  }
}
