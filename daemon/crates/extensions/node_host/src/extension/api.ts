/** `pi`: the API that a factory gets. */
import { createActions } from "./actions.ts";
import type { Extension } from "./extension.ts";
import type { HostPort } from "./port.ts";
import { createProviderApi, type ProviderRegistrar } from "./providers.ts";
import { createRegistrations } from "./registrations.ts";

export function createApi(host: HostPort, registrar: ProviderRegistrar, extension: Extension) {
  return {
    ...createRegistrations(host, extension),
    ...createActions(host, extension),
    ...createProviderApi(host, registrar, extension),
    events: createEvents(host, extension),
  };
}

function createEvents(host: HostPort, extension: Extension) {
  return {
    emit(channel: string, data: unknown): void {
      extension.assertActive();
      host.bus.emit(channel, data);
      // Other hosts exist only when each extension has one of its own.
      if (host.hello.features.includes("bus")) {
        host.note({ generation: extension.generation, ext: extension.id }, "bus.emit", { channel, data });
      }
    },
    on(channel: string, handler: (data: unknown) => unknown): () => void {
      extension.assertActive();
      const unsubscribe = extension.generation.track(host.bus.on(channel, handler));
      extension.onFailure(unsubscribe);
      return unsubscribe;
    },
  };
}
