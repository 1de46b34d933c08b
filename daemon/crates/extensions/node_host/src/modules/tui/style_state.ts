/** The style that sequences have switched on, so that it can be switched on again on the next line. */
import { linkTarget } from "./escapes.ts";

const ATTRIBUTES = [1, 2, 3, 4, 5, 7, 8, 9];

/** Code that ends an attribute, and the attributes it ends. */
const ENDS: Record<number, number[]> = { 22: [1, 2], 23: [3], 24: [4], 25: [5], 27: [7], 28: [8], 29: [9] };

/** SGR attributes, colors and the link that are in force at some point of a text. */
export class StyleState {
  #attributes = new Set<number>();
  #foreground = "";
  #background = "";
  /** The sequence that began the link in force, and how such a sequence ends. */
  #link: { sequence: string; terminator: string } | undefined;

  /** Takes in a sequence; those that are neither SGR nor a link change nothing. */
  apply(sequence: string): void {
    const target = linkTarget(sequence);
    if (target !== undefined) {
      this.#link = target === "" ? undefined : { sequence, terminator: sequence.endsWith("\x07") ? "\x07" : "\x1b\\" };
      return;
    }
    const match = /\x1b\[([\d;]*)m/.exec(sequence);
    if (match) this.#applyCodes(match[1] as string);
  }

  #applyCodes(list: string): void {
    if (list === "") return this.#reset();
    const codes = list.split(";");
    for (let index = 0; index < codes.length; index += 1) {
      const code = Number.parseInt(codes[index] as string, 10);
      if (code === 38 || code === 48) {
        const length = codes[index + 1] === "5" ? 3 : codes[index + 1] === "2" ? 5 : 0;
        if (length > 0 && index + length <= codes.length) {
          const color = codes.slice(index, index + length).join(";");
          if (code === 38) this.#foreground = color;
          else this.#background = color;
          index += length - 1;
          continue;
        }
      }
      this.#applyCode(code);
    }
  }

  #applyCode(code: number): void {
    if (code === 0) this.#reset();
    else if (ATTRIBUTES.includes(code)) this.#attributes.add(code);
    else if (ENDS[code]) for (const ended of ENDS[code]) this.#attributes.delete(ended);
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) this.#foreground = String(code);
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) this.#background = String(code);
    else if (code === 39) this.#foreground = "";
    else if (code === 49) this.#background = "";
  }

  #reset(): void {
    this.#attributes.clear();
    this.#foreground = "";
    this.#background = "";
  }

  /** Sequences that switch on what is in force. */
  opening(): string {
    const codes = ATTRIBUTES.filter((code) => this.#attributes.has(code)).map(String);
    if (this.#foreground) codes.push(this.#foreground);
    if (this.#background) codes.push(this.#background);
    return (codes.length > 0 ? `\x1b[${codes.join(";")}m` : "") + (this.#link?.sequence ?? "");
  }

  /** Sequences for the end of a line: what would be drawn through the padding is switched off. */
  lineEnd(): string {
    return (this.#attributes.has(4) ? "\x1b[24m" : "") + (this.#attributes.has(9) ? "\x1b[29m" : "") + this.linkEnd();
  }

  /** The sequence that ends the link in force, or nothing. */
  linkEnd(): string {
    return this.#link ? `\x1b]8;;${this.#link.terminator}` : "";
  }
}
