/** A line of text that can be edited. */
import { getKeybindings } from "../keybindings.ts";
import { decodeKittyPrintable, isKeyRelease } from "../keys.ts";
import { graphemes } from "../escapes.ts";
import { truncateToWidth } from "../slice.ts";
import { CURSOR_MARKER, renderFakeCursor } from "../terminal.ts";
import { type Component, padLine, type TextStyler } from "./component.ts";

export interface InputOptions {
  prompt?: string;
  placeholder?: string;
  placeholderStyle?: TextStyler;
}

/** Text that input types, or undefined when it is a key. */
export function typedText(data: string): string | undefined {
  const decoded = decodeKittyPrintable(data);
  if (decoded !== undefined) return isKeyRelease(data) ? undefined : decoded;
  const pasted = /^\x1b\[200~([\s\S]*)\x1b\[201~$/.exec(data);
  if (pasted) return pasted[1];
  return /[\x00-\x1f\x7f]/.test(data) ? undefined : data;
}

export class Input implements Component {
  #value = "";
  #cursor = 0;
  readonly #prompt: string;
  readonly #placeholder: string;
  readonly #placeholderStyle: TextStyler;
  onSubmit?: (value: string) => void;
  onEscape?: () => void;
  focused = false;

  constructor(options: InputOptions = {}) {
    this.#prompt = options.prompt ?? "> ";
    this.#placeholder = options.placeholder ?? "";
    this.#placeholderStyle = options.placeholderStyle ?? ((text) => text);
  }

  getValue(): string {
    return this.#value;
  }

  setValue(value: string): void {
    this.#value = value;
    this.#cursor = Math.min(this.#cursor, value.length);
  }

  invalidate(): void {}

  handleMouse(_event: unknown): undefined {
    return undefined;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.cancel")) return this.onEscape?.();
    if (keys.matches(data, "tui.input.submit") || data === "\n") return this.onSubmit?.(this.#value);
    const before = this.#value.slice(0, this.#cursor);
    const after = this.#value.slice(this.#cursor);
    const previous = [...graphemes(before)].at(-1) ?? "";
    const next = [...graphemes(after)][0] ?? "";
    const edits: [string, () => void][] = [
      ["tui.editor.deleteCharBackward", () => this.#put(before.slice(0, before.length - previous.length), after)],
      ["tui.editor.deleteCharForward", () => this.#put(before, after.slice(next.length))],
      ["tui.editor.deleteWordBackward", () => this.#put(before.replace(/\S*\s*$/, ""), after)],
      ["tui.editor.deleteWordForward", () => this.#put(before, after.replace(/^\s*\S*/, ""))],
      ["tui.editor.deleteToLineStart", () => this.#put("", after)],
      ["tui.editor.deleteToLineEnd", () => this.#put(before, "")],
      ["tui.editor.cursorLeft", () => (this.#cursor -= previous.length)],
      ["tui.editor.cursorRight", () => (this.#cursor += next.length)],
      ["tui.editor.cursorLineStart", () => (this.#cursor = 0)],
      ["tui.editor.cursorLineEnd", () => (this.#cursor = this.#value.length)],
      ["tui.editor.cursorWordLeft", () => (this.#cursor = before.replace(/\S*\s*$/, "").length)],
      ["tui.editor.cursorWordRight", () => (this.#cursor = this.#value.length - after.replace(/^\s*\S*/, "").length)],
    ];
    const edit = edits.find(([name]) => keys.matches(data, name));
    if (edit) return edit[1]();
    const text = typedText(data)?.replace(/[\r\n]+/g, "");
    if (text) this.#put(before + text, after);
  }

  #put(before: string, after: string): void {
    this.#value = before + after;
    this.#cursor = before.length;
  }

  render(width: number): string[] {
    const marker = this.focused ? CURSOR_MARKER : "";
    const text = this.#value || this.#placeholder;
    const style: TextStyler = this.#value ? (part) => part : this.#placeholderStyle;
    const cursor = this.#value ? this.#cursor : 0;
    const under = [...graphemes(text.slice(cursor))][0] ?? " ";
    const line =
      this.#prompt +
      style(text.slice(0, cursor)) +
      marker +
      renderFakeCursor(style(under)) +
      style(text.slice(cursor + under.length));
    return [padLine(truncateToWidth(line, width, ""), width)];
  }
}
