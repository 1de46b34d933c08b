import type { RawOrder } from "./calls.js";
import { AgentdError } from "./error.js";
import type { ClientTool, ClientToolResult, ToolRequestEvent, ToolCancelEvent } from "./protocol.js";

/** A call of a tool. */
export interface ToolCall {
  /** The session that calls. */
  sessionId: string;
  /** The id of the call in the session. */
  toolCallId: string;
  /** Aborted when the result is not wanted any more: the run was stopped, the time is over, the connection is lost. */
  signal: AbortSignal;
  /** Shows a result so far to the clients that watch; it replaces the previous one. */
  progress(partial: string | ClientToolResult): Promise<void>;
}

/** A tool that this client gives the model. */
export interface Tool<Args = Record<string, unknown>> extends Omit<ClientTool, "parameters"> {
  /** JSON Schema of the arguments: an object with `"type": "object"`. What does not fit never comes here. */
  parameters: Record<string, unknown>;
  /** Does the work. A string is a text for the model; what it throws is told to the model as the failure. */
  execute(args: Args, call: ToolCall): string | ClientToolResult | Promise<string | ClientToolResult>;
}

/** What tools need of the client. */
export interface ToolHost {
  call(order: RawOrder): Promise<unknown>;
  /** Takes the error of an answer that could not be given. */
  report(error: unknown): void;
}

/** The tools of this client, by session, and their calls. */
export class Tools {
  readonly #host: ToolHost;
  // The arguments of a tool are of its own type, which the daemon has checked against its schema.
  readonly #bySession = new Map<string, Map<string, Tool<never>>>();
  readonly #calls = new Map<string, AbortController>();

  constructor(host: ToolHost) {
    this.#host = host;
  }

  /** Keeps a tool. It has to be there before the daemon hears of it. */
  add(sessionId: string, tool: Tool<never>): void {
    const tools = this.#bySession.get(sessionId) ?? new Map<string, Tool<never>>();
    tools.set(tool.name, tool);
    this.#bySession.set(sessionId, tools);
  }

  remove(sessionId: string, name: string): void {
    this.#bySession.get(sessionId)?.delete(name);
  }

  /** The session has ended for this client. */
  forget(sessionId: string): void {
    this.#bySession.delete(sessionId);
  }

  /** The command that registers the tools of a session; nothing where there are none. */
  registration(sessionId: string): { type: "register_tools"; sessionId: string; tools: ClientTool[] } | undefined {
    const tools = [...(this.#bySession.get(sessionId)?.values() ?? [])];
    return tools.length === 0 ? undefined : { type: "register_tools", sessionId, tools: tools.map(declaration) };
  }

  cancel(event: ToolCancelEvent): void {
    this.#calls.get(event.requestId)?.abort(new AgentdError("aborted", `The call was cancelled: ${event.reason}.`));
  }

  /** The connection is lost: no call can be answered any more. */
  cancelAll(error: AgentdError): void {
    for (const controller of this.#calls.values()) controller.abort(error);
    this.#calls.clear();
  }

  /** Runs a call, and answers it. */
  async request(event: ToolRequestEvent): Promise<void> {
    const { requestId, sessionId, toolCallId, toolName } = event;
    const controller = new AbortController();
    this.#calls.set(requestId, controller);
    const { signal } = controller;
    const progress = async (partial: string | ClientToolResult): Promise<void> => {
      if (signal.aborted) return;
      await this.#answer({ type: "tool_progress", requestId, sessionId, partialResult: resultOf(partial) });
    };
    let outcome: { result: ClientToolResult } | { error: string };
    try {
      const tool = this.#bySession.get(sessionId)?.get(toolName);
      if (!tool) throw new Error(`this client has no tool ${toolName} any more`);
      outcome = { result: resultOf(await tool.execute(event.args as never, { sessionId, toolCallId, signal, progress })) };
    } catch (error) {
      outcome = { error: error instanceof Error ? error.message : String(error) };
    }
    this.#calls.delete(requestId);
    if (!signal.aborted) await this.#answer({ type: "tool_response", requestId, sessionId, ...outcome });
  }

  async #answer(order: RawOrder): Promise<void> {
    try {
      await this.#host.call(order);
    } catch (error) {
      // The call ended in the meantime: it was cancelled, or its connection was lost. The model has been told.
      const isOver = error instanceof AgentdError && ["not_found", "connection_lost", "closed"].includes(error.code);
      if (!isOver) this.#host.report(error);
    }
  }
}

/** What the daemon gets to know of a tool. */
export function declaration(tool: Tool<never>): ClientTool {
  const { execute: _, ...declared } = tool;
  return declared;
}

function resultOf(result: string | ClientToolResult): ClientToolResult {
  return typeof result === "string" ? { content: [{ type: "text", text: result }] } : result;
}
