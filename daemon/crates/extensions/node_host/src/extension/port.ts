/** What the extension layer needs of the host. */
import type { Callbacks } from "../host/callbacks.ts";
import type { Mirror } from "../host/mirror.ts";
import type { JsonObject } from "../protocol/records.ts";
import type { CallOptions, Hello } from "../services.ts";
import type { EventBus } from "./event_bus.ts";
import type { Extension } from "./extension.ts";
import type { Generation } from "./generation.ts";

/** In whose name something is done. `ext` is absent for code of no extension of this epoch. */
export interface Actor {
  generation: Generation;
  ext: string | undefined;
  extension?: Extension;
}

export interface HostPort {
  readonly hello: Hello;
  readonly mirror: Mirror;
  readonly callbacks: Callbacks;
  readonly bus: EventBus;
  /** The theme of `ctx.ui.theme`. */
  readonly theme: unknown;
  call(actor: Actor, method: string, params: object, opts?: CallOptions): Promise<unknown>;
  callSync(actor: Actor, method: string, params: object): unknown;
  /** Sends a note in the name of an extension. */
  note(actor: Actor, type: string, fields: JsonObject): void;
  /** Reports an error of an extension to the daemon. */
  reportError(actor: Actor, event: string, error: unknown): void;
  nextHandler(): number;
}

export function actorOf(extension: Extension): Actor {
  return { generation: extension.generation, ext: extension.id, extension };
}
