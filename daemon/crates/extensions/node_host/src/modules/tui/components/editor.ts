/** An editor of several lines. It holds text and tells of changes; there is no completion and no history of undo. */
import { getKeybindings } from "../keybindings.ts";
import { CURSOR_MARKER, renderFakeCursor } from "../terminal.ts";
import { visibleWidth } from "../width.ts";
import { wrapTextWithAnsi } from "../wrap.ts";
import { type Component, padLine, type TextStyler } from "./component.ts";
import { typedText } from "./input.ts";
import type { SelectListTheme } from "./select_list.ts";

export interface EditorTheme {
  borderColor: TextStyler;
  selectList: SelectListTheme;
}

export interface EditorOptions {
  paddingX?: number;
  autocompleteMaxVisible?: number;
}

const AUTOCOMPLETE_ROWS = 5;

export class Editor implements Component {
  focused = false;
  readonly capturesViewportInput = false;
  protected tui: unknown;
  borderColor: TextStyler;
  onSubmit?: (text: string) => void;
  onChange?: (text: string) => void;
  disableSubmit = false;
  #text = "";
  /** Offset of the cursor in the text. */
  #cursor = 0;
  #paddingX: number;
  #autocompleteMaxVisible: number;

  constructor(tui: unknown, theme: EditorTheme, options: EditorOptions = {}) {
    this.tui = tui;
    this.borderColor = theme.borderColor;
    this.#paddingX = options.paddingX ?? 0;
    this.#autocompleteMaxVisible = options.autocompleteMaxVisible ?? AUTOCOMPLETE_ROWS;
  }

  getPaddingX(): number {
    return this.#paddingX;
  }

  setPaddingX(padding: number): void {
    this.#paddingX = Math.max(0, Math.floor(padding));
  }

  getAutocompleteMaxVisible(): number {
    return this.#autocompleteMaxVisible;
  }

  setAutocompleteMaxVisible(maxVisible: number): void {
    this.#autocompleteMaxVisible = maxVisible;
  }

  setAutocompleteProvider(_provider: unknown): void {}

  isShowingAutocomplete(): boolean {
    return false;
  }

  addToHistory(_text: string): void {}

  getText(): string {
    return this.#text;
  }

  getExpandedText(): string {
    return this.#text;
  }

  getLines(): string[] {
    return this.#text.split("\n");
  }

  getCursor(): { line: number; col: number } {
    const before = this.#text.slice(0, this.#cursor).split("\n");
    return { line: before.length - 1, col: (before.at(-1) as string).length };
  }

  setText(text: string): void {
    const normal = normalize(text);
    this.#put(normal, "");
  }

  insertTextAtCursor(text: string): void {
    if (!text) return;
    this.#put(this.#text.slice(0, this.#cursor) + normalize(text), this.#text.slice(this.#cursor));
  }

  #put(before: string, after: string): void {
    const changed = before + after !== this.#text;
    this.#text = before + after;
    this.#cursor = before.length;
    if (changed) this.onChange?.(this.#text);
  }

  invalidate(): void {}

  handleMouse(_event: unknown): undefined {
    return undefined;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    const before = this.#text.slice(0, this.#cursor);
    const after = this.#text.slice(this.#cursor);
    const lineStart = before.lastIndexOf("\n") + 1;
    const nextEnd = after.indexOf("\n");
    const lineEnd = nextEnd < 0 ? this.#text.length : this.#cursor + nextEnd;
    const edits: [string, () => void][] = [
      ["tui.input.newLine", () => this.#put(`${before}\n`, after)],
      ["tui.input.submit", () => this.#submit()],
      ["tui.editor.deleteCharBackward", () => this.#put([...before].slice(0, -1).join(""), after)],
      ["tui.editor.deleteCharForward", () => this.#put(before, [...after].slice(1).join(""))],
      ["tui.editor.deleteWordBackward", () => this.#put(before.replace(/[^\S\n]*[^\s]*[^\S\n]*$/, ""), after)],
      ["tui.editor.deleteToLineStart", () => this.#put(before.slice(0, lineStart), after)],
      ["tui.editor.deleteToLineEnd", () => this.#put(before, this.#text.slice(lineEnd))],
      ["tui.editor.cursorLeft", () => (this.#cursor = Math.max(0, this.#cursor - 1))],
      ["tui.editor.cursorRight", () => (this.#cursor = Math.min(this.#text.length, this.#cursor + 1))],
      ["tui.editor.cursorLineStart", () => (this.#cursor = lineStart)],
      ["tui.editor.cursorLineEnd", () => (this.#cursor = lineEnd)],
    ];
    const edit = edits.find(([name]) => keys.matches(data, name));
    if (edit) return edit[1]();
    const text = typedText(data);
    if (text) this.insertTextAtCursor(text);
  }

  #submit(): void {
    if (this.disableSubmit) return;
    const text = this.#text.trim();
    this.#put("", "");
    this.onSubmit?.(text);
  }

  protected renderTopBorder(width: number, _hiddenLineCount: number): string {
    return this.borderColor("─".repeat(width));
  }

  protected renderBottomBorder(width: number, _hiddenLineCount: number): string {
    return this.borderColor("─".repeat(width));
  }

  render(width: number): string[] {
    const inner = Math.max(1, width - 2 * this.#paddingX);
    const margin = " ".repeat(this.#paddingX);
    const cursor = this.getCursor();
    const lines = this.getLines().flatMap((line, index) => {
      if (index !== cursor.line) return wrapTextWithAnsi(line, inner);
      return withCursor(line, cursor.col, inner, this.focused);
    });
    const shown = lines.map((line) => padLine(margin + line, width));
    return [this.renderTopBorder(width, 0), ...shown, this.renderBottomBorder(width, 0)];
  }
}

function normalize(text: string): string {
  return text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ");
}

function withCursor(line: string, column: number, width: number, focused: boolean): string[] {
  const marker = focused ? CURSOR_MARKER : "";
  if (column < line.length) {
    const under = String.fromCodePoint(line.codePointAt(column) as number);
    const text = line.slice(0, column) + marker + renderFakeCursor(under) + line.slice(column + under.length);
    return wrapTextWithAnsi(text, width);
  }
  const lines = wrapTextWithAnsi(line, width);
  const last = lines.pop() ?? "";
  const cursor = marker + renderFakeCursor(" ");
  return visibleWidth(last) < width ? [...lines, last + cursor] : [...lines, last, cursor];
}
