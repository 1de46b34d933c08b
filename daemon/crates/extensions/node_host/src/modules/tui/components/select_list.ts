/** A list of items of which one is selected. Keys work, so that extensions which drive it get their callbacks. */
import { getKeybindings, getSelectPageIndex } from "../keybindings.ts";
import { truncateToWidth } from "../slice.ts";
import { visibleWidth } from "../width.ts";
import type { Component, TextStyler } from "./component.ts";

export interface SelectItem {
  value: string;
  label: string;
  description?: string;
}

export interface SelectListTheme {
  selectedPrefix: TextStyler;
  selectedText: TextStyler;
  description: TextStyler;
  scrollInfo: TextStyler;
  noMatch: TextStyler;
}

export interface SelectListLayoutOptions {
  minPrimaryColumnWidth?: number;
  maxPrimaryColumnWidth?: number;
  truncatePrimary?: (context: {
    text: string;
    maxWidth: number;
    columnWidth: number;
    item: SelectItem;
    isSelected: boolean;
  }) => string;
}

const PREFIX_WIDTH = 2;
const PRIMARY_COLUMN = 32;
const MIN_DESCRIPTION_WIDTH = 10;

/** First and last index of the items to show, with the selected one in the middle where there is room. */
export function visibleRange(selected: number, total: number, maxVisible: number): { start: number; end: number } {
  const start = Math.max(0, Math.min(selected - Math.floor(maxVisible / 2), total - maxVisible));
  return { start, end: Math.min(start + maxVisible, total) };
}

export class SelectList implements Component {
  readonly capturesViewportInput = true;
  #items: SelectItem[];
  #shown: SelectItem[];
  #selected = 0;
  #maxVisible: number;
  #theme: SelectListTheme;
  #layout: SelectListLayoutOptions;
  onSelect?: (item: SelectItem) => void;
  onCancel?: () => void;
  onSelectionChange?: (item: SelectItem) => void;

  constructor(items: SelectItem[], maxVisible: number, theme: SelectListTheme, layout: SelectListLayoutOptions = {}) {
    this.#items = items;
    this.#shown = items;
    this.#maxVisible = maxVisible;
    this.#theme = theme;
    this.#layout = layout;
  }

  setFilter(filter: string): void {
    const wanted = filter.toLowerCase();
    this.#shown = this.#items.filter((item) => item.value.toLowerCase().startsWith(wanted));
    this.#selected = 0;
  }

  setSelectedIndex(index: number): void {
    this.#selected = Math.max(0, Math.min(index, this.#shown.length - 1));
  }

  getSelectedItem(): SelectItem | null {
    return this.#shown[this.#selected] ?? null;
  }

  invalidate(): void {}

  handleMouse(_event: unknown): undefined {
    return undefined;
  }

  handleInput(keyData: string): void {
    const keys = getKeybindings();
    const count = this.#shown.length;
    if (keys.matches(keyData, "tui.select.cancel")) return this.onCancel?.();
    const item = this.getSelectedItem();
    if (!item) return;
    if (keys.matches(keyData, "tui.select.confirm")) return this.onSelect?.(item);
    if (keys.matches(keyData, "tui.select.up")) this.#moveTo(this.#selected === 0 ? count - 1 : this.#selected - 1);
    else if (keys.matches(keyData, "tui.select.down")) this.#moveTo((this.#selected + 1) % count);
    else {
      const index = getSelectPageIndex(keys, keyData, this.#selected, count, this.#maxVisible);
      if (index !== undefined) this.#moveTo(index);
    }
  }

  #moveTo(index: number): void {
    this.#selected = index;
    const item = this.getSelectedItem();
    if (item) this.onSelectionChange?.(item);
  }

  render(width: number): string[] {
    if (this.#shown.length === 0) return [this.#theme.noMatch("  No matches")];
    const { start, end } = visibleRange(this.#selected, this.#shown.length, this.#maxVisible);
    const column = this.#primaryColumn();
    const lines = this.#shown.slice(start, end).map((item, index) =>
      this.#renderItem(item, start + index === this.#selected, width, column),
    );
    if (start > 0 || end < this.#shown.length) {
      const info = truncateToWidth(`  (${this.#selected + 1}/${this.#shown.length})`, width - PREFIX_WIDTH, "");
      lines.push(this.#theme.scrollInfo(info));
    }
    return lines;
  }

  #primaryColumn(): number {
    const min = this.#layout.minPrimaryColumnWidth ?? PRIMARY_COLUMN;
    const max = Math.max(min, this.#layout.maxPrimaryColumnWidth ?? PRIMARY_COLUMN);
    const widest = Math.max(...this.#shown.map((item) => visibleWidth(item.label || item.value) + PREFIX_WIDTH));
    return Math.max(min, Math.min(widest, max));
  }

  #renderItem(item: SelectItem, isSelected: boolean, width: number, column: number): string {
    const prefix = isSelected ? "→ " : "  ";
    const text = item.label || item.value;
    const cut = (maxWidth: number): string =>
      this.#layout.truncatePrimary?.({ text, maxWidth, columnWidth: column, item, isSelected }) ??
      truncateToWidth(text, maxWidth, "");
    const description = item.description?.replace(/[\r\n]+/g, " ").trim();
    const columnWidth = Math.max(1, Math.min(column, width - PREFIX_WIDTH - 4));
    const descriptionWidth = width - PREFIX_WIDTH - columnWidth - PREFIX_WIDTH;
    if (description && width > 40 && descriptionWidth > MIN_DESCRIPTION_WIDTH) {
      const primary = cut(Math.max(1, columnWidth - PREFIX_WIDTH));
      const gap = " ".repeat(Math.max(1, columnWidth - visibleWidth(primary)));
      const rest = truncateToWidth(description, descriptionWidth, "");
      if (isSelected) return this.#theme.selectedText(prefix + primary + gap + rest);
      return prefix + primary + this.#theme.description(gap + rest);
    }
    const line = prefix + cut(Math.max(1, width - PREFIX_WIDTH - 2));
    return isSelected ? this.#theme.selectedText(line) : line;
  }
}
