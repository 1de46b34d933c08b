/** A list of settings whose values can be changed. */
import { fuzzyFilter } from "../fuzzy.ts";
import { getKeybindings, getSelectPageIndex } from "../keybindings.ts";
import { truncateToWidth } from "../slice.ts";
import { visibleWidth } from "../width.ts";
import { wrapTextWithAnsi } from "../wrap.ts";
import type { Component, TextStyler } from "./component.ts";
import { Input } from "./input.ts";
import { visibleRange } from "./select_list.ts";

export interface SettingItem {
  id: string;
  label: string;
  description?: string;
  currentValue: string;
  values?: string[];
  submenu?: (
    currentValue: string,
    done: (selectedValue?: string, options?: { navigateTo?: string }) => void,
  ) => Component;
}

export interface SettingsListTheme {
  label: (text: string, selected: boolean) => string;
  value: (text: string, selected: boolean) => string;
  description: TextStyler;
  cursor: string;
  hint: TextStyler;
}

const LABEL_COLUMN = 30;

export class SettingsList implements Component {
  readonly capturesViewportInput = true;
  #items: SettingItem[];
  #theme: SettingsListTheme;
  #maxVisible: number;
  #onChange: (id: string, newValue: string) => void;
  #onCancel: () => void;
  #search: Input | undefined;
  #selected = 0;
  #submenu: Component | undefined;

  constructor(
    items: SettingItem[],
    maxVisible: number,
    theme: SettingsListTheme,
    onChange: (id: string, newValue: string) => void,
    onCancel: () => void,
    options: { enableSearch?: boolean } = {},
  ) {
    this.#items = items;
    this.#maxVisible = maxVisible;
    this.#theme = theme;
    this.#onChange = onChange;
    this.#onCancel = onCancel;
    if (options.enableSearch) this.#search = new Input();
  }

  updateValue(id: string, newValue: string): void {
    const item = this.#items.find((candidate) => candidate.id === id);
    if (item) item.currentValue = newValue;
  }

  selectItem(id: string): void {
    const index = this.#shown().findIndex((item) => item.id === id);
    if (index >= 0) this.#selected = index;
  }

  invalidate(): void {
    this.#submenu?.invalidate?.();
  }

  handleMouse(_event: unknown): undefined {
    return undefined;
  }

  #shown(): SettingItem[] {
    const query = this.#search?.getValue() ?? "";
    return query ? fuzzyFilter(this.#items, query, (item) => item.label) : this.#items;
  }

  handleInput(data: string): void {
    if (this.#submenu) return this.#submenu.handleInput?.(data);
    const keys = getKeybindings();
    const items = this.#shown();
    if (keys.matches(data, "tui.select.cancel")) return this.#onCancel();
    if (keys.matches(data, "tui.select.confirm") || (data === " " && !this.#search?.getValue())) return this.#activate();
    if (items.length > 0 && keys.matches(data, "tui.select.up")) {
      this.#selected = (this.#selected + items.length - 1) % items.length;
    } else if (items.length > 0 && keys.matches(data, "tui.select.down")) {
      this.#selected = (this.#selected + 1) % items.length;
    } else {
      const index = getSelectPageIndex(keys, data, this.#selected, items.length, this.#maxVisible);
      if (index !== undefined) this.#selected = index;
      else if (this.#search) {
        this.#search.handleInput(data);
        this.#selected = 0;
      }
    }
  }

  #activate(): void {
    const item = this.#shown()[this.#selected];
    if (!item) return;
    if (item.submenu) {
      this.#submenu = item.submenu(item.currentValue, (value, options) => {
        this.#submenu = undefined;
        if (value !== undefined) this.#change(item, value);
        if (options?.navigateTo !== undefined) this.selectItem(options.navigateTo);
      });
    } else if (item.values && item.values.length > 0) {
      const next = item.values[(item.values.indexOf(item.currentValue) + 1) % item.values.length];
      if (next !== undefined) this.#change(item, next);
    }
  }

  #change(item: SettingItem, value: string): void {
    item.currentValue = value;
    this.#onChange(item.id, value);
  }

  render(width: number): string[] {
    if (this.#submenu) return this.#submenu.render(width);
    const lines = this.#search ? [...this.#search.render(width), ""] : [];
    const items = this.#shown();
    if (items.length === 0) {
      const text = this.#items.length === 0 ? "  No settings" : "  No matching settings";
      return [...lines, truncateToWidth(this.#theme.hint(text), width)];
    }
    const { start, end } = visibleRange(this.#selected, items.length, this.#maxVisible);
    const labelWidth = Math.min(LABEL_COLUMN, Math.max(...this.#items.map((item) => visibleWidth(item.label))));
    items.slice(start, end).forEach((item, index) => {
      const selected = start + index === this.#selected;
      const label = item.label + " ".repeat(Math.max(0, labelWidth - visibleWidth(item.label)));
      const text = `${selected ? this.#theme.cursor : "  "}${this.#theme.label(label, selected)}  ${this.#theme.value(item.currentValue, selected)}`;
      lines.push(truncateToWidth(text, width));
    });
    if (start > 0 || end < items.length) lines.push(this.#theme.hint(`  (${this.#selected + 1}/${items.length})`));
    const description = items[this.#selected]?.description;
    if (description) {
      lines.push("");
      for (const line of wrapTextWithAnsi(description, Math.max(1, width - 4))) {
        lines.push(this.#theme.description(`  ${line}`));
      }
    }
    const hint = this.#search ? "  Type to filter, Enter changes, Esc leaves" : "  Enter or Space changes, Esc leaves";
    return [...lines, "", truncateToWidth(this.#theme.hint(hint), width)];
  }
}
