/** Cutting of text by columns. Pure. */
import { linkTarget, pieces } from "./escapes.ts";
import { StyleState } from "./style_state.ts";
import { graphemeWidth, visibleWidth } from "./width.ts";

const RESET = "\x1b[0m";

/**
 * Cuts text to `maxWidth` columns and ends it with `ellipsis` where something was cut off. With `pad`, spaces
 * fill it up to `maxWidth`.
 */
export function truncateToWidth(text: string, maxWidth: number, ellipsis = "...", pad = false): string {
  if (maxWidth <= 0) return "";
  const width = visibleWidth(text);
  if (width <= maxWidth) return pad ? text + " ".repeat(maxWidth - width) : text;
  const ellipsisWidth = visibleWidth(ellipsis);
  const kept = ellipsisWidth >= maxWidth ? { text: "", width: 0 } : prefix(text, maxWidth - ellipsisWidth);
  const end = ellipsisWidth > maxWidth ? prefix(ellipsis, maxWidth) : { text: ellipsis, width: ellipsisWidth };
  const padding = pad ? " ".repeat(Math.max(0, maxWidth - kept.width - end.width)) : "";
  return kept.text + RESET + (end.text ? end.text + RESET : "") + padding;
}

/** The longest beginning of text that fits, with a link in it ended. */
function prefix(text: string, maxWidth: number): { text: string; width: number } {
  let kept = "";
  let pending = "";
  let width = 0;
  const style = new StyleState();
  for (const piece of pieces(text)) {
    if (piece.sequence !== undefined) {
      pending += piece.sequence;
      continue;
    }
    const next = graphemeWidth(piece.grapheme);
    if (width + next > maxWidth) break;
    for (const sequence of pieces(pending)) if (sequence.sequence !== undefined) style.apply(sequence.sequence);
    kept += pending + piece.grapheme;
    pending = "";
    width += next;
  }
  return { text: kept + style.linkEnd(), width };
}

/** Whether a sequence marks a place instead of changing what follows. */
function isMarker(sequence: string): boolean {
  return sequence.startsWith("\x1b_");
}

/** A part of a line by columns, with its width. */
export interface ColumnSlice {
  text: string;
  width: number;
}

/**
 * The part of a line from column `start` on, `length` columns long, with the sequences that are in force.
 * `strict` leaves out a wide grapheme that would stand out at the end.
 */
export function sliceWithWidth(line: string, start: number, length: number, strict = false): ColumnSlice {
  const end = start + length;
  let text = "";
  let width = 0;
  let column = 0;
  let pending = "";
  if (length <= 0) return { text, width };
  for (const piece of pieces(line)) {
    if (piece.sequence !== undefined) {
      if (column >= end) break;
      if (column >= start) {
        text += pending + piece.sequence;
        pending = "";
      } else if (!isMarker(piece.sequence)) {
        pending += piece.sequence;
      }
      continue;
    }
    const next = graphemeWidth(piece.grapheme);
    if (column >= start && column < end && (!strict || column + next <= end)) {
      text += pending + piece.grapheme;
      pending = "";
      width += next;
    }
    column += next;
    if (column >= end) break;
  }
  return { text, width };
}

/** The part of a line by columns; see `sliceWithWidth`. */
export function sliceByColumn(line: string, start: number, length: number, strict = false): string {
  return sliceWithWidth(line, start, length, strict).text;
}

/** Address of the OSC 8 link that covers a column, or undefined. */
export function getOsc8LinkAtColumn(line: string, column: number): string | undefined {
  let link: string | undefined;
  let at = 0;
  for (const piece of pieces(line)) {
    if (piece.sequence !== undefined) {
      const target = linkTarget(piece.sequence);
      if (target !== undefined) link = target || undefined;
      continue;
    }
    const width = graphemeWidth(piece.grapheme);
    if (column >= at && column < at + width) return link;
    at += width;
  }
  return undefined;
}
