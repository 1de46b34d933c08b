/**
 * Terminal sequences inside of text. Pure.
 *
 * Three forms have no width: CSI ended by one of `mGKHJ`, OSC, and APC. Everything else that begins with
 * ESC is text whose ESC has no width.
 */

import { lazy } from "../lazy.ts";

const ESC = "\x1b";
const BEL = "\x07";
const CSI_ENDS = "mGKHJ";

/** Returns the sequence that begins at `at`, or undefined when none does. */
export function sequenceAt(text: string, at: number): string | undefined {
  if (text[at] !== ESC) return undefined;
  switch (text[at + 1]) {
    case "[":
      return controlSequence(text, at);
    case "]":
    case "_":
      return stringSequence(text, at);
    default:
      return undefined;
  }
}

function controlSequence(text: string, at: number): string | undefined {
  for (let end = at + 2; end < text.length; end += 1) {
    if (CSI_ENDS.includes(text.charAt(end))) return text.slice(at, end + 1);
  }
  return undefined;
}

function stringSequence(text: string, at: number): string | undefined {
  for (let end = at + 2; end < text.length; end += 1) {
    if (text[end] === BEL) return text.slice(at, end + 1);
    if (text[end] === ESC && text[end + 1] === "\\") return text.slice(at, end + 2);
  }
  return undefined;
}

/** A piece of text: a sequence without width, or a grapheme with its width. */
export type Piece = { sequence: string } | { sequence?: undefined; grapheme: string };

const segmenter = lazy(() => new Intl.Segmenter(undefined, { granularity: "grapheme" }));

/** Splits text into graphemes. */
export function* graphemes(text: string): Generator<string> {
  for (const { segment } of segmenter().segment(text)) yield segment;
}

/** Splits text into sequences and graphemes, in order. */
export function* pieces(text: string): Generator<Piece> {
  let plainFrom = 0;
  let at = 0;
  while (at < text.length) {
    const next = text.indexOf(ESC, at);
    if (next < 0) break;
    const sequence = sequenceAt(text, next);
    if (sequence === undefined) {
      at = next + 1;
      continue;
    }
    for (const grapheme of graphemes(text.slice(plainFrom, next))) yield { grapheme };
    yield { sequence };
    at = next + sequence.length;
    plainFrom = at;
  }
  for (const grapheme of graphemes(text.slice(plainFrom))) yield { grapheme };
}

/** Removes sequences and keeps everything else. */
export function stripTerminalSequences(text: string): string {
  if (!text.includes(ESC)) return text;
  let plain = "";
  for (const piece of pieces(text)) if (piece.sequence === undefined) plain += piece.grapheme;
  return plain;
}

/** Replaces each run of control characters by one space. */
export function replaceControlCharacters(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

/** Target of an OSC 8 sequence: the address, `""` when it ends a link, undefined for other sequences. */
export function linkTarget(sequence: string): string | undefined {
  if (!sequence.startsWith(`${ESC}]8;`)) return undefined;
  const body = sequence.slice(4, sequence.endsWith(BEL) ? -1 : -2);
  const separator = body.indexOf(";");
  return separator < 0 ? undefined : body.slice(separator + 1);
}
