/** Serves `hook`: runs handlers one after the other and returns what they returned. */
import type { Contexts } from "../extension/context.ts";
import type { Generation, Handler } from "../extension/generation.ts";
import { actorOf } from "../extension/port.ts";
import type { Callbacks } from "../host/callbacks.ts";
import type { Scope, Scopes } from "../host/scope.ts";
import { messageOf, stackOf } from "../protocol/errors.ts";
import { type DaemonRecord, type JsonObject, listField, objectField } from "../protocol/records.ts";
import { deliver, type Delivery, type DeliveryState } from "./delivery.ts";
import { encodeUserBash } from "./user_bash.ts";

interface Returned extends JsonObject {
  h: number;
  value?: unknown;
  event?: JsonObject;
  error?: { message: string; stack?: string };
}

export class Hooks {
  /** Deltas are handled one after the other, although the daemon does not wait for each. */
  private updates: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly state: DeliveryState,
    private readonly contexts: Contexts,
    private readonly callbacks: Callbacks,
    private readonly scopes: Scopes,
  ) {}

  serve(generation: Generation, request: DaemonRecord, signal: AbortSignal): Promise<{ returns: Returned[] }> {
    const event = objectField(request, "event");
    const handlers = listField(request, "handlers").map(Number);
    const delivery = deliver(this.state, event, signal);
    const run = () => this.runAll(generation, handlers, delivery, request.id);
    if (event["type"] !== "message_update") return run();
    const result = this.updates.then(run);
    this.updates = result.catch(() => undefined);
    return result;
  }

  private async runAll(generation: Generation, handlers: number[], delivery: Delivery, id: number | undefined) {
    const returns: Returned[] = [];
    // A handler that is taken back while this event is under way still gets it.
    const snapshot = handlers.map((h) => [h, generation.handlers.get(h)] as const);
    for (const [h, handler] of snapshot) {
      returns.push(handler === undefined ? { h } : await this.runOne(generation, h, handler, delivery, id));
    }
    return { returns };
  }

  private async runOne(generation: Generation, h: number, handler: Handler, delivery: Delivery, id: number | undefined): Promise<Returned> {
    const { ext } = handler;
    const returned: Returned = { h };
    const scope: Scope = { ext: ext.id };
    if (id !== undefined) scope.within = id;
    try {
      const ctx = this.contextFor(handler, delivery);
      const value = await this.scopes.run(scope, () => handler.run(delivery.event, ctx));
      const encoded = this.encode(handler, delivery, value, generation.epoch);
      if (encoded !== undefined) returned.value = encoded;
    } catch (error) {
      returned.error = { message: messageOf(error) };
      const stack = stackOf(error);
      if (stack !== undefined) returned.error.stack = stack;
    }
    const changes = delivery.changes();
    if (changes !== undefined) returned.event = changes;
    return returned;
  }

  private contextFor(handler: Handler, delivery: Delivery): unknown {
    const actor = actorOf(handler.ext);
    if (handler.event === "project_trust") return this.contexts.trust();
    if (delivery.systemPrompt !== undefined) return this.contexts.beforeAgentStart(actor, delivery.systemPrompt);
    return this.contexts.event(actor);
  }

  private encode(handler: Handler, delivery: Delivery, value: unknown, epoch: number): unknown {
    const owner = { ext: handler.ext.id, epoch };
    if (handler.event === "user_bash") return encodeUserBash(value, this.callbacks, owner);
    return this.callbacks.encode(delivery.encodeReturn(value), owner);
  }
}
