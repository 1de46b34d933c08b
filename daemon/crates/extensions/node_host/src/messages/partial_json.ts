/** Reads the beginning of a JSON text, as tool arguments come in. Pure. */

/** The value of `text` as far as it goes; `{}` when nothing can be read yet. */
export function parsePartialJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return parseIncomplete(text);
  }
}

function parseIncomplete(text: string): unknown {
  for (const candidate of candidates(text)) {
    try {
      return JSON.parse(candidate);
    } catch {
      // The next candidate leaves more out.
    }
  }
  return {};
}

/** Completions of the text: what is open is closed; an unfinished last member is left out. */
function* candidates(text: string): Generator<string> {
  const state = scan(text);
  if (state.inString) {
    const cut = text.replace(/\\(?:u[0-9a-fA-F]{0,3})?$/, "");
    yield `${cut}"${state.closers}`;
  } else {
    yield text.replace(/[,\s]+$/, "") + state.closers;
  }
  if (state.lastComma >= 0) yield text.slice(0, state.lastComma) + state.lastCommaClosers;
  if (state.lastOpen >= 0) yield text.slice(0, state.lastOpen + 1) + state.lastOpenClosers;
}

interface ScanState {
  inString: boolean;
  closers: string;
  lastComma: number;
  lastCommaClosers: string;
  lastOpen: number;
  lastOpenClosers: string;
}

function scan(text: string): ScanState {
  const stack: string[] = [];
  const state: ScanState = { inString: false, closers: "", lastComma: -1, lastCommaClosers: "", lastOpen: -1, lastOpenClosers: "" };
  const closers = () => [...stack].reverse().join("");
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (state.inString) {
      if (char === "\\") i++;
      else if (char === '"') state.inString = false;
    } else if (char === '"') {
      state.inString = true;
    } else if (char === "{" || char === "[") {
      stack.push(char === "{" ? "}" : "]");
      state.lastOpen = i;
      state.lastOpenClosers = closers();
      state.lastComma = -1;
    } else if (char === "}" || char === "]") {
      stack.pop();
    } else if (char === ",") {
      state.lastComma = i;
      state.lastCommaClosers = closers();
    }
  }
  state.closers = closers();
  return state;
}
