/** Incremental reading of JSON that arrives in pieces. */
import { parseToolCallArguments } from "./json.ts";

export type JsonPath = readonly (string | number)[];

export type JsonChange =
  | { readonly kind: "set"; readonly path: JsonPath; readonly value: unknown }
  | { readonly kind: "append"; readonly path: JsonPath; readonly text: string };

interface Frame {
  container: Record<string, unknown> | unknown[];
  /** Key that waits for its value. */
  key?: string;
}

/** The string or word that is being read. */
interface Token {
  kind: "key" | "string" | "word";
  text: string;
  /** An escape that is not complete. */
  escape: string;
  /** Length of the text that has been reported. */
  reported: number;
}

/** Deeper containers are reported whole when they close. */
const MAX_DEPTH = 32;
/** A snapshot may copy this many members for each character that was read, and as many for each piece. */
const CREDIT_PER_CHARACTER = 4;
const CREDIT_PER_PIECE = 64;

const SIMPLE_ESCAPES: Record<string, string> = {
  '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t",
};
const LITERALS: [string, unknown][] = [["true", true], ["false", false], ["null", null]];

/** Value of a complete word, or undefined when it is none. */
function wordValue(word: string): unknown {
  const literal = LITERALS.find(([text]) => text === word);
  if (literal) return literal[1];
  return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(word) ? Number(word) : undefined;
}

/** Value that a word shows while it is incomplete. */
function partialWordValue(word: string): unknown {
  const literal = LITERALS.find(([text]) => text.startsWith(word));
  if (literal) return literal[1];
  return wordValue(word.replace(/[eE][+-]?$/, ""));
}

/** Reads JSON leniently; never throws. Each piece is read once. */
export class StreamingJsonParser {
  #stack: Frame[] = [];
  #root: { value: unknown } | undefined;
  #token: Token | undefined;
  #changes: JsonChange[] = [];
  #credit = 0;
  #snapshot: unknown;
  #fresh = true;

  /** Reads the next piece and returns what it changed. */
  append(text: string): readonly JsonChange[] {
    this.#changes = [];
    this.#credit += text.length * CREDIT_PER_CHARACTER + CREDIT_PER_PIECE;
    if (text !== "") this.#fresh = false;
    let at = 0;
    while (at < text.length && !this.#finished()) at = this.#read(text, at);
    this.#report();
    return this.#changes;
  }

  /** The value so far, or undefined before one has begun. It never changes afterwards. */
  snapshot(): unknown {
    if (this.#fresh) return this.#snapshot;
    const cost = this.#stack.reduce((sum, { container }) => sum + sizeOf(container), 0);
    if (cost > this.#credit && this.#snapshot !== undefined) return this.#snapshot;
    this.#credit = Math.max(0, this.#credit - cost);
    this.#snapshot = this.#build();
    this.#fresh = true;
    return this.#snapshot;
  }

  #finished(): boolean {
    return this.#root !== undefined && this.#stack.length === 0 && this.#token === undefined;
  }

  /** Reads what begins at `at` and returns where to go on. */
  #read(text: string, at: number): number {
    const token = this.#token;
    if (token && token.kind !== "word") return this.#readString(token, text, at);
    const character = text.charAt(at);
    if (!/[{}[\],:"\s]/.test(character)) {
      this.#token ??= { kind: "word", text: "", escape: "", reported: 0 };
      this.#token.text += character;
      return at + 1;
    }
    this.#endWord();
    if (this.#finished()) return text.length;
    switch (character) {
      case '"':
        this.#startString();
        break;
      case "{":
        this.#open({});
        break;
      case "[":
        this.#open([]);
        break;
      case "}":
      case "]":
        this.#close(character);
        break;
      default:
        break;
    }
    return at + 1;
  }

  /** Whether a value can stand here: not where an object waits for a key. */
  #takesValue(): boolean {
    const top = this.#stack.at(-1);
    return top === undefined ? this.#root === undefined : Array.isArray(top.container) || top.key !== undefined;
  }

  #startString(): void {
    this.#token = { kind: this.#takesValue() ? "string" : "key", text: "", escape: "", reported: -1 };
  }

  #readString(token: Token, text: string, at: number): number {
    if (token.escape) return this.#readEscape(token, text.charAt(at), at);
    let end = at;
    while (end < text.length && text[end] !== '"' && text[end] !== "\\") end += 1;
    token.text += text.slice(at, end);
    if (end >= text.length) return end;
    if (text[end] === "\\") token.escape = "\\";
    else this.#endString(token);
    return end + 1;
  }

  /** Takes a character of an escape. One that makes the escape invalid leaves it as literal text. */
  #readEscape(token: Token, character: string, at: number): number {
    if (token.escape === "\\") {
      if (character === "u") {
        token.escape = "\\u";
        return at + 1;
      }
      const simple = SIMPLE_ESCAPES[character];
      token.escape = "";
      token.text += simple ?? "\\";
      return simple === undefined ? at : at + 1;
    }
    if (!/[0-9a-f]/i.test(character)) {
      token.text += token.escape;
      token.escape = "";
      return at;
    }
    token.escape += character;
    if (token.escape.length === 6) {
      token.text += String.fromCharCode(Number.parseInt(token.escape.slice(2), 16));
      token.escape = "";
    }
    return at + 1;
  }

  #endString(token: Token): void {
    if (token.kind === "string") this.#reportString(token);
    this.#token = undefined;
    const top = this.#stack.at(-1);
    if (token.kind === "key") {
      if (top) top.key = token.text;
    } else {
      this.#place(token.text);
    }
  }

  #endWord(): void {
    const token = this.#token;
    if (token?.kind !== "word") return;
    this.#token = undefined;
    const value = wordValue(token.text);
    if (!this.#takesValue()) return;
    if (value === undefined) {
      // An unknown word stands for nothing, and neither does the key before it.
      const top = this.#stack.at(-1);
      if (top) delete top.key;
      return;
    }
    this.#change({ kind: "set", path: this.#path(), value });
    this.#place(value);
  }

  #open(container: Record<string, unknown> | unknown[]): void {
    if (!this.#takesValue()) return;
    this.#change({ kind: "set", path: this.#path(), value: Array.isArray(container) ? [] : {} });
    this.#stack.push({ container });
  }

  #close(character: string): void {
    const top = this.#stack.at(-1);
    if (!top || Array.isArray(top.container) !== (character === "]")) return;
    this.#stack.pop();
    if (this.#stack.length === MAX_DEPTH) this.#changes.push({ kind: "set", path: this.#path(), value: top.container });
    this.#place(top.container);
  }

  /** Puts a finished value where it belongs. */
  #place(value: unknown): void {
    const top = this.#stack.at(-1);
    if (!top) {
      this.#root = { value };
    } else if (Array.isArray(top.container)) {
      top.container.push(value);
    } else {
      setMember(top.container, top.key as string, value);
      delete top.key;
    }
  }

  /** Path of the place where the next value goes. */
  #path(): JsonPath {
    return this.#stack.map(({ container, key }) => (Array.isArray(container) ? container.length : (key as string)));
  }

  #change(change: JsonChange): void {
    if (this.#stack.length < MAX_DEPTH) this.#changes.push(change);
  }

  /** Reports what a piece added to the string that it leaves open. */
  #report(): void {
    if (this.#token?.kind === "string") this.#reportString(this.#token);
  }

  #reportString(token: Token): void {
    if (token.reported < 0) this.#change({ kind: "set", path: this.#path(), value: token.text });
    else if (token.text.length > token.reported) {
      this.#change({ kind: "append", path: this.#path(), text: token.text.slice(token.reported) });
    }
    token.reported = token.text.length;
  }

  /** Copies what is open; what is finished is shared. */
  #build(): unknown {
    let value: unknown;
    const token = this.#token;
    if (token?.kind === "string") value = token.text;
    else if (token?.kind === "word" && this.#takesValue()) value = partialWordValue(token.text);
    for (let index = this.#stack.length - 1; index >= 0; index -= 1) {
      const { container, key } = this.#stack[index] as Frame;
      if (Array.isArray(container)) {
        value = value === undefined ? [...container] : [...container, value];
      } else {
        const copy = { ...container };
        if (value !== undefined && key !== undefined) setMember(copy, key, value);
        value = copy;
      }
    }
    return value === undefined ? this.#root?.value : value;
  }
}

/** Sets a member also when its name is that of a prototype's accessor. */
function setMember(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

function sizeOf(container: Record<string, unknown> | unknown[]): number {
  return Array.isArray(container) ? container.length : Object.keys(container).length;
}

function asArguments(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** The arguments of one tool call while they arrive. */
export class ToolCallArgumentsStream {
  #text = "";
  #parser = new StreamingJsonParser();

  /** All text so far. */
  get text(): string {
    return this.#text;
  }

  /** Takes in a piece and returns the arguments so far. */
  append(delta: string): Record<string, unknown> {
    this.#text += delta;
    this.#parser.append(delta);
    return asArguments(this.#parser.snapshot());
  }

  /** Takes in the whole text. `delta` is what is new, when it continues the text so far. */
  replace(text: string): { delta: string | undefined; arguments: Record<string, unknown> } {
    if (text.startsWith(this.#text)) {
      const delta = text.slice(this.#text.length);
      return { delta, arguments: this.append(delta) };
    }
    this.#text = "";
    this.#parser = new StreamingJsonParser();
    return { delta: undefined, arguments: this.append(text) };
  }

  /** The arguments of the complete text. */
  finish(): { arguments: Record<string, unknown>; argumentsError?: string } {
    return parseToolCallArguments(this.#text);
  }
}
