/** Components of pi's own screen. They can be made, extended and rendered as text; nothing shows them. */
import type { Theme } from "../theme.ts";
import { contentText } from "../ai/transcript.ts";
import { Box, type Component, Container, Spacer, Text, type TextStyler } from "../tui/components/component.ts";
import { Editor, type EditorOptions, type EditorTheme } from "../tui/components/editor.ts";
import { CancellableLoader, Loader } from "../tui/components/loader.ts";
import type { KeybindingsManager } from "../tui/keybindings.ts";
import type { Themed } from "./themed.ts";

interface MessageLike {
  content?: string | { type: string; text?: string }[];
  summary?: string;
}

function textOf(message: string | MessageLike | undefined): string {
  if (message === undefined) return "";
  if (typeof message === "string") return message;
  return message.summary ?? contentText(message.content ?? "");
}

type MessageComponent = new (message?: string | MessageLike, ...rest: unknown[]) => Component;

/** A container that shows the text of the message it was made with. */
function messageContainer(): MessageComponent {
  return class extends Container {
    constructor(message?: string | MessageLike) {
      super();
      const text = textOf(message);
      if (text) this.addChild(new Text(text, 1, 0));
    }

    updateContent(message?: string | MessageLike): void {
      this.clear();
      this.addChild(new Text(textOf(message), 1, 0));
    }

    setExpanded(_expanded: boolean): void {}
  };
}

function messageBox(): MessageComponent {
  return class extends Box {
    constructor(message?: string | MessageLike) {
      super(1, 1);
      const text = textOf(message);
      if (text) this.addChild(new Text(text, 0, 0));
    }

    setExpanded(_expanded: boolean): void {}
  };
}

/** A container of pi's dialogs: it takes any arguments and has no content. */
function emptyContainer(): new (...args: unknown[]) => Component {
  return class extends Container {
    constructor(..._args: unknown[]) {
      super();
    }

    handleInput(_data: string): void {}
    dispose(): void {}
  };
}

class FooterComponent implements Component {
  constructor(..._args: unknown[]) {}
  invalidate(): void {}
  dispose(): void {}
  setAutoCompactEnabled(_enabled: boolean): void {}

  render(_width: number): string[] {
    return [];
  }
}

class ArminComponent implements Component {
  constructor(..._args: unknown[]) {}
  invalidate(): void {}
  dispose(): void {}

  render(_width: number): string[] {
    return [];
  }
}

/** An editor with actions of the application. */
export class CustomEditor extends Editor {
  readonly embedWorkingStatus: boolean;
  actionHandlers = new Map<string, () => void>();
  onEscape?: () => void;
  onCtrlD?: () => void;
  onPasteImage?: () => void;
  onExtensionShortcut?: (data: string) => boolean;
  readonly #keybindings: KeybindingsManager | undefined;

  constructor(
    tui: unknown,
    theme: EditorTheme,
    keybindings?: KeybindingsManager,
    options: EditorOptions & { embedWorkingStatus?: boolean } = {},
  ) {
    super(tui, theme, options);
    this.#keybindings = keybindings;
    this.embedWorkingStatus = options.embedWorkingStatus ?? false;
  }

  onAction(action: string, handler: () => void): void {
    this.actionHandlers.set(action, handler);
  }

  setWorkingStatusIndicator(_indicator: unknown): void {}

  override handleInput(data: string): void {
    if (this.onExtensionShortcut?.(data)) return;
    for (const [action, handler] of this.actionHandlers) {
      if (this.#keybindings?.matches(data, action)) return handler();
    }
    if (data === "\x1b" && this.onEscape) return this.onEscape();
    if (data === "\x04" && this.getText() === "" && this.onCtrlD) return this.onCtrlD();
    super.handleInput(data);
  }
}

/** The components, of which some are styled by the theme where they get none of their own. */
export function componentExports(theme: Theme, themed: Themed): Record<string, unknown> {
  class DynamicBorder implements Component {
    readonly #color: TextStyler;

    constructor(color: TextStyler = (text) => theme.fg("border", text)) {
      this.#color = color;
    }

    invalidate(): void {}

    render(width: number): string[] {
      return [this.#color("─".repeat(Math.max(1, width)))];
    }
  }

  class BorderedLoader extends Container {
    readonly #loader: Loader | CancellableLoader;
    /** The signal of a loader that cannot be cancelled. */
    readonly #never = new AbortController();

    constructor(tui: unknown, own: Theme, message: string, options: { cancellable?: boolean } = {}) {
      super();
      const border = (text: string): string => own.fg("border", text);
      const accent = (text: string): string => own.fg("accent", text);
      const muted = (text: string): string => own.fg("muted", text);
      const cancellable = options.cancellable ?? true;
      this.#loader = new (cancellable ? CancellableLoader : Loader)(tui, accent, muted, message);
      this.addChild(new DynamicBorder(border));
      this.addChild(this.#loader);
      if (cancellable) {
        this.addChild(new Spacer(1));
        this.addChild(new Text(themed.keyHint("tui.select.cancel", "cancel"), 1, 0));
      }
      this.addChild(new Spacer(1));
      this.addChild(new DynamicBorder(border));
    }

    get signal(): AbortSignal {
      return this.#loader instanceof CancellableLoader ? this.#loader.signal : this.#never.signal;
    }

    set onAbort(handler: (() => void) | undefined) {
      if (!(this.#loader instanceof CancellableLoader)) return;
      if (handler) this.#loader.onAbort = handler;
      else delete this.#loader.onAbort;
    }

    handleInput(data: string): void {
      if (this.#loader instanceof CancellableLoader) this.#loader.handleInput(data);
    }

    dispose(): void {
      this.#loader.stop();
    }
  }

  const named: Record<string, unknown> = { ArminComponent, BorderedLoader, CustomEditor, DynamicBorder, FooterComponent };
  for (const name of MESSAGE_CONTAINERS) named[name] = rename(name, messageContainer());
  for (const name of MESSAGE_BOXES) named[name] = rename(name, messageBox());
  for (const name of EMPTY_CONTAINERS) named[name] = rename(name, emptyContainer());
  return named;
}

const MESSAGE_CONTAINERS = ["AssistantMessageComponent", "CustomMessageComponent", "UserMessageComponent"];

const MESSAGE_BOXES = [
  "BranchSummaryMessageComponent",
  "CompactionSummaryMessageComponent",
  "SkillInvocationMessageComponent",
];

const EMPTY_CONTAINERS = [
  "BashExecutionComponent",
  "ExtensionEditorComponent",
  "ExtensionInputComponent",
  "ExtensionSelectorComponent",
  "LoginDialogComponent",
  "ModelSelectorComponent",
  "OAuthSelectorComponent",
  "SessionSelectorComponent",
  "SettingsSelectorComponent",
  "ShowImagesSelectorComponent",
  "ThemeSelectorComponent",
  "ThinkingSelectorComponent",
  "ToolExecutionComponent",
  "TreeSelectorComponent",
  "UserMessageSelectorComponent",
];

function rename<T extends object>(name: string, target: T): T {
  return Object.defineProperty(target, "name", { value: name });
}
