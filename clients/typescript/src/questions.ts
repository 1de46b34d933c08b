import type { RawOrder } from "./calls.js";
import { AgentdError } from "./error.js";
import type {
  ConfirmExtensionUiRequestEvent,
  EditorExtensionUiRequestEvent,
  ExtensionUiRequest,
  ExtensionUiRequestEvent,
  InputExtensionUiRequestEvent,
  PermissionAnswer,
  PermissionQuestion,
  SelectExtensionUiRequestEvent,
} from "./protocol.js";

/** What a question comes with. */
export interface QuestionContext {
  /** The session that asks. */
  sessionId: string;
  /** Aborted when an answer is not wanted any more: another client was first, the time is over, the run was stopped. */
  signal: AbortSignal;
}

type Maybe<T> = T | undefined | Promise<T | undefined>;

/** The answer to a question about a call; `message` are words to the model, with `deny`. */
export interface PermissionDecision {
  decision: PermissionAnswer;
  message?: string;
}

/**
 * Answers to the questions of sessions. Each handler may be left out: then the question is left to other clients. `undefined` as the
 * answer closes a dialog without an answer, and leaves a question about a call to others or to its time limit.
 */
export interface QuestionHandlers {
  /** Whether a call may run. */
  onPermission?(question: PermissionQuestion, context: QuestionContext): Maybe<PermissionAnswer | PermissionDecision>;
  /** One of several options. */
  onSelect?(question: SelectExtensionUiRequestEvent, context: QuestionContext): Maybe<string>;
  /** Yes or no. */
  onConfirm?(question: ConfirmExtensionUiRequestEvent, context: QuestionContext): Maybe<boolean>;
  /** A line of text. */
  onInput?(question: InputExtensionUiRequestEvent, context: QuestionContext): Maybe<string>;
  /** A longer text. */
  onEditor?(question: EditorExtensionUiRequestEvent, context: QuestionContext): Maybe<string>;
}

/** What questions need of the client. */
export interface QuestionHost {
  call(order: RawOrder): Promise<unknown>;
  /** Sends a line that has no answer; dropped where there is no connection. */
  sendLine(line: object): void;
  report(error: unknown): void;
}

interface OpenQuestion {
  controller: AbortController;
  /** Gives the answer, once there is one. */
  reply?: () => void;
}

/** The questions that are open, and their answers. */
export class Questions {
  readonly #handlers: QuestionHandlers;
  readonly #host: QuestionHost;
  readonly #open = new Map<string, OpenQuestion>();

  constructor(handlers: QuestionHandlers, host: QuestionHost) {
    this.#handlers = handlers;
    this.#host = host;
  }

  /** The capabilities of `hello` that the handlers stand for. */
  get capabilities(): { ui: boolean; permissions: boolean } {
    const { onPermission, onSelect, onConfirm, onInput, onEditor } = this.#handlers;
    return { ui: Boolean(onSelect ?? onConfirm ?? onInput ?? onEditor), permissions: Boolean(onPermission) };
  }

  /** A question, or a notice: those need no answer. After a lost connection the same question can come again. */
  ask(event: ExtensionUiRequestEvent | ExtensionUiRequest, sessionId: string): void {
    const known = this.#open.get(event.id);
    if (known) {
      // The answer may have been lost with the connection.
      known.reply?.();
      return;
    }
    const question = event as ExtensionUiRequestEvent;
    const controller = new AbortController();
    const context = { sessionId, signal: controller.signal };
    const answer = this.#answer(question, context, sessionId);
    if (!answer) return;
    const open: OpenQuestion = { controller };
    this.#open.set(event.id, open);
    answer.then(
      (reply) => {
        if (controller.signal.aborted || !reply) return;
        open.reply = reply;
        reply();
      },
      (error: unknown) => {
        this.#open.delete(event.id);
        if (!controller.signal.aborted) this.#host.report(error);
      },
    );
  }

  /** A question is answered or closed. */
  resolved(id: string, by: string | undefined): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    open?.controller.abort(new AgentdError("aborted", by ? `${by} has answered.` : "The question is closed."));
  }

  /** The client is closed: nobody waits for answers any more. */
  closeAll(error: AgentdError): void {
    for (const { controller } of this.#open.values()) controller.abort(error);
    this.#open.clear();
  }

  /** Asks the handler for the question; nothing where there is none. What comes back sends the answer. */
  #answer(question: ExtensionUiRequestEvent, context: QuestionContext, sessionId: string): Promise<(() => void) | undefined> | undefined {
    const { onPermission, onSelect, onConfirm, onInput, onEditor } = this.#handlers;
    const dialog = async (asked: Maybe<string | boolean>): Promise<() => void> => {
      const value = await asked;
      const answer =
        value === undefined ? { cancelled: true } : typeof value === "boolean" ? { confirmed: value } : { value };
      return () => this.#host.sendLine({ type: "extension_ui_response", id: question.id, sessionId, ...answer });
    };
    const called = <T>(handler: () => Maybe<T>): Promise<T | undefined> => Promise.resolve().then(handler);
    switch (question.method) {
      case "permission":
        if (!onPermission) return undefined;
        return called(() => onPermission.call(this.#handlers, question, context)).then((decided) => {
          if (!decided) return undefined;
          const decision = typeof decided === "string" ? { decision: decided } : decided;
          return () => void this.#decide({ type: "permission_response", requestId: question.id, sessionId, ...decision });
        });
      case "select":
        return onSelect && dialog(called(() => onSelect.call(this.#handlers, question, context)));
      case "confirm":
        return onConfirm && dialog(called(() => onConfirm.call(this.#handlers, question, context)));
      case "input":
        return onInput && dialog(called(() => onInput.call(this.#handlers, question, context)));
      case "editor":
        return onEditor && dialog(called(() => onEditor.call(this.#handlers, question, context)));
      default:
        return undefined;
    }
  }

  async #decide(order: RawOrder): Promise<void> {
    try {
      await this.#host.call(order);
    } catch (error) {
      // Another client was first, or the answer is sent again when the question is listed on the next connection.
      const isOver = error instanceof AgentdError && ["not_found", "connection_lost", "closed"].includes(error.code);
      if (!isOver) this.#host.report(error);
    }
  }
}
