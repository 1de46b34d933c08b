import { randomUUID } from "node:crypto";

import { AgentdError } from "./error.js";
import type { Command, Response } from "./protocol.js";

/** A command without what the library adds. */
export type Order = Command extends infer One ? (One extends Command ? Omit<One, "id"> : never) : never;

/** Any command, whose fields are not looked at. */
export interface RawOrder {
  type: string;
  [field: string]: unknown;
}

/** The `data` of the successful answer to a command. */
export type Data<Type extends Command["type"]> =
  Extract<Response, { command: Type; success: true }> extends { data?: infer Found } ? Found : undefined;

/** How a command is sent. */
export interface CallOptions {
  /** Called when the answer comes, before the lines after it are looked at. `wasRepeated`: it was sent more than once. */
  onAnswer?: (data: unknown, wasRepeated: boolean) => void;
  /** Whether the command goes out while the connection is being set up, when others wait. */
  isUrgent?: boolean;
}

interface Call {
  id: string;
  command: { type: string };
  isRepeatable: boolean;
  sends: number;
  /** The number of the connection over which it was sent last. */
  connection: number;
  options: CallOptions;
  resolve(data: unknown): void;
  reject(error: AgentdError): void;
}

/** Commands that take a `requestKey`: with one they are done once, however often they are sent. */
const KEYED = new Set(["prompt", "steer", "follow_up", "bash"]);

/** Whether a command only reads, so that it can be sent again. */
function onlyReads(type: string): boolean {
  return type.startsWith("get_") || type.startsWith("list_") || type === "daemon_status";
}

/** The commands that have no answer yet. They outlive a connection as far as they can be sent again. */
export class Calls {
  #next = 0;
  #write: ((line: string) => void) | undefined;
  #isReady = false;
  #connection = 0;
  readonly #open = new Map<string, Call>();
  readonly #changed: () => void;

  /** `changed` is called whenever the number of commands without an answer has changed. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** The number of commands without an answer. */
  get size(): number {
    return this.#open.size;
  }

  /** Sends a command, or keeps it until there is a connection. */
  send(order: RawOrder, options: CallOptions = {}): Promise<unknown> {
    this.#next += 1;
    const id = String(this.#next);
    const isKeyed = KEYED.has(order.type);
    const command = { ...(isKeyed ? { requestKey: randomUUID() } : {}), ...order, id };
    return new Promise((resolve, reject) => {
      const isRepeatable = isKeyed || (onlyReads(order.type) && !options.isUrgent);
      const call: Call = { id, command, isRepeatable, sends: 0, connection: 0, options, resolve, reject };
      this.#open.set(id, call);
      this.#changed();
      if (options.isUrgent && !this.#write) {
        this.#fail(call, new AgentdError("connection_lost", "There is no connection to agentd."));
      } else if (this.#isReady || options.isUrgent) {
        this.#transmit(call);
      }
    });
  }

  /** Takes an answer; false where none was waited for. */
  answer(response: Response): boolean {
    const call = this.#open.get(String(response.id));
    if (response.id === undefined || !call) return false;
    this.#open.delete(call.id);
    this.#changed();
    if (response.success) {
      const data = "data" in response ? response.data : undefined;
      call.options.onAnswer?.(data, call.sends > 1);
      call.resolve(data);
    } else {
      call.reject(new AgentdError(response.code, response.error, { hint: response.hint, command: call.command.type }));
    }
    return true;
  }

  /** A connection is there, over which urgent commands go; the others wait for `ready`. */
  connected(write: (line: string) => void): void {
    this.#write = write;
    this.#connection += 1;
  }

  /** The connection is set up: what waits is sent, in the order in which it was asked for. */
  ready(): void {
    this.#isReady = true;
    for (const call of this.#open.values()) this.#transmit(call);
  }

  /** The connection is lost: what cannot be sent again fails. */
  lost(error: AgentdError): void {
    this.#write = undefined;
    this.#isReady = false;
    for (const call of [...this.#open.values()]) {
      if (call.sends > 0 && !call.isRepeatable) this.#fail(call, error);
    }
  }

  /** There will be no connection any more: everything fails. */
  failAll(error: AgentdError): void {
    this.#write = undefined;
    this.#isReady = false;
    for (const call of [...this.#open.values()]) this.#fail(call, error);
  }

  #fail(call: Call, error: AgentdError): void {
    this.#open.delete(call.id);
    this.#changed();
    const { code, message, hint } = error;
    call.reject(new AgentdError(code, message, { hint, command: call.command.type, cause: error }));
  }

  #transmit(call: Call): void {
    if (!this.#write || call.connection === this.#connection) return;
    call.connection = this.#connection;
    call.sends += 1;
    this.#write(JSON.stringify(call.command));
  }
}
