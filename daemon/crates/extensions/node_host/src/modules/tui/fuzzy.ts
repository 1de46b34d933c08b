/** Fuzzy matching: the characters of a query in order, with gaps. Pure. A lower score is a better match. */

export interface FuzzyMatch {
  matches: boolean;
  score: number;
}

const NO_MATCH: FuzzyMatch = { matches: false, score: 0 };
const BOUNDARY = /[\s\-_./:]/;
/** Weights of the score. */
const RUN = 5;
const GAP = 2;
const WORD_START = 10;
const POSITION = 0.1;
/** Penalty of a query whose letters and digits had to change places. */
const SWAPPED = 5;
const WHOLE = 100;

/** Matches a query against a text, regardless of case. */
export function fuzzyMatch(query: string, text: string): FuzzyMatch {
  const wanted = query.toLowerCase();
  const target = text.toLowerCase();
  const direct = matchInOrder(wanted, target);
  if (direct.matches) return direct;
  const parts = /^([a-z]+)([0-9]+)$/.exec(wanted) ?? /^([0-9]+)([a-z]+)$/.exec(wanted);
  if (!parts) return direct;
  const swapped = matchInOrder(`${parts[2]}${parts[1]}`, target);
  return swapped.matches ? { matches: true, score: swapped.score + SWAPPED } : direct;
}

function matchInOrder(query: string, text: string): FuzzyMatch {
  if (query.length === 0) return { matches: true, score: 0 };
  if (query.length > text.length) return NO_MATCH;
  let best = scoreFrom(query, text, 0);
  if (best === undefined) return NO_MATCH;
  for (let start = text.indexOf(query); start >= 0; start = text.indexOf(query, start + 1)) {
    best = Math.min(best, scoreFrom(query, text, start) ?? best);
  }
  return { matches: true, score: query === text ? best - WHOLE : best };
}

/** Score of the match that begins at `start` and takes each further character where it comes first. */
function scoreFrom(query: string, text: string, start: number): number | undefined {
  let score = 0;
  let found = 0;
  let last = -1;
  let run = 0;
  for (let index = start; index < text.length && found < query.length; index += 1) {
    if (text[index] !== query[found]) continue;
    if (last === index - 1) {
      run += 1;
      score -= run * RUN;
    } else {
      run = 0;
      if (last >= 0) score += (index - last - 1) * GAP;
    }
    if (index === 0 || BOUNDARY.test(text.charAt(index - 1))) score -= WORD_START;
    score += index * POSITION;
    last = index;
    found += 1;
  }
  return found < query.length ? undefined : score;
}

/**
 * The items that match every word of a query, best first; equal ones keep their order. Words are separated by
 * spaces and slashes.
 */
export function fuzzyFilter<T>(items: T[], query: string, getText: (item: T) => string): T[] {
  const words = query.trim().split(/[\s/]+/).filter((word) => word !== "");
  if (words.length === 0) return items;
  const scored: { item: T; score: number }[] = [];
  for (const item of items) {
    const text = getText(item);
    let score = 0;
    const all = words.every((word) => {
      const match = fuzzyMatch(word, text);
      score += match.score;
      return match.matches;
    });
    if (all) scored.push({ item, score });
  }
  return scored.sort((first, second) => first.score - second.score).map(({ item }) => item);
}
