/** Width of text in terminal columns. Pure. */
import { eastAsianWidth } from "get-east-asian-width";
import { lazy } from "../lazy.ts";
import { graphemes, stripTerminalSequences } from "./escapes.ts";

/** Columns of a tab. */
export const TAB_WIDTH = 3;

/**
 * The `v` flag is built at run time: TypeScript's target knows it only from ES2024 on. The class of emoji is
 * large and takes 15 ms to set up.
 */
const wholeEmoji = lazy(() => new RegExp("^\\p{RGI_Emoji}$", "v"));
const INVISIBLE = "\\p{Default_Ignorable_Code_Point}\\p{Control}\\p{Mark}\\p{Surrogate}";
const onlyInvisible = new RegExp(`^[${INVISIBLE}]+$`, "v");
const leadingInvisible = new RegExp(`^[${INVISIBLE}\\p{Format}]+`, "v");
/** Marks that take a column of their own. */
const spacing = new RegExp("[[\\p{Spacing_Mark}\\u065f\\u1033-\\u1035\\u103a\\u103d\\u103e]--[\\u1734\\u302e\\u302f]]", "v");
const onlySpacing = new RegExp(`^${spacing.source}+$`, "v");
const letter = /^\p{L}$/u;
/** Spacing vowels that Thai and Lao put behind their consonant in one grapheme. */
const SPACING_VOWELS = new Set([0x0e33, 0x0eb3]);

function isRegionalIndicator(point: number): boolean {
  return point >= 0x1f1e6 && point <= 0x1f1ff;
}

/** Columns of one grapheme. */
export function graphemeWidth(grapheme: string): number {
  if (grapheme === "\t") return TAB_WIDTH;
  const first = grapheme.codePointAt(0);
  if (first === undefined) return 0;
  if (grapheme.length === 1 && first >= 0x20 && first < 0x7f) return 1;
  if (onlySpacing.test(grapheme)) return [...grapheme].length;
  if (onlyInvisible.test(grapheme)) return 0;
  if (wholeEmoji().test(grapheme)) return 2;
  const visible = grapheme.replace(leadingInvisible, "");
  const base = visible.codePointAt(0);
  if (base === undefined) return 0;
  if (isRegionalIndicator(base)) return 2;
  return eastAsianWidth(base) + trailingWidth([...visible]);
}

/** Columns of what follows the base of a grapheme: spacing marks, and letters joined to it by a mark. */
function trailingWidth(chars: string[]): number {
  let width = 0;
  for (let index = 1; index < chars.length; index += 1) {
    const char = chars[index] as string;
    const code = char.codePointAt(0) as number;
    if (code >= 0xff00 && code <= 0xffef) width += eastAsianWidth(code);
    else if (SPACING_VOWELS.has(code) || spacing.test(char)) width += 1;
    else if (letter.test(char) && joins(chars[index - 1] as string)) width += eastAsianWidth(code);
  }
  return width;
}

/** Whether a character between two letters of one grapheme takes no column of its own. */
function joins(char: string): boolean {
  return onlyInvisible.test(char) && !spacing.test(char);
}

/** Columns that text occupies; sequences, line ends and invisible characters have none. */
export function visibleWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const grapheme of graphemes(stripTerminalSequences(text))) width += graphemeWidth(grapheme);
  return width;
}
