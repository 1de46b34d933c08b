/** Markdown as text. */
import type { Token, Tokens } from "marked";
import { lazy, lazyClass, loadMarked } from "../../lazy.ts";
import { visibleWidth } from "../width.ts";
import { wrapTextWithAnsi } from "../wrap.ts";
import { type Component, padLine, type TextStyler } from "./component.ts";

export interface MarkdownTheme {
  heading: TextStyler;
  link: TextStyler;
  linkUrl: TextStyler;
  code: TextStyler;
  codeBlock: TextStyler;
  codeBlockBorder: TextStyler;
  quote: TextStyler;
  quoteBorder: TextStyler;
  hr: TextStyler;
  listBullet: TextStyler;
  bold: TextStyler;
  italic: TextStyler;
  strikethrough: TextStyler;
  underline: TextStyler;
  highlightCode?: (code: string, lang?: string) => string[];
  codeBlockIndent?: string;
}

export interface DefaultTextStyle {
  color?: TextStyler;
  bgColor?: TextStyler;
  bold?: boolean;
  italic?: boolean;
  strikethrough?: boolean;
  underline?: boolean;
}

export interface MarkdownOptions {
  preserveOrderedListMarkers?: boolean;
  preserveBackslashEscapes?: boolean;
  transform?: (markdown: string, availableWidth: number) => string;
  renderLatex?: boolean;
}

const parser = lazy(() => new (loadMarked().Marked)());
const INDENT = "  ";

/** Rendering of the tokens of one document. */
class MarkdownRenderer {
  readonly #theme: MarkdownTheme;
  readonly #width: number;

  constructor(theme: MarkdownTheme, width: number) {
    this.#theme = theme;
    this.#width = width;
  }

  /** Lines of a list of blocks, with an empty line wherever the source has one. */
  blocks(tokens: readonly Token[]): string[] {
    const lines: string[] = [];
    for (const token of tokens) {
      if (token.type === "space") {
        if (lines.length > 0) lines.push("");
      } else {
        if (token.type !== "list" && lines.length > 0 && lines.at(-1) !== "") lines.push("");
        lines.push(...this.#block(token));
      }
    }
    while (lines.at(-1) === "") lines.pop();
    return lines;
  }

  #block(token: Token): string[] {
    const theme = this.#theme;
    switch (token.type) {
      case "heading": {
        const text = theme.heading(theme.bold(this.#inline(token.tokens ?? [])));
        return token.depth > 2 ? [`${theme.heading("#".repeat(token.depth))} ${text}`] : [text];
      }
      case "code":
        return this.#code(token as Tokens.Code);
      case "blockquote": {
        const border = `${theme.quoteBorder("│")} `;
        return new MarkdownRenderer(theme, Math.max(1, this.#width - 2))
          .blocks(token.tokens ?? [])
          .flatMap((line) => wrapTextWithAnsi(line, Math.max(1, this.#width - 2)))
          .map((line) => border + theme.quote(theme.italic(line)));
      }
      case "list":
        return this.#list(token as Tokens.List);
      case "hr":
        return [theme.hr("─".repeat(Math.max(1, Math.min(this.#width, 80))))];
      case "table":
        return this.#table(token as Tokens.Table);
      case "html":
        return token.raw.trimEnd().split("\n");
      default:
        return this.#inline("tokens" in token && token.tokens ? token.tokens : [token]).split("\n");
    }
  }

  #code(token: Tokens.Code): string[] {
    const theme = this.#theme;
    const lines =
      theme.highlightCode?.(token.text, token.lang) ?? token.text.split("\n").map((line) => theme.codeBlock(line));
    const indent = theme.codeBlockIndent ?? INDENT;
    return [
      theme.codeBlockBorder(`\`\`\`${token.lang ?? ""}`),
      ...lines.map((line) => indent + line),
      theme.codeBlockBorder("```"),
    ];
  }

  #list(list: Tokens.List): string[] {
    return list.items.flatMap((item, index) => {
      const marker = list.ordered ? `${Number(list.start || 1) + index}. ` : "- ";
      const box = item.task ? `[${item.checked ? "x" : " "}] ` : "";
      const tokens = item.tokens.filter((token) => token.type !== "checkbox");
      const nested = new MarkdownRenderer(this.#theme, Math.max(1, this.#width - marker.length));
      const lines = nested.blocks(tokens).filter((line) => line !== "" || list.loose);
      const hanging = " ".repeat(marker.length);
      const bullet = this.#theme.listBullet(marker + box);
      if (lines.length === 0) return [bullet];
      return lines.map((line, row) => (row === 0 ? bullet : hanging) + line);
    });
  }

  #table(table: Tokens.Table): string[] {
    const header = table.header.map((cell) => this.#theme.bold(this.#inline(cell.tokens)));
    const rows = table.rows.map((row) => row.map((cell) => this.#inline(cell.tokens)));
    const widths = header.map((cell, column) =>
      Math.max(visibleWidth(cell), ...rows.map((row) => visibleWidth(row[column] ?? ""))),
    );
    const rule = (left: string, middle: string, right: string): string =>
      left + widths.map((width) => "─".repeat(width + 2)).join(middle) + right;
    const row = (cells: string[]): string =>
      `│ ${widths.map((width, column) => padLine(cells[column] ?? "", width)).join(" │ ")} │`;
    return [rule("┌", "┬", "┐"), row(header), rule("├", "┼", "┤"), ...rows.map(row), rule("└", "┴", "┘")];
  }

  #inline(tokens: readonly Token[]): string {
    return tokens.map((token) => this.#span(token)).join("");
  }

  #span(token: Token): string {
    const theme = this.#theme;
    const inner = (): string => this.#inline(token.type !== "list" && "tokens" in token ? (token.tokens ?? []) : []);
    switch (token.type) {
      case "strong":
        return theme.bold(inner());
      case "em":
        return theme.italic(inner());
      case "del":
        return theme.strikethrough(inner());
      case "codespan":
        return theme.code(token.text);
      case "br":
        return "\n";
      case "link": {
        const text = theme.link(theme.underline(inner()));
        const shown = token.text === token.href || `mailto:${token.text}` === token.href;
        return shown ? text : text + theme.linkUrl(` (${token.href})`);
      }
      case "image":
      case "escape":
        return token.text;
      case "html":
        return token.raw;
      default:
        return "tokens" in token && token.tokens ? inner() : "text" in token ? String(token.text) : token.raw;
    }
  }
}

export class Markdown implements Component {
  #text: string;
  #paddingX: number;
  #paddingY: number;
  #theme: MarkdownTheme;
  #style: DefaultTextStyle;
  #options: MarkdownOptions;

  constructor(
    text: string,
    paddingX: number,
    paddingY: number,
    theme: MarkdownTheme,
    defaultTextStyle: DefaultTextStyle = {},
    options: MarkdownOptions = {},
  ) {
    this.#text = text;
    this.#paddingX = paddingX;
    this.#paddingY = paddingY;
    this.#theme = theme;
    this.#style = defaultTextStyle;
    this.#options = options;
  }

  setText(text: string): void {
    this.#text = text;
  }

  invalidate(): void {}

  render(width: number): string[] {
    const inner = Math.max(1, width - 2 * this.#paddingX);
    const source = this.#options.transform?.(this.#text, inner) ?? this.#text;
    if (source.trim() === "") return [];
    const tokens = parser().lexer(source.replaceAll("\t", "   "));
    const lines = new MarkdownRenderer(this.#theme, inner)
      .blocks(tokens)
      .flatMap((line) => wrapTextWithAnsi(this.#styled(line), inner));
    const margin = " ".repeat(this.#paddingX);
    const padding = Array.from({ length: this.#paddingY }, () => "");
    return [...padding, ...lines.map((line) => margin + line), ...padding].map((line) => {
      const padded = padLine(line, width);
      return this.#style.bgColor?.(padded) ?? padded;
    });
  }

  #styled(line: string): string {
    const style = this.#style;
    let text = style.color?.(line) ?? line;
    if (style.bold) text = this.#theme.bold(text);
    if (style.italic) text = this.#theme.italic(text);
    if (style.strikethrough) text = this.#theme.strikethrough(text);
    if (style.underline) text = this.#theme.underline(text);
    return text;
  }
}

/** The parser's class, for extensions that parse Markdown themselves. */
export const Marked = lazyClass(() => loadMarked().Marked);

/** LaTeX is not drawn: every expression counts as one that is not supported. */
export function renderLatex(_source: string, _options?: { display?: boolean }): string | undefined {
  return undefined;
}
