/** What every component is, and the plain layout components. Nothing of them is ever drawn by the host. */
import { visibleWidth } from "../width.ts";
import { wrapTextWithAnsi } from "../wrap.ts";
import { truncateToWidth } from "../slice.ts";

export interface Component {
  render(width: number): string[];
  handleInput?(data: string): void;
  invalidate(): void;
}

export type TextStyler = (text: string) => string;

/** Fills a line with spaces up to `width`. */
export function padLine(line: string, width: number): string {
  return line + " ".repeat(Math.max(0, width - visibleWidth(line)));
}

function styled(lines: string[], width: number, style: TextStyler | undefined): string[] {
  return lines.map((line) => {
    const padded = padLine(line, width);
    return style ? style(padded) : padded;
  });
}

function blankLines(count: number): string[] {
  return Array.from({ length: Math.max(0, count) }, () => "");
}

/** Shows components below each other. */
export class Container implements Component {
  children: Component[] = [];

  addChild(component: Component): void {
    this.children.push(component);
  }

  removeChild(component: Component): void {
    const index = this.children.indexOf(component);
    if (index >= 0) this.children.splice(index, 1);
  }

  clear(): void {
    this.children = [];
  }

  invalidate(): void {
    for (const child of this.children) child.invalidate?.();
  }

  handleMouse(_event: unknown): undefined {
    return undefined;
  }

  render(width: number): string[] {
    return this.children.flatMap((child) => child.render(width));
  }
}

/** Gives its children padding and a background. */
export class Box implements Component {
  children: Component[] = [];
  #paddingX: number;
  #paddingY: number;
  #background: TextStyler | undefined;

  constructor(paddingX = 1, paddingY = 1, bgFn?: TextStyler) {
    this.#paddingX = paddingX;
    this.#paddingY = paddingY;
    this.#background = bgFn;
  }

  addChild(component: Component): void {
    this.children.push(component);
  }

  removeChild(component: Component): void {
    const index = this.children.indexOf(component);
    if (index >= 0) this.children.splice(index, 1);
  }

  clear(): void {
    this.children = [];
  }

  setBgFn(bgFn?: TextStyler): void {
    this.#background = bgFn;
  }

  setPaddingX(paddingX: number): void {
    this.#paddingX = paddingX;
  }

  invalidate(): void {
    for (const child of this.children) child.invalidate?.();
  }

  handleMouse(_event: unknown): undefined {
    return undefined;
  }

  render(width: number): string[] {
    const inner = Math.max(1, width - 2 * this.#paddingX);
    const content = this.children.flatMap((child) => child.render(inner));
    if (content.length === 0) return [];
    const margin = " ".repeat(this.#paddingX);
    const padding = blankLines(this.#paddingY);
    return styled([...padding, ...content.map((line) => margin + line), ...padding], width, this.#background);
  }
}

/** Shows text, wrapped at words. */
export class Text implements Component {
  #text: string;
  #paddingX: number;
  #paddingY: number;
  #background: TextStyler | undefined;

  constructor(text = "", paddingX = 1, paddingY = 1, customBgFn?: TextStyler) {
    this.#text = text;
    this.#paddingX = paddingX;
    this.#paddingY = paddingY;
    this.#background = customBgFn;
  }

  setText(text: string): void {
    this.#text = text;
  }

  setCustomBgFn(customBgFn?: TextStyler): void {
    this.#background = customBgFn;
  }

  setPaddingX(paddingX: number): void {
    this.#paddingX = paddingX;
  }

  invalidate(): void {}

  render(width: number): string[] {
    if (!this.#text || this.#text.trim() === "") return [];
    const inner = Math.max(1, width - 2 * this.#paddingX);
    const margin = " ".repeat(this.#paddingX);
    const lines = wrapTextWithAnsi(this.#text.replaceAll("\t", "   "), inner);
    const padding = blankLines(this.#paddingY);
    return styled([...padding, ...lines.map((line) => margin + line), ...padding], width, this.#background);
  }
}

/** Shows the first line of a text, cut to the width. */
export class TruncatedText implements Component {
  #text: string;
  #paddingX: number;
  #paddingY: number;

  constructor(text: string, paddingX = 0, paddingY = 0) {
    this.#text = text;
    this.#paddingX = paddingX;
    this.#paddingY = paddingY;
  }

  invalidate(): void {}

  render(width: number): string[] {
    const inner = Math.max(1, width - 2 * this.#paddingX);
    const line = this.#text.split("\n", 1)[0] as string;
    const margin = " ".repeat(this.#paddingX);
    const padding = blankLines(this.#paddingY);
    return styled([...padding, margin + truncateToWidth(line, inner) + margin, ...padding], width, undefined);
  }
}

/** Shows empty lines. */
export class Spacer implements Component {
  #lines: number;

  constructor(lines = 1) {
    this.#lines = lines;
  }

  setLines(lines: number): void {
    this.#lines = lines;
  }

  invalidate(): void {}

  render(_width: number): string[] {
    return blankLines(this.#lines);
  }
}

/** Shows another component and would give it the mouse. */
export class MouseRegion implements Component {
  readonly #child: Component;

  constructor(child: Component, _onMouse: (event: unknown) => unknown) {
    this.#child = child;
  }

  render(width: number): string[] {
    return this.#child.render(width);
  }

  handleMouse(_event: unknown): undefined {
    return undefined;
  }

  invalidate(): void {
    this.#child.invalidate?.();
  }
}
