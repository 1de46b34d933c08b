/** `ctx.ui`: dialogs and notices go to the daemon; what needs a terminal does nothing. */
import type { CallOptions } from "../services.ts";
import type { Actor, HostPort } from "./port.ts";

interface DialogOptions {
  signal?: AbortSignal;
  /** Milliseconds. */
  timeout?: number;
}

export type Ui = ReturnType<typeof createUi>;

export function createUi(host: HostPort, actor: Actor) {
  return { ...inertUi(), ...(mode(host) === "rpc" ? remoteUi(host, actor) : absentUi()), theme: host.theme };
}

/** Before there is a session nobody can answer; notices go to the log of extensions. */
export function createStartupUi() {
  const { select, confirm, input } = absentUi();
  return { select, confirm, input, notify: (message: string, _type?: string): void => console.error(message) };
}

function mode(host: HostPort): string {
  return host.mirror.core.mode ?? host.hello.mode;
}

/** The mode `rpc`: a client may show dialogs and notices. */
function remoteUi(host: HostPort, actor: Actor) {
  const notice = (method: string, fields: object) => host.note(actor, "ui", { method, ...fields });

  async function dialog<T>(method: string, params: object, opts: DialogOptions | undefined, fallback: T): Promise<T> {
    const signal = opts?.signal;
    if (signal?.aborted) return fallback;
    const callOptions: CallOptions = {};
    const withdrawn = new Promise<T>((resolve) => {
      if (signal === undefined) return;
      callOptions.signal = signal;
      signal.addEventListener("abort", () => resolve(fallback), { once: true });
    });
    const answered = host.call(actor, method, { ...params, timeout: opts?.timeout }, callOptions).then((value) => (value ?? fallback) as T);
    return Promise.race([answered, withdrawn]);
  }

  return {
    select: (title: string, options: string[], opts?: DialogOptions) =>
      dialog<string | undefined>("ui.select", { title, options }, opts, undefined),
    confirm: (title: string, message: string, opts?: DialogOptions) => dialog<boolean>("ui.confirm", { title, message }, opts, false),
    input: (title: string, placeholder?: string, opts?: DialogOptions) =>
      dialog<string | undefined>("ui.input", { title, placeholder }, opts, undefined),
    editor: (title: string, prefill?: string) => dialog<string | undefined>("ui.editor", { title, prefill }, undefined, undefined),
    notify: (message: string, type?: string) => notice("notify", { message, notifyType: type }),
    setStatus: (key: string, text: string | undefined) => notice("setStatus", { statusKey: key, statusText: text }),
    setTitle: (title: string) => notice("setTitle", { title }),
    setEditorText: (text: string) => notice("setEditorText", { text }),
    pasteToEditor: (text: string) => notice("setEditorText", { text }),
    /** A component factory is dropped. */
    setWidget: (key: string, content: unknown, options?: { placement?: string }) => {
      if (content !== undefined && !Array.isArray(content)) return;
      notice("setWidget", { widgetKey: key, widgetLines: content, widgetPlacement: options?.placement });
    },
    /** Nothing is drawn; the daemon still reports the prompt to handlers of `ui_prompt_start` and `ui_prompt_end`. */
    custom: async (_factory: unknown, _options?: unknown): Promise<undefined> => {
      notice("custom", {});
      return undefined;
    },
    setTheme: (_theme: unknown) => ({ success: false, error: "Theme switching not supported in RPC mode" }),
  };
}

/** The modes `json` and `print`: nobody can answer. */
function absentUi() {
  return {
    select: async (_title: string, _options: string[], _opts?: DialogOptions): Promise<string | undefined> => undefined,
    confirm: async (_title: string, _message: string, _opts?: DialogOptions): Promise<boolean> => false,
    input: async (_title: string, _placeholder?: string, _opts?: DialogOptions): Promise<string | undefined> => undefined,
    editor: async (_title: string, _prefill?: string): Promise<string | undefined> => undefined,
    notify: (_message: string, _type?: string): void => {},
    setStatus: (_key: string, _text: string | undefined): void => {},
    setTitle: (_title: string): void => {},
    setEditorText: (_text: string): void => {},
    pasteToEditor: (_text: string): void => {},
    setWidget: (_key: string, _content: unknown, _options?: { placement?: string }): void => {},
    custom: async (_factory: unknown, _options?: unknown): Promise<undefined> => undefined,
    setTheme: (_theme: unknown) => ({ success: false, error: "UI not available" }),
  };
}

/** What needs a terminal, in every mode. */
function inertUi() {
  return {
    onTerminalInput: (_handler: unknown) => () => {},
    setWorkingMessage: (_message?: string): void => {},
    setWorkingVisible: (_visible: boolean): void => {},
    setWorkingIndicator: (_options?: unknown): void => {},
    setHiddenThinkingLabel: (_label?: string): void => {},
    setFooter: (_factory: unknown): void => {},
    setHeader: (_factory: unknown): void => {},
    addAutocompleteProvider: (_factory: unknown): void => {},
    setEditorComponent: (_factory: unknown): void => {},
    setToolsExpanded: (_expanded: boolean): void => {},
    getEditorText: () => "",
    getEditorComponent: () => undefined,
    getToolsExpanded: () => false,
    getAllThemes: () => [],
    getTheme: (_name: string) => undefined,
  };
}
