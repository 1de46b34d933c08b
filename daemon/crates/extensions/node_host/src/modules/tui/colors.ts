/** Colors: indexed, sRGB and OKLCH, and the SGR sequences that set them. Pure. */

export type TerminalColorMode = "256color" | "truecolor";
export type ColorMixSpace = "oklch" | "srgb";

export interface RgbColor {
  r: number;
  g: number;
  b: number;
}

export interface OklchChannels {
  l: number;
  c: number;
  h: number;
}

export type Color =
  | { readonly kind: "indexed"; readonly index: number }
  | ({ readonly kind: "rgb" } & Readonly<RgbColor>)
  | ({ readonly kind: "oklch" } & Readonly<OklchChannels>);

export interface TextAttributes {
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
  strikethrough?: boolean;
}

export interface TextStyle extends TextAttributes {
  fg?: Color;
  bg?: Color;
}

export function indexedColor(index: number): Color {
  if (!Number.isInteger(index) || index < 0 || index > 255) {
    throw new Error(`ANSI color index must be an integer from 0 to 255: ${index}`);
  }
  return { kind: "indexed", index };
}

function checkFinite(name: string, value: number): void {
  if (!Number.isFinite(value)) throw new Error(`${name} must be finite`);
}

function checkRange(name: string, value: number, max: number): void {
  checkFinite(name, value);
  if (value < 0 || value > max) throw new Error(`${name} must be between 0 and ${max}: ${value}`);
}

export function rgbColor(r: number, g: number, b: number): Color {
  checkRange("r", r, 255);
  checkRange("g", g, 255);
  checkRange("b", b, 255);
  return { kind: "rgb", r, g, b };
}

export function oklchColor(l: number, c: number, h: number): Color {
  checkRange("l", l, 1);
  checkFinite("c", c);
  if (c < 0) throw new Error(`c must not be negative: ${c}`);
  checkFinite("h", h);
  return { kind: "oklch", l, c, h: ((h % 360) + 360) % 360 };
}

/** Reads `#rgb`, `#rrggbb`, `oklch(l c h)`, or the index of a terminal color. */
export function parseColor(value: string | number): Color {
  if (typeof value === "number") return indexedColor(value);
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(value);
  if (long) return rgbColor(...(long.slice(1).map((part) => Number.parseInt(part, 16)) as [number, number, number]));
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(value);
  if (short) return rgbColor(...(short.slice(1).map((part) => Number.parseInt(part + part, 16)) as [number, number, number]));
  const oklch = /^oklch\(\s*([\d.]+)(%?)\s+([\d.]+)\s+(-?[\d.]+)(?:deg)?\s*\)$/i.exec(value);
  if (oklch) return oklchColor(Number(oklch[1]) / (oklch[2] ? 100 : 1), Number(oklch[3]), Number(oklch[4]));
  throw new Error(`Invalid color value: ${value}`);
}

/** The sixteen colors whose values the terminal decides, as xterm has them. */
const BASE_COLORS = [
  "000000", "800000", "008000", "808000", "000080", "800080", "008080", "c0c0c0",
  "808080", "ff0000", "00ff00", "ffff00", "0000ff", "ff00ff", "00ffff", "ffffff",
];
const CUBE_LEVELS = [0, 95, 135, 175, 215, 255];
const CUBE_START = 16;
const GRAY_START = 232;
const GRAYS = 24;

function grayLevel(step: number): number {
  return 8 + step * 10;
}

function indexToRgb(index: number): RgbColor {
  if (index < CUBE_START) {
    const value = Number.parseInt(BASE_COLORS[index] as string, 16);
    return { r: value >> 16, g: (value >> 8) & 255, b: value & 255 };
  }
  if (index >= GRAY_START) {
    const level = grayLevel(index - GRAY_START);
    return { r: level, g: level, b: level };
  }
  const cube = index - CUBE_START;
  const level = (step: number): number => CUBE_LEVELS[step] as number;
  return { r: level(Math.floor(cube / 36)), g: level(Math.floor(cube / 6) % 6), b: level(cube % 6) };
}

function toLinear(channel: number): number {
  const value = channel / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

function fromLinear(value: number): number {
  const clamped = Math.min(1, Math.max(0, value));
  return (clamped <= 0.0031308 ? clamped * 12.92 : 1.055 * clamped ** (1 / 2.4) - 0.055) * 255;
}

/** OKLab of an sRGB color, by the matrices that Björn Ottosson published. */
function rgbToOklab({ r, g, b }: RgbColor): { l: number; a: number; b: number } {
  const [red, green, blue] = [toLinear(r), toLinear(g), toLinear(b)];
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const medium = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  return {
    l: 0.2104542553 * long + 0.793617785 * medium - 0.0040720468 * short,
    a: 1.9779984951 * long - 2.428592205 * medium + 0.4505937099 * short,
    b: 0.0259040371 * long + 0.7827717662 * medium - 0.808675766 * short,
  };
}

function oklchToLinear({ l, c, h }: OklchChannels): [number, number, number] {
  const angle = (h * Math.PI) / 180;
  const a = c * Math.cos(angle);
  const b = c * Math.sin(angle);
  const long = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ];
}

function inGamut(channels: readonly number[]): boolean {
  return channels.every((value) => value >= -1e-6 && value <= 1 + 1e-6);
}

/** sRGB of an OKLCH color; a color outside of sRGB loses chroma until it fits. */
function oklchToRgb(color: OklchChannels): RgbColor {
  let channels = oklchToLinear(color);
  if (!inGamut(channels)) {
    let low = 0;
    let high = color.c;
    for (let step = 0; step < 24; step += 1) {
      const middle = (low + high) / 2;
      if (inGamut(oklchToLinear({ ...color, c: middle }))) low = middle;
      else high = middle;
    }
    channels = oklchToLinear({ ...color, c: low });
  }
  const [r, g, b] = channels.map((value) => Math.round(fromLinear(value))) as [number, number, number];
  return { r, g, b };
}

export function colorToRgb(color: Color): RgbColor {
  switch (color.kind) {
    case "indexed":
      return indexToRgb(color.index);
    case "rgb":
      return { r: color.r, g: color.g, b: color.b };
    case "oklch":
      return oklchToRgb(color);
  }
}

export function colorToOklch(color: Color): OklchChannels {
  if (color.kind === "oklch") return { l: color.l, c: color.c, h: color.h };
  const lab = rgbToOklab(colorToRgb(color));
  const hue = (Math.atan2(lab.b, lab.a) * 180) / Math.PI;
  return { l: lab.l, c: Math.hypot(lab.a, lab.b), h: hue < 0 ? hue + 360 : hue };
}

export function colorToHex(color: Color): string {
  const { r, g, b } = colorToRgb(color);
  return `#${[r, g, b].map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("")}`;
}

/** Mixes two colors; `amount` is the part of the second, from 0 to 1. Hues go the shorter way round. */
export function mixColors(first: Color, second: Color, amount: number, space: ColorMixSpace = "oklch"): Color {
  checkRange("amount", amount, 1);
  const mix = (from: number, to: number): number => from + (to - from) * amount;
  if (space === "srgb") {
    const [from, to] = [colorToRgb(first), colorToRgb(second)];
    return rgbColor(mix(from.r, to.r), mix(from.g, to.g), mix(from.b, to.b));
  }
  const [from, to] = [colorToOklch(first), colorToOklch(second)];
  const turn = ((((to.h - from.h) % 360) + 540) % 360) - 180;
  return oklchColor(mix(from.l, to.l), mix(from.c, to.c), from.h + turn * amount);
}

function nearest(levels: readonly number[], value: number): number {
  let best = 0;
  levels.forEach((level, index) => {
    if (Math.abs(level - value) < Math.abs((levels[best] as number) - value)) best = index;
  });
  return best;
}

/** Squared distance of two colors, weighted by how bright the eye sees the channels. */
function distance(first: RgbColor, second: RgbColor): number {
  return (
    (first.r - second.r) ** 2 * 0.299 + (first.g - second.g) ** 2 * 0.587 + (first.b - second.b) ** 2 * 0.114
  );
}

/** Colors with a wider spread of channels are never drawn gray. */
const GRAY_SPREAD = 10;

/** The nearest color of the 256 whose value is fixed. */
function rgbToIndex(color: RgbColor): number {
  const [r, g, b] = [color.r, color.g, color.b].map((channel) => nearest(CUBE_LEVELS, channel)) as [number, number, number];
  const cube = CUBE_START + 36 * r + 6 * g + b;
  const spread = Math.max(color.r, color.g, color.b) - Math.min(color.r, color.g, color.b);
  if (spread >= GRAY_SPREAD) return cube;
  const levels = Array.from({ length: GRAYS }, (_, step) => grayLevel(step));
  const brightness = Math.round(0.299 * color.r + 0.587 * color.g + 0.114 * color.b);
  const gray = GRAY_START + nearest(levels, brightness);
  return distance(color, indexToRgb(gray)) < distance(color, indexToRgb(cube)) ? gray : cube;
}

function colorAnsi(color: Color, mode: TerminalColorMode, layer: 38 | 48): string {
  if (color.kind === "indexed") return `\x1b[${layer};5;${color.index}m`;
  const rgb = colorToRgb(color);
  if (mode === "256color") return `\x1b[${layer};5;${rgbToIndex(rgb)}m`;
  return `\x1b[${layer};2;${Math.round(rgb.r)};${Math.round(rgb.g)};${Math.round(rgb.b)}m`;
}

export function foregroundAnsi(color: Color, mode: TerminalColorMode): string {
  return colorAnsi(color, mode, 38);
}

export function backgroundAnsi(color: Color, mode: TerminalColorMode): string {
  return colorAnsi(color, mode, 48);
}

/** Attributes in the order in which they are switched on; they are switched off in the opposite one. */
const ATTRIBUTE_CODES: [keyof TextAttributes, number, number][] = [
  ["bold", 1, 22], ["dim", 2, 22], ["italic", 3, 23], ["underline", 4, 24], ["inverse", 7, 27], ["strikethrough", 9, 29],
];

/** Styles text with attributes and with colors given as sequences. */
export function styleTextWithAnsi(
  text: string,
  fgAnsi: string | undefined,
  bgAnsi: string | undefined,
  options: TextAttributes,
): string {
  const open: string[] = [];
  const close: string[] = [];
  if (fgAnsi) {
    open.push(fgAnsi);
    close.push("\x1b[39m");
  }
  if (bgAnsi) {
    open.push(bgAnsi);
    close.push("\x1b[49m");
  }
  for (const [name, on, off] of ATTRIBUTE_CODES) {
    if (!options[name]) continue;
    open.push(`\x1b[${on}m`);
    // Bold and dim are switched off by one code.
    if (close.at(-1) !== `\x1b[${off}m`) close.push(`\x1b[${off}m`);
  }
  return open.join("") + text + close.reverse().join("");
}

/** Styles text with colors and attributes. */
export function styleText(text: string, options: TextStyle, mode: TerminalColorMode): string {
  const fg = options.fg && foregroundAnsi(options.fg, mode);
  const bg = options.bg && backgroundAnsi(options.bg, mode);
  return styleTextWithAnsi(text, fg, bg, options);
}

/** Lightness of OKHSL for a lightness of OKLab: Ottosson's toe function. */
export function oklabToOkhslLightness(lightness: number): number {
  const k1 = 0.206;
  const k2 = 0.03;
  const k3 = (1 + k1) / (1 + k2);
  const shifted = k3 * lightness - k1;
  return 0.5 * (shifted + Math.sqrt(shifted * shifted + 4 * k2 * k3 * lightness));
}
