import { AgentdError } from "./error.js";
import type { PromptOptions } from "./prompt_options.js";
import type { PermissionRule, SessionState } from "./protocol.js";
import type { Run } from "./run.js";
import type { Tool } from "./tools.js";

/** What is needed of the session that answers. */
export interface AnsweringSession {
  prompt(message: string, options: PromptOptions): Run;
  state(): Promise<SessionState>;
  registerTool(tool: Tool): Promise<() => Promise<void>>;
  setRules(rules: PermissionRule[]): Promise<void>;
}

/** The tool by which the model gives its answer; `agentctl prompt --output-schema` calls it so, too. */
const TOOL = "submit_answer";

/** How often the model is asked again. */
const MORE_ATTEMPTS = 2;

const ASK_AGAIN =
  `You have to give your answer by the tool ${TOOL}: call it now, with the answer as its arguments. ` +
  "Text outside of the call is not read.";

/** An answer of a model that fits a JSON Schema. */
export class StructuredAnswer<T> {
  readonly #session: AnsweringSession;
  readonly #parameters: Record<string, unknown>;
  readonly #isArgument: boolean;

  constructor(session: AnsweringSession, schema: Record<string, unknown>) {
    this.#session = session;
    // The arguments of a tool are an object: any other answer is one of them.
    this.#isArgument = schema["type"] !== "object";
    this.#parameters = this.#isArgument ? inAnArgument(schema) : schema;
  }

  async ask(message: string, options: PromptOptions): Promise<T> {
    let answer: { value: T } | undefined;
    const takeBack = await this.#allow();
    try {
      const unregister = await this.#session.registerTool({
        name: TOOL,
        description: "Takes the final answer to the request. Only its arguments are read. Call it once, when the work is done.",
        parameters: this.#parameters,
        guidelines: [`When the work is done, call ${TOOL} with the answer.`],
        execute: (args) => {
          answer = { value: (this.#isArgument ? args["answer"] : args) as T };
          return { content: [{ type: "text", text: "The answer was taken." }], terminate: true };
        },
      });
      try {
        for (let attempt = 0; attempt <= MORE_ATTEMPTS; attempt += 1) {
          const { images: _, ...again } = options;
          await (attempt === 0 ? this.#session.prompt(message, options) : this.#session.prompt(ASK_AGAIN, again)).result();
          if (answer) return answer.value;
        }
      } finally {
        await unregister();
      }
    } finally {
      await takeBack();
    }
    throw new AgentdError("bad_answer", `The model gave no answer that fits the schema, though it was asked ${MORE_ATTEMPTS + 1} times.`, {
      command: "prompt",
    });
  }

  /** Lets the model call the tool where the session has permissions; the function that comes back restores its rules. */
  async #allow(): Promise<() => Promise<void>> {
    const { permissions } = await this.#session.state();
    if (!permissions) return async () => {};
    const before: PermissionRule[] = permissions.sessionRules ?? [];
    const rules: PermissionRule[] = [...before, { tool: TOOL, action: "allow" }];
    await this.#session.setRules(rules);
    return () => this.#session.setRules(before);
  }
}

/** A schema for an object with one field of this schema. Definitions stay at the top, where references look for them. */
function inAnArgument(schema: Record<string, unknown>): Record<string, unknown> {
  const { $schema, $defs, definitions, ...answer } = schema;
  const top = Object.entries({ $schema, $defs, definitions }).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(top),
    type: "object",
    properties: { answer },
    required: ["answer"],
    additionalProperties: false,
  };
}
