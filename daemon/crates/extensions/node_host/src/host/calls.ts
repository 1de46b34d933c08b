/** Calls of the host to the daemon, asynchronous and blocking. */
import type { HostLink } from "../connection/host_link.ts";
import { CallError, errorOf } from "../protocol/errors.ts";
import type { DaemonRecord, JsonObject, ResultRecord } from "../protocol/records.ts";
import type { CallOptions } from "../services.ts";
import type { Outbound } from "./outbound.ts";
import type { Scopes } from "./scope.ts";

/** In whose name a call is made. */
export interface Caller {
  epoch: number;
  ext?: string;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
  onEvent: ((event: unknown) => void) | undefined;
  cleanUp(): void;
}

export class Calls {
  private nextId = 1;
  private readonly pending = new Map<number, Pending>();
  private syncCallMs = 5000;

  constructor(
    private readonly link: HostLink,
    private readonly out: Outbound,
    /** Takes a patch that came in during a blocking call; false: not a patch. */
    private readonly takePatch: (record: DaemonRecord) => boolean,
    private readonly scopes: Scopes,
  ) {}

  setSyncCallMs(milliseconds: number): void {
    this.syncCallMs = milliseconds;
  }

  async call(caller: Caller, method: string, params: object, opts: CallOptions = {}): Promise<unknown> {
    const { signal, onEvent } = opts;
    const id = this.nextId++;
    const answer = new Promise<unknown>((resolve, reject) => {
      const onAbort = () => this.out.send({ type: "cancel", id });
      signal?.addEventListener("abort", onAbort, { once: true });
      const cleanUp = () => signal?.removeEventListener("abort", onAbort);
      this.pending.set(id, { resolve, reject, onEvent, cleanUp });
    });
    try {
      this.out.send(this.record(id, caller, method, params));
      if (signal?.aborted) this.out.send({ type: "cancel", id });
    } catch (error) {
      this.pending.get(id)?.cleanUp();
      this.pending.delete(id);
      throw error;
    }
    return answer;
  }

  callSync(caller: Caller, method: string, params: object): unknown {
    const id = this.nextId++;
    this.out.send(this.record(id, caller, method, params));
    let answer: ResultRecord | undefined;
    const answered = this.link.wait(this.syncCallMs, (record) => {
      if (record.type === "result" && record.id === id) {
        answer = record as unknown as ResultRecord;
        return "awaited";
      }
      return this.takePatch(record) ? "taken" : "later";
    });
    if (!answered || answer === undefined) {
      throw new CallError(`agentd did not answer "${method}" within ${this.syncCallMs} ms`, "timeout");
    }
    if (!answer.ok) throw errorOf(answer.error);
    return answer.value;
  }

  /** Takes the answer to an asynchronous call. The late answer of a blocking call is dropped. */
  settle(result: ResultRecord): void {
    const pending = this.pending.get(result.id);
    if (pending === undefined) return;
    this.pending.delete(result.id);
    pending.cleanUp();
    if (result.ok) pending.resolve(result.value);
    else pending.reject(errorOf(result.error));
  }

  /** Takes a note of the daemon that belongs to a call. */
  event(id: number, event: unknown): void {
    this.pending.get(id)?.onEvent?.(event);
  }

  private record(id: number, caller: Caller, method: string, params: object): JsonObject {
    const record: JsonObject = { id, type: "call", epoch: caller.epoch };
    const scope = this.scopes.current();
    const ext = caller.ext ?? scope?.ext;
    if (ext !== undefined) record["ext"] = ext;
    record["method"] = method;
    record["params"] = params;
    if (scope?.within !== undefined) record["within"] = scope.within;
    return record;
  }
}
