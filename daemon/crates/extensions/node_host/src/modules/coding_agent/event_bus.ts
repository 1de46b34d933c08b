/** An event bus that an extension makes for itself. */
import { EventEmitter } from "node:events";

export interface EventBusController {
  emit(channel: string, data: unknown): void;
  on(channel: string, handler: (data: unknown) => unknown): () => void;
  clear(): void;
}

/** Makes a bus. Errors of handlers go to standard error, and no handler keeps another from its turn. */
export function createEventBus(): EventBusController {
  const emitter = new EventEmitter().setMaxListeners(0);
  // The prefix keeps a channel named `error` from throwing.
  const key = (channel: string): string => `bus:${channel}`;
  return {
    emit: (channel, data) => void emitter.emit(key(channel), data),
    on: (channel, handler) => {
      const guarded = async (data: unknown): Promise<void> => {
        try {
          await handler(data);
        } catch (error) {
          console.error(`Event handler error (${channel}):`, error);
        }
      };
      emitter.on(key(channel), guarded);
      return () => void emitter.off(key(channel), guarded);
    },
    clear: () => void emitter.removeAllListeners(),
  };
}
