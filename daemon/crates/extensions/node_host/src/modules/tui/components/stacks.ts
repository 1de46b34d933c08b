/** Components that lay others out in rows and columns, and one that scrolls. */
import { visibleWidth } from "../width.ts";
import { truncateToWidth } from "../slice.ts";
import { type Component, Container, padLine, type TextStyler } from "./component.ts";

export interface StackEntryOptions {
  basis?: number | "auto";
  grow?: number;
  shrink?: number;
  minSize?: number;
  maxSize?: number;
  visible?: (viewport: { width: number; height: number }) => boolean;
}

export type StackChild = Component | (StackEntryOptions & { component: Component });

export interface StackOptions {
  gap?: number;
  align?: "stretch" | "start" | "center" | "end";
}

abstract class Stack extends Container {
  protected readonly gap: number;

  constructor(children: StackChild[] = [], options: StackOptions = {}) {
    super();
    this.gap = options.gap ?? 0;
    for (const child of children) this.addChild("component" in child ? child.component : child);
  }

  override addChild(component: Component, _options?: StackEntryOptions): void {
    super.addChild(component);
  }
}

/** Shows components below each other, with a gap. */
export class VStack extends Stack {
  override render(width: number): string[] {
    return this.children.flatMap((child, index) => {
      const lines = child.render(width);
      return index === 0 ? lines : [...Array.from({ length: this.gap }, () => ""), ...lines];
    });
  }
}

/** Shows components beside each other, in columns of equal width. */
export class HStack extends Stack {
  override render(width: number): string[] {
    const count = this.children.length;
    if (count === 0) return [];
    const room = Math.max(count, width - this.gap * (count - 1));
    const columns = this.children.map((child, index) => {
      const columnWidth = Math.floor(room / count) + (index < room % count ? 1 : 0);
      const lines = child.render(columnWidth).map((line) => truncateToWidth(line, columnWidth, ""));
      return { columnWidth, lines };
    });
    const height = Math.max(...columns.map(({ lines }) => lines.length));
    const gap = " ".repeat(this.gap);
    return Array.from({ length: height }, (_, row) =>
      columns.map(({ columnWidth, lines }) => padLine(lines[row] ?? "", columnWidth)).join(gap),
    ).map((line) => (visibleWidth(line) > width ? truncateToWidth(line, width, "") : line));
  }
}

export type ScrollViewScrollbar = "hidden" | "auto" | "always";

export interface ScrollViewOptions {
  axis?: "vertical";
  follow?: "none" | "end";
  primary?: boolean;
  overscroll?: "chain" | "contain";
  scrollbar?: ScrollViewScrollbar;
  scrollbarTrackStyle?: TextStyler;
  scrollbarThumbStyle?: TextStyler;
  scrollbarHideDelayMs?: number;
}

/** Shows the whole of a component: without a viewport there is nothing to scroll. */
export class ScrollView extends Container {
  readonly followEnd: boolean;
  readonly primary: boolean;
  readonly overscroll: "chain" | "contain";
  readonly scrollTop = 0;
  readonly viewportHeight = 0;
  readonly isScrollbarVisible = false;
  readonly isScrollbarActive = false;
  #scrollbar: ScrollViewScrollbar;

  constructor(component: Component, options: ScrollViewOptions = {}) {
    super();
    super.addChild(component);
    this.followEnd = options.follow === "end";
    this.primary = options.primary ?? false;
    this.overscroll = options.overscroll ?? "chain";
    this.#scrollbar = options.scrollbar ?? "hidden";
  }

  get isFollowingEnd(): boolean {
    return this.followEnd;
  }

  get scrollbar(): ScrollViewScrollbar {
    return this.#scrollbar;
  }

  setScrollbar(scrollbar: ScrollViewScrollbar): void {
    this.#scrollbar = scrollbar;
  }

  getContentWidth(width: number): number {
    return width;
  }

  setScrollbarActive(_active: boolean): void {}
  scrollTo(_scrollTop: number, _options?: { disableFollow?: boolean }): void {}

  /** Lines that are left to scroll: all. */
  scrollBy(lines: number): number {
    return lines;
  }

  scrollToStart(): void {}
  scrollToEnd(): void {}
  updateLayout(_contentHeight: number, _viewportHeight: number, _requestRender: () => void): void {}

  override addChild(_component: Component): void {
    throw new Error("ScrollView has exactly one child");
  }

  override removeChild(_component: Component): void {
    throw new Error("ScrollView has exactly one child");
  }

  override clear(): void {
    throw new Error("ScrollView has exactly one child");
  }
}
