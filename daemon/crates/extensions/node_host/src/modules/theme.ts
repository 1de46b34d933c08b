/**
 * The theme that extensions style text with.
 *
 * In RPC mode pi uses its theme `system` and knows nothing of the terminal: colors are the indexed ones, faint
 * text is SGR 2, backgrounds are the default one, and bold, italic, … leave their text unchanged. The tokens
 * below give the same bytes.
 */
import {
  backgroundAnsi,
  type Color,
  foregroundAnsi,
  indexedColor,
  mixColors,
  parseColor,
  rgbColor,
  styleTextWithAnsi,
  type TerminalColorMode,
  type TextAttributes,
} from "./tui/colors.ts";

/** Indexed colors of the foreground tokens; `""` is the default foreground, `"dim"` the same, faint. */
const SYSTEM_FOREGROUND: Record<string, number | "" | "dim"> = {
  accent: 5, borderAccent: 5, customMessageLabel: 5, mdCode: 5, mdListBullet: 5, syntaxType: 5, border: 4, mdLink: 4,
  syntaxKeyword: 4, syntaxVariable: 6, success: 2, mdCodeBlock: 2, toolDiffAdded: 2, bashMode: 2, syntaxNumber: 5,
  error: 1, toolDiffRemoved: 1, warning: 3, mdHeading: 3, syntaxFunction: 3, syntaxString: 2, thinkingMinimal: 4,
  thinkingLow: 4, thinkingMedium: 6, thinkingHigh: 5, thinkingXhigh: 13, thinkingMax: 1,
  text: "", userMessageText: "", toolTitle: "",
  customMessageText: "dim", syntaxOperator: "dim", syntaxPunctuation: "dim", muted: "dim", dim: "dim",
  thinkingText: "dim", toolOutput: "dim", mdLinkUrl: "dim", mdQuote: "dim", mdQuoteBorder: "dim", mdHr: "dim",
  mdCodeBlockBorder: "dim", toolDiffContext: "dim", syntaxComment: "dim", scrollbarTrack: "dim",
  scrollbarThumb: "dim", searchMatchText: "dim", borderMuted: "dim", thinkingOff: "dim",
};

const SYSTEM_BACKGROUND = [
  "selectedBg", "searchMatchBg", "userMessageBg", "customMessageBg", "toolPendingBg", "toolSuccessBg", "toolErrorBg",
];

/** Colors that are assumed of a terminal that told none. */
const ASSUMED = {
  dark: { foreground: rgbColor(229, 229, 231), background: rgbColor(0, 0, 0) },
  light: { foreground: rgbColor(0, 0, 0), background: rgbColor(255, 255, 255) },
};
/** How much of the foreground's color faint text loses. */
const FAINT = 0.4;

const DEFAULT_FOREGROUND = "\x1b[39m";
const DEFAULT_BACKGROUND = "\x1b[49m";
const DIM = "\x1b[2m";

export type ThemeAppearance = "dark" | "light";
type TokenColors = Record<string, string | number>;
type ThinkingLevel = "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

const THINKING_TOKENS: Record<ThinkingLevel, string> = {
  off: "thinkingOff", minimal: "thinkingMinimal", low: "thinkingLow", medium: "thinkingMedium",
  high: "thinkingHigh", xhigh: "thinkingXhigh", max: "thinkingMax",
};

export interface ThemeOptions {
  name?: string;
  sourcePath?: string;
  sourceInfo?: unknown;
  appearance?: ThemeAppearance;
  /** Foreground tokens that are drawn faint. */
  dim?: readonly string[];
}

export interface ThemeStyle extends TextAttributes {
  fg?: string | Color;
  bg?: string | Color;
}

/** Colors by the name of what they are for. */
export class Theme {
  readonly name: string | undefined;
  readonly sourcePath: string | undefined;
  sourceInfo: unknown;
  readonly #mode: TerminalColorMode;
  readonly #foreground: Map<string, Color | undefined>;
  readonly #background: Map<string, Color | undefined>;
  readonly #dim: ReadonlySet<string>;
  readonly #appearance: ThemeAppearance | undefined;
  /** False: every style function returns its text unchanged. */
  #ansi = true;

  constructor(fgColors: TokenColors, bgColors: TokenColors, mode: TerminalColorMode, options: ThemeOptions = {}) {
    this.name = options.name;
    this.sourcePath = options.sourcePath;
    this.sourceInfo = options.sourceInfo;
    this.#mode = mode;
    this.#foreground = parseTokens(fgColors);
    this.#background = parseTokens(bgColors);
    this.#dim = new Set(options.dim);
    this.#appearance = options.appearance;
  }

  /** A theme whose style functions change nothing. */
  static plain(theme: Theme): Theme {
    theme.#ansi = false;
    return theme;
  }

  get appearance(): ThemeAppearance {
    return this.#appearance ?? "dark";
  }

  /** A color for every token, with assumed ones for the terminal's defaults. */
  get colors(): Readonly<Record<string, Color>> {
    const assumed = ASSUMED[this.appearance];
    const colors: Record<string, Color> = {};
    for (const [token, color] of this.#foreground) {
      const own = color ?? assumed.foreground;
      colors[token] = this.#dim.has(token) ? mixColors(own, assumed.background, FAINT) : own;
    }
    for (const [token, color] of this.#background) colors[token] = color ?? assumed.background;
    return colors;
  }

  style(text: string, options: ThemeStyle): string {
    const { fg, bg, ...attributes } = options;
    const dim = typeof fg === "string" && this.#dim.has(fg);
    const fgAnsi = typeof fg === "string" ? this.#foregroundAnsi(fg) : fg && foregroundAnsi(fg, this.#mode);
    const bgAnsi = typeof bg === "string" ? this.#backgroundAnsi(bg) : bg && backgroundAnsi(bg, this.#mode);
    if (!this.#ansi) return text;
    return styleTextWithAnsi(text, fgAnsi, bgAnsi, dim ? { ...attributes, dim: true } : attributes);
  }

  fg(color: string, text: string): string {
    const open = this.#foregroundAnsi(color);
    if (!this.#ansi) return text;
    return this.#dim.has(color) ? `${open}${DIM}${text}\x1b[22;39m` : `${open}${text}${DEFAULT_FOREGROUND}`;
  }

  bg(color: string, text: string): string {
    const open = this.#backgroundAnsi(color);
    return this.#ansi ? open + text + DEFAULT_BACKGROUND : text;
  }

  bold(text: string): string {
    return text;
  }

  italic(text: string): string {
    return text;
  }

  underline(text: string): string {
    return text;
  }

  inverse(text: string): string {
    return text;
  }

  strikethrough(text: string): string {
    return text;
  }

  getFgAnsi(color: string): string {
    const open = this.#foregroundAnsi(color);
    if (!this.#ansi) return "";
    return this.#dim.has(color) ? open + DIM : open;
  }

  getBgAnsi(color: string): string {
    const open = this.#backgroundAnsi(color);
    return this.#ansi ? open : "";
  }

  getColorMode(): TerminalColorMode {
    return this.#mode;
  }

  getThinkingBorderColor(level: ThinkingLevel): (text: string) => string {
    return (text) => this.fg(THINKING_TOKENS[level] ?? THINKING_TOKENS.off, text);
  }

  getBashModeBorderColor(): (text: string) => string {
    return (text) => this.fg("bashMode", text);
  }

  #foregroundAnsi(token: string): string {
    if (!this.#foreground.has(token)) throw new Error(`Unknown theme color: ${token}`);
    const color = this.#foreground.get(token);
    return color ? foregroundAnsi(color, this.#mode) : DEFAULT_FOREGROUND;
  }

  #backgroundAnsi(token: string): string {
    if (!this.#background.has(token)) throw new Error(`Unknown theme color: ${token}`);
    const color = this.#background.get(token);
    return color ? backgroundAnsi(color, this.#mode) : DEFAULT_BACKGROUND;
  }
}

function parseTokens(tokens: TokenColors): Map<string, Color | undefined> {
  return new Map(
    Object.entries(tokens).map(([token, value]) => [
      token,
      value === "" ? undefined : typeof value === "number" ? indexedColor(value) : parseColor(value),
    ]),
  );
}

/** The theme of the host; `ansi` false makes its style functions return their text unchanged. */
export function createTheme(ansi: boolean): Theme {
  const foreground: TokenColors = {};
  const dim: string[] = [];
  for (const [token, value] of Object.entries(SYSTEM_FOREGROUND)) {
    foreground[token] = value === "dim" ? "" : value;
    if (value === "dim") dim.push(token);
  }
  const background: TokenColors = Object.fromEntries(SYSTEM_BACKGROUND.map((token) => [token, ""]));
  const theme = new Theme(foreground, background, "256color", { name: "system", appearance: "dark", dim });
  return ansi ? theme : Theme.plain(theme);
}
