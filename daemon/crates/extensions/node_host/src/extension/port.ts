/** What the extension layer needs of the host. */
import type { Callbacks } from "../host/callbacks.ts";
import type { Mirror } from "../host/mirror.ts";
import type { Scopes } from "../host/scope.ts";
import type { JsonObject } from "../protocol/records.ts";
import type { CallOptions, Hello } from "../services.ts";
import type { EventBus } from "./event_bus.ts";
import type { Extension } from "./extension.ts";
import type { Generation } from "./generation.ts";

/** How a session that an extension has opened is shown. */
export interface Binding {
  mode: string;
  /** Takes what its extensions show and ask. */
  ui?: unknown;
}

/** In whose name something is done. `ext` is absent for code of no extension of this epoch. */
export interface Actor {
  generation: Generation;
  readonly ext: string | undefined;
  extension?: Extension;
}

export interface HostPort {
  readonly hello: Hello;
  readonly mirror: Mirror;
  readonly callbacks: Callbacks;
  readonly bus: EventBus;
  readonly scopes: Scopes;
  /** What the opener of the session has bound its extensions to; absent for the session of the process. */
  readonly binding: Binding | undefined;
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
  // The id is known once the daemon has said it, which can be after the factory.
  return {
    generation: extension.generation,
    get ext() {
      return extension.id;
    },
    extension,
  };
}
