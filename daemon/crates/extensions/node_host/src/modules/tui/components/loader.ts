/** Loaders. They do not move: a timer would keep the process busy for nobody. */
import { matchesKey } from "../keys.ts";
import { Text, type TextStyler } from "./component.ts";

export interface LoaderIndicatorOptions {
  frames?: string[];
  intervalMs?: number;
}

const DEFAULT_FRAME = "⠋";
const DEFAULT_MESSAGE = "Loading...";

/** A message behind an indicator. */
export class Loader extends Text {
  #spinnerStyle: TextStyler;
  #messageStyle: TextStyler;
  #message: string;
  #indicator: LoaderIndicatorOptions | undefined;

  constructor(
    _ui: unknown,
    spinnerColorFn: TextStyler,
    messageColorFn: TextStyler,
    message: string = DEFAULT_MESSAGE,
    indicator?: LoaderIndicatorOptions,
  ) {
    super("", 1, 0);
    this.#spinnerStyle = spinnerColorFn;
    this.#messageStyle = messageColorFn;
    this.#message = message;
    this.#indicator = indicator;
  }

  start(): void {}
  stop(): void {}

  setMessage(message: string): void {
    this.#message = message;
  }

  setIndicator(indicator?: LoaderIndicatorOptions): void {
    this.#indicator = indicator;
  }

  protected getRenderedIndicator(): string {
    const frames = this.#indicator?.frames;
    if (!frames) return `${this.#spinnerStyle(DEFAULT_FRAME)} `;
    return frames[0] === undefined ? "" : `${frames[0]} `;
  }

  override render(width: number): string[] {
    this.setText(this.getRenderedIndicator() + this.#messageStyle(this.#message));
    return ["", ...super.render(width)];
  }
}

/** A loader that Escape ends. */
export class CancellableLoader extends Loader {
  #abort = new AbortController();
  onAbort?: () => void;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get aborted(): boolean {
    return this.#abort.signal.aborted;
  }

  handleInput(data: string): void {
    if (this.aborted || !(matchesKey(data, "escape") || matchesKey(data, "ctrl+c"))) return;
    this.#abort.abort();
    this.onAbort?.();
  }

  dispose(): void {
    this.stop();
  }
}
