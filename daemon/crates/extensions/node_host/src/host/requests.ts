/** Requests of the daemon that are being served, and their abort signals. */

export class Requests {
  private readonly running = new Map<number, AbortController>();

  begin(id: number): AbortSignal {
    const controller = new AbortController();
    this.running.set(id, controller);
    return controller.signal;
  }

  end(id: number): void {
    this.running.delete(id);
  }

  cancel(id: number, reason: unknown): void {
    const controller = this.running.get(id);
    if (controller === undefined) return;
    if (typeof reason === "string") controller.abort(new DOMException(reason, "AbortError"));
    else controller.abort();
  }
}
