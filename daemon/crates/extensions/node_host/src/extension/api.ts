/** `pi`: the API that a factory gets. */
import { messageOf } from "../protocol/errors.ts";
import { createActions } from "./actions.ts";
import type { Extension } from "./extension.ts";
import { actorOf, type HostPort } from "./port.ts";
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
      // Other hosts exist only when each extension has one of its own. Values without a JSON form stay here.
      if (!host.hello.features.includes("bus")) return;
      try {
        host.note(actorOf(extension), "bus.emit", { channel, data });
      } catch (error) {
        console.error(`Event "${channel}" does not reach other hosts: ${messageOf(error)}`);
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
