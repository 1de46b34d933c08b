/** Replacing of exact pieces of text, as the tool `edit` does. Pure. */
import { createTwoFilesPatch, diffLines } from "diff";

export interface Edit {
  oldText: string;
  newText: string;
}

interface Match {
  index: number;
  start: number;
  end: number;
  newText: string;
}

function toLf(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/** Text in which what models mistype is the same: quotes, dashes, spaces, and spaces at line ends. */
function normalizeForMatching(text: string): string {
  return text
    .normalize("NFKC")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .replace(/[\u2018\u2019\u201a\u201b]/g, "'")
    .replace(/[\u201c\u201d\u201e\u201f]/g, '"')
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u00a0\u2002-\u200a\u202f\u205f\u3000]/g, " ");
}

function occurrences(text: string, part: string): number {
  return text.split(part).length - 1;
}

/** Texts of errors, which name one edit or one of several. */
class EditErrors {
  readonly #path: string;
  readonly #single: boolean;

  constructor(path: string, count: number) {
    this.#path = path;
    this.#single = count === 1;
  }

  empty(index: number): Error {
    return new Error(`${this.#single ? "oldText" : `edits[${index}].oldText`} must not be empty in ${this.#path}.`);
  }

  notFound(index: number): Error {
    return new Error(
      this.#single
        ? `Could not find the exact text in ${this.#path}. The old text must match exactly including all whitespace and newlines.`
        : `Could not find edits[${index}] in ${this.#path}. The oldText must match exactly including all whitespace and newlines.`,
    );
  }

  duplicate(index: number, count: number): Error {
    return new Error(
      this.#single
        ? `Found ${count} occurrences of the text in ${this.#path}. The text must be unique. Please provide more context to make it unique.`
        : `Found ${count} occurrences of edits[${index}] in ${this.#path}. Each oldText must be unique. Please provide more context to make it unique.`,
    );
  }

  overlap(first: number, second: number): Error {
    return new Error(
      `edits[${first}] and edits[${second}] overlap in ${this.#path}. Merge them into one edit or target disjoint regions.`,
    );
  }

  unchanged(): Error {
    return new Error(
      this.#single
        ? `No changes made to ${this.#path}. The replacement produced identical content. This might indicate an issue with special characters or the text not existing as expected.`
        : `No changes made to ${this.#path}. The replacements produced identical content.`,
    );
  }
}

/** Places of all edits in a text, in order. */
function findAll(text: string, edits: Edit[], errors: EditErrors): Match[] {
  const uniqueIn = normalizeForMatching(text);
  const matches = edits.map(({ oldText, newText }, index) => {
    const start = text.indexOf(oldText);
    if (start < 0) throw errors.notFound(index);
    const count = occurrences(uniqueIn, normalizeForMatching(oldText));
    if (count > 1) throw errors.duplicate(index, count);
    return { index, start, end: start + oldText.length, newText };
  });
  matches.sort((first, second) => first.start - second.start);
  matches.forEach((match, place) => {
    const before = matches[place - 1];
    if (before && before.end > match.start) throw errors.overlap(before.index, match.index);
  });
  return matches;
}

function replaceAll(text: string, matches: Match[]): string {
  let result = "";
  let at = 0;
  for (const match of matches) {
    result += text.slice(at, match.start) + match.newText;
    at = match.end;
  }
  return result + text.slice(at);
}

/** Lines of `original` where `matching` was left as it is, and the changed lines elsewhere. */
function overlayLines(original: string, matching: string, changed: string): string {
  const originalLines = original.split("\n");
  const result: string[] = [];
  let at = 0;
  for (const part of diffLines(matching, changed)) {
    const lines = part.value.split("\n");
    if (part.value.endsWith("\n")) lines.pop();
    if (part.removed) at += lines.length;
    else if (part.added) result.push(...lines);
    else {
      result.push(...originalLines.slice(at, at + lines.length));
      at += lines.length;
    }
  }
  return result.join("\n") + (changed.endsWith("\n") ? "\n" : "");
}

/** Writes changed text with the line ends that the file has at each place. */
function restoreLineEnds(original: string, before: string, after: string): string {
  if (!original.includes("\r")) return after;
  const ends = [...original.matchAll(/\r\n|\r|\n/g)].map(([end]) => end);
  let at = 0;
  let last = ends[0] ?? "\n";
  let result = "";
  for (const part of diffLines(before, after)) {
    const count = part.value.split("\n").length - 1;
    if (part.removed) {
      last = ends[at] ?? last;
      at += count;
      continue;
    }
    for (const piece of part.value.split(/(?<=\n)/)) {
      if (!piece.endsWith("\n")) {
        result += piece;
        continue;
      }
      const end = part.added ? (ends[at] ?? last) : (ends[at] as string);
      if (!part.added) {
        at += 1;
        last = end;
      }
      result += piece.slice(0, -1) + end;
    }
  }
  return result;
}

/** The text of a file after edits, and both texts with LF line ends. */
export function applyEdits(content: string, edits: Edit[], path: string): { content: string; before: string; after: string } {
  if (edits.length === 0) throw new Error("Edit tool input is invalid. edits must contain at least one replacement.");
  const errors = new EditErrors(path, edits.length);
  const bom = content.startsWith("\ufeff") ? "\ufeff" : "";
  const original = content.slice(bom.length);
  const before = toLf(original);
  const normalized = edits.map(({ oldText, newText }) => ({ oldText: toLf(oldText), newText: toLf(newText) }));
  normalized.forEach(({ oldText }, index) => {
    if (oldText === "") throw errors.empty(index);
  });
  const exact = normalized.every(({ oldText }) => before.includes(oldText));
  let after: string;
  if (exact) {
    after = replaceAll(before, findAll(before, normalized, errors));
  } else {
    const matching = normalizeForMatching(before);
    const fuzzy = normalized.map((edit) => ({ ...edit, oldText: normalizeForMatching(edit.oldText) }));
    after = overlayLines(before, matching, replaceAll(matching, findAll(matching, fuzzy, errors)));
  }
  if (after === before) throw errors.unchanged();
  return { content: bom + restoreLineEnds(original, before, after), before, after };
}

const CONTEXT_LINES = 4;

/** A patch in unified form. */
export function generateUnifiedPatch(
  path: string,
  oldContent: string,
  newContent: string,
  contextLines: number = CONTEXT_LINES,
): string {
  const patch = createTwoFilesPatch(path, path, oldContent, newContent, undefined, undefined, { context: contextLines });
  return patch.replace(/^(?:Index: .*\n)?=+\n/, "").replace(/^(---|\+\+\+) (.*)\t$/gm, "$1 $2");
}

/** Lines of a part of a diff. */
function partLines(value: string): string[] {
  const lines = value.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** A diff to look at: numbered lines with some context, and the number of the first changed line. */
export function generateDiffString(
  oldContent: string,
  newContent: string,
  contextLines: number = CONTEXT_LINES,
): { diff: string; firstChangedLine: number | undefined } {
  const parts = diffLines(oldContent, newContent);
  const width = String(Math.max(oldContent.split("\n").length, newContent.split("\n").length)).length;
  const line = (sign: string, number: number, text: string): string => `${sign}${String(number).padStart(width)} ${text}`;
  const skip = ` ${" ".repeat(width)} ...`;
  const output: string[] = [];
  let oldLine = 1;
  let newLine = 1;
  let firstChangedLine: number | undefined;
  parts.forEach((part, index) => {
    const lines = partLines(part.value);
    if (part.added || part.removed) {
      firstChangedLine ??= newLine;
      for (const text of lines) {
        if (part.added) output.push(line("+", newLine++, text));
        else output.push(line("-", oldLine++, text));
      }
      return;
    }
    const hasBefore = index > 0;
    const hasAfter = index < parts.length - 1;
    const head = hasBefore ? Math.min(contextLines, lines.length) : 0;
    const tail = hasAfter ? Math.min(contextLines, lines.length - head) : 0;
    const hidden = lines.length - head - tail;
    lines.forEach((text, at) => {
      if (at < head || at >= lines.length - tail) output.push(line(" ", oldLine, text));
      else if (at === head && hidden > 0 && (hasBefore || hasAfter)) output.push(skip);
      oldLine += 1;
      newLine += 1;
    });
  });
  return { diff: output.join("\n"), firstChangedLine };
}
