/** Names of editing actions and the keys they are bound to. */
import { matchesKey } from "./keys.ts";

export interface KeybindingDefinition {
  defaultKeys: string | string[];
  description?: string;
}

export type KeybindingDefinitions = Record<string, KeybindingDefinition>;
export type KeybindingsConfig = Record<string, string | string[] | undefined>;

export interface KeybindingConflict {
  key: string;
  keybindings: string[];
}

/** Default keys of each action, by group. */
const DEFAULTS: Record<string, Record<string, string | string[]>> = {
  "tui.editor": {
    cursorUp: "up", cursorDown: "down", historyPrevious: [], historyNext: [],
    cursorLeft: ["left", "ctrl+b"], cursorRight: ["right", "ctrl+f"],
    cursorWordLeft: ["alt+left", "ctrl+left", "alt+b"], cursorWordRight: ["alt+right", "ctrl+right", "alt+f"],
    cursorLineStart: ["home", "ctrl+a"], cursorLineEnd: ["end", "ctrl+e"],
    jumpForward: "ctrl+]", jumpBackward: "ctrl+alt+]",
    pageUp: ["pageUp", "ctrl+pageUp"], pageDown: ["pageDown", "ctrl+pageDown"],
    deleteCharBackward: "backspace", deleteCharForward: ["delete", "ctrl+d"],
    deleteWordBackward: ["ctrl+w", "alt+backspace"], deleteWordForward: ["alt+d", "alt+delete"],
    deleteToLineStart: "ctrl+u", deleteToLineEnd: "ctrl+k",
    yank: "ctrl+y", yankPop: "alt+y", undo: "ctrl+-",
  },
  "tui.input": { newLine: ["shift+enter", "ctrl+j"], submit: "enter", tab: "tab", copy: "ctrl+c" },
  "tui.select": {
    up: "up", down: "down", pageUp: "pageUp", pageDown: "pageDown", confirm: "enter", cancel: ["escape", "ctrl+c"],
  },
  "tui.altScreen": {
    pageUp: "pageUp", pageDown: "pageDown", halfPageUp: [], halfPageDown: [], lineUp: [], lineDown: [],
    previousPrompt: ["ctrl+shift+up", "ctrl+up"], nextPrompt: ["ctrl+shift+down", "ctrl+down"],
    search: "ctrl+shift+f", searchNext: ["enter", "ctrl+g"], searchPrevious: ["shift+enter", "ctrl+shift+g"],
    searchClose: "escape", top: "ctrl+home", bottom: "ctrl+end",
  },
};

function words(name: string): string {
  const spaced = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

function makeDefinitions(): KeybindingDefinitions {
  const definitions: KeybindingDefinitions = {};
  for (const [group, actions] of Object.entries(DEFAULTS)) {
    for (const [action, defaultKeys] of Object.entries(actions)) {
      definitions[`${group}.${action}`] = { defaultKeys, description: words(action) };
    }
  }
  return definitions;
}

export const TUI_KEYBINDINGS: KeybindingDefinitions = makeDefinitions();

function toList(keys: string | string[]): string[] {
  return [...new Set(Array.isArray(keys) ? keys : [keys])];
}

/** Resolves the keys of actions from definitions and the user's choice. */
export class KeybindingsManager {
  #definitions: KeybindingDefinitions;
  #userBindings: KeybindingsConfig;

  constructor(definitions: KeybindingDefinitions, userBindings: KeybindingsConfig = {}) {
    this.#definitions = definitions;
    this.#userBindings = userBindings;
  }

  matches(data: string, keybinding: string): boolean {
    return this.getKeys(keybinding).some((key) => matchesKey(data, key));
  }

  getKeys(keybinding: string): string[] {
    const definition = this.#definitions[keybinding];
    return definition ? toList(this.#userBindings[keybinding] ?? definition.defaultKeys) : [];
  }

  getDefinition(keybinding: string): KeybindingDefinition | undefined {
    return this.#definitions[keybinding];
  }

  /** Keys that the user bound to more than one action. */
  getConflicts(): KeybindingConflict[] {
    const actions = new Map<string, string[]>();
    for (const [name, keys] of Object.entries(this.#userBindings)) {
      if (keys === undefined || !this.#definitions[name]) continue;
      for (const key of toList(keys)) actions.set(key, [...(actions.get(key) ?? []), name]);
    }
    return [...actions].filter(([, names]) => names.length > 1).map(([key, keybindings]) => ({ key, keybindings }));
  }

  setUserBindings(userBindings: KeybindingsConfig): void {
    this.#userBindings = userBindings;
  }

  getUserBindings(): KeybindingsConfig {
    return { ...this.#userBindings };
  }

  getResolvedBindings(): KeybindingsConfig {
    const resolved: KeybindingsConfig = {};
    for (const name of Object.keys(this.#definitions)) {
      const keys = this.getKeys(name);
      resolved[name] = keys.length === 1 ? keys[0] : keys;
    }
    return resolved;
  }
}

let current: KeybindingsManager | undefined;

export function setKeybindings(keybindings: KeybindingsManager): void {
  current = keybindings;
}

export function getKeybindings(): KeybindingsManager {
  current ??= new KeybindingsManager(TUI_KEYBINDINGS);
  return current;
}

/** The index that a page key of a list moves to, or undefined when input is no page key. */
export function getSelectPageIndex(
  keybindings: KeybindingsManager,
  data: string,
  selectedIndex: number,
  itemCount: number,
  pageSize: number,
): number | undefined {
  const step = keybindings.matches(data, "tui.select.pageUp")
    ? -pageSize
    : keybindings.matches(data, "tui.select.pageDown")
      ? pageSize
      : undefined;
  if (step === undefined) return undefined;
  return Math.max(0, Math.min(itemCount - 1, selectedIndex + step));
}
