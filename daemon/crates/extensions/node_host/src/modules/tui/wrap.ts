/** Word wrapping of text with sequences. Pure. */
import { pieces, stripTerminalSequences } from "./escapes.ts";
import { StyleState } from "./style_state.ts";
import { graphemeWidth, visibleWidth } from "./width.ts";

/** Scripts that are wrapped between any two graphemes. */
const unspaced = /[\p{Script_Extensions=Han}\p{Script_Extensions=Hiragana}\p{Script_Extensions=Katakana}\p{Script_Extensions=Hangul}\p{Script_Extensions=Bopomofo}]/u;

/**
 * Wraps text at spaces so that no line is wider than `width`; longer words are cut. Styles that are in
 * force at a line's end are switched on again at the next line's beginning. Lines are not padded.
 */
export function wrapTextWithAnsi(text: string, width: number): string[] {
  if (!text) return [""];
  const style = new StyleState();
  const lines: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    const opening = lines.length > 0 ? style.opening() : "";
    lines.push(...wrapLine(opening + line, width));
    for (const piece of pieces(line)) if (piece.sequence !== undefined) style.apply(piece.sequence);
  }
  return lines;
}

function wrapLine(line: string, width: number): string[] {
  if (visibleWidth(line) <= width) return [line];
  return new LineWrapper(width).wrap(line);
}

class LineWrapper {
  readonly #width: number;
  readonly #style = new StyleState();
  #lines: string[] = [];
  #current = "";
  #currentWidth = 0;

  constructor(width: number) {
    this.#width = width;
  }

  wrap(line: string): string[] {
    for (const word of words(line)) this.#add(word);
    if (this.#current) this.#lines.push(this.#current);
    return this.#lines.length > 0 ? this.#lines.map((text) => text.trimEnd()) : [""];
  }

  #add(word: string): void {
    const wordWidth = visibleWidth(word);
    const blank = stripTerminalSequences(word).trim() === "";
    if (wordWidth > this.#width && !blank) {
      this.#breakLine();
      this.#addCut(word);
      return;
    }
    const fits = this.#currentWidth + wordWidth <= this.#width;
    if (fits) {
      this.#append(word, wordWidth);
    } else if (blank) {
      const atStart = this.#currentWidth === 0;
      const sequences = sequencesOf(word);
      this.#current = trimLineEnd(this.#current) + sequences;
      if (!sequences) this.#currentWidth += wordWidth;
      this.#follow(word);
      if (!atStart) this.#breakLine();
      return;
    } else {
      this.#breakLine();
      this.#append(word, wordWidth);
    }
    this.#follow(word);
  }

  #append(text: string, width: number): void {
    this.#current += text;
    this.#currentWidth += width;
  }

  #follow(word: string): void {
    for (const piece of pieces(word)) if (piece.sequence !== undefined) this.#style.apply(piece.sequence);
  }

  /** Ends the current line if it has anything on it. */
  #breakLine(): void {
    if (this.#current || this.#currentWidth > 0) this.#lines.push(this.#current.trimEnd() + this.#style.lineEnd());
    this.#current = this.#style.opening();
    this.#currentWidth = 0;
  }

  #addCut(word: string): void {
    for (const piece of pieces(word)) {
      if (piece.sequence !== undefined) {
        this.#current += piece.sequence;
        this.#style.apply(piece.sequence);
        continue;
      }
      const width = graphemeWidth(piece.grapheme);
      if (this.#currentWidth + width > this.#width) {
        this.#lines.push(this.#current + this.#style.lineEnd());
        this.#current = this.#style.opening();
        this.#currentWidth = 0;
      }
      this.#append(piece.grapheme, width);
    }
  }
}

/**
 * Splits a line into runs of spaces, words, and single graphemes of unspaced scripts. Sequences stay with the
 * word behind them; before spaces and at the end they stay with what precedes them.
 */
function words(line: string): string[] {
  const found: string[] = [];
  let current = "";
  let pending = "";
  let kind: "space" | "word" | "unspaced" | undefined;
  for (const piece of pieces(line)) {
    if (piece.sequence !== undefined) {
      pending += piece.sequence;
      continue;
    }
    const grapheme = piece.grapheme;
    const next = grapheme === " " ? "space" : unspaced.test(grapheme) ? "unspaced" : "word";
    if (kind !== undefined && (kind !== next || next === "unspaced")) {
      if (next === "space") {
        current += pending;
        pending = "";
      }
      found.push(current);
      current = "";
    }
    kind = next;
    current += pending + grapheme;
    pending = "";
  }
  current += pending;
  if (current) found.push(current);
  return found;
}

/** The sequences of a text, without what is visible. */
function sequencesOf(text: string): string {
  let sequences = "";
  for (const piece of pieces(text)) sequences += piece.sequence ?? "";
  return sequences;
}

/** Removes the spaces at the end of a line, also those before sequences, which stay. */
function trimLineEnd(line: string): string {
  const parts = [...pieces(line)];
  let end = parts.length;
  let sequences = "";
  for (; end > 0; end -= 1) {
    const part = parts[end - 1]!;
    if (part.sequence !== undefined) sequences = part.sequence + sequences;
    else if (part.grapheme.trim() !== "") break;
  }
  return parts.slice(0, end).map((part) => part.sequence ?? part.grapheme).join("") + sequences;
}
