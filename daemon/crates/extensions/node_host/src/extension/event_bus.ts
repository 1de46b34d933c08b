/** The bus of `pi.events`: one for all extensions of the process. */
import { EventEmitter } from "node:events";

type Handler = (data: unknown) => unknown;

export class EventBus {
  private readonly emitter = new EventEmitter().setMaxListeners(0);

  emit(channel: string, data: unknown): void {
    this.emitter.emit(key(channel), data);
  }

  /** Errors of the handler go to standard error alone. */
  on(channel: string, handler: Handler): () => void {
    const guarded = async (data: unknown): Promise<void> => {
      try {
        await handler(data);
      } catch (error) {
        console.error(`Event handler error (${channel}):`, error);
      }
    };
    this.emitter.on(key(channel), guarded);
    return () => void this.emitter.off(key(channel), guarded);
  }
}

/** Keeps channels apart from the emitter's own events, of which `error` throws without a listener. */
function key(channel: string): string {
  return `bus:${channel}`;
}
