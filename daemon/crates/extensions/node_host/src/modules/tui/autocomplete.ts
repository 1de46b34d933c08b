/** Completion in an editor. Nobody types here, so that there are never suggestions. */

export interface AutocompleteItem {
  value: string;
  label: string;
  description?: string;
}

export class CombinedAutocompleteProvider {
  constructor(_commands: unknown[] = [], _basePath?: string, _fdPath?: string | null) {}

  async getSuggestions(
    _lines: string[],
    _cursorLine: number,
    _cursorCol: number,
    _options: { signal: AbortSignal; force?: boolean },
  ): Promise<{ items: AutocompleteItem[]; prefix: string } | null> {
    return null;
  }

  /** Puts a completion in the place of what was typed. */
  applyCompletion(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    item: AutocompleteItem,
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number } {
    const line = lines[cursorLine] ?? "";
    const start = cursorCol - prefix.length;
    const changed = [...lines];
    changed[cursorLine] = line.slice(0, start) + item.value + line.slice(cursorCol);
    return { lines: changed, cursorLine, cursorCol: start + item.value.length };
  }

  shouldTriggerFileCompletion(_lines: string[], _cursorLine: number, _cursorCol: number): boolean {
    return false;
  }
}
