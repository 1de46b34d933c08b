/** What the theme is used for: styles of lists and Markdown, key hints, code and diffs. */
import type { Theme } from "../theme.ts";
import type { MarkdownTheme } from "../tui/components/markdown.ts";
import type { SelectListTheme } from "../tui/components/select_list.ts";
import type { SettingsListTheme } from "../tui/components/settings_list.ts";
import { getKeybindings } from "../tui/keybindings.ts";

/** Keys of an action, as text; empty for actions of the application, which has none here. */
export function keyText(keybinding: string): string {
  return getKeybindings().getKeys(keybinding).join("/");
}

/** Everything that is made of one theme. */
export class Themed {
  readonly #theme: Theme;

  constructor(theme: Theme) {
    this.#theme = theme;
  }

  #fg(color: string): (text: string) => string {
    return (text) => this.#theme.fg(color, text);
  }

  markdownTheme(): MarkdownTheme {
    return {
      heading: this.#fg("mdHeading"),
      link: this.#fg("mdLink"),
      linkUrl: this.#fg("mdLinkUrl"),
      code: this.#fg("mdCode"),
      codeBlock: this.#fg("mdCodeBlock"),
      codeBlockBorder: this.#fg("mdCodeBlockBorder"),
      quote: this.#fg("mdQuote"),
      quoteBorder: this.#fg("mdQuoteBorder"),
      hr: this.#fg("mdHr"),
      listBullet: this.#fg("mdListBullet"),
      bold: (text) => this.#theme.bold(text),
      italic: (text) => this.#theme.italic(text),
      underline: (text) => this.#theme.underline(text),
      strikethrough: (text) => this.#theme.strikethrough(text),
      highlightCode: (code) => this.highlightCode(code),
    };
  }

  selectListTheme(): SelectListTheme {
    return {
      selectedPrefix: this.#fg("accent"),
      selectedText: this.#fg("accent"),
      description: this.#fg("muted"),
      scrollInfo: this.#fg("muted"),
      noMatch: this.#fg("muted"),
    };
  }

  settingsListTheme(): SettingsListTheme {
    return {
      label: (text, selected) => (selected ? this.#theme.fg("accent", text) : text),
      value: (text, selected) => this.#theme.fg(selected ? "accent" : "muted", text),
      description: this.#fg("dim"),
      cursor: this.#theme.fg("accent", "→ "),
      hint: this.#fg("dim"),
    };
  }

  /** Lines of code in the color of code. Languages are not told apart. */
  highlightCode(code: string, _language?: string): string[] {
    return code.split("\n").map(this.#fg("mdCodeBlock"));
  }

  keyHint(keybinding: string, description: string): string {
    return this.rawKeyHint(keyText(keybinding), description);
  }

  rawKeyHint(key: string, description: string): string {
    return this.#theme.fg("dim", key) + this.#theme.fg("muted", ` ${description}`);
  }

  /** A diff with its lines colored by what happened to them. */
  renderDiff(diffText: string, _options?: object): string {
    return diffText
      .split("\n")
      .map((line) => {
        if (line.startsWith("+")) return this.#theme.fg("toolDiffAdded", line);
        if (line.startsWith("-")) return this.#theme.fg("toolDiffRemoved", line);
        return this.#theme.fg("toolDiffContext", line);
      })
      .join("\n");
  }
}
