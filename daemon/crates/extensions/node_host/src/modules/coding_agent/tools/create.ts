/**
 * The built-in tools as objects that extensions wrap, change and register.
 *
 * Without operations of its own a tool runs in the daemon, with everything that the daemon's tools have. With
 * operations it runs here over them: only functions of the extension can reach what they reach. `grep` always
 * runs in the daemon.
 */
import type { HostServices } from "../../../services.ts";
import { type BashToolOptions, runBash } from "./run_bash.ts";
import { mutationQueue } from "./mutation_queue.ts";
import { resolveToolPath } from "./paths.ts";
import type { OnUpdate, ToolResult } from "./result.ts";
import {
  type EditOperations,
  type FindOperations,
  type LsOperations,
  type ReadOperations,
  runEdit,
  runFind,
  runLs,
  runRead,
  runWrite,
  type WriteOperations,
} from "./run_files.ts";
import { TOOL_SPECS, type ToolName, type ToolSpec } from "./specs.ts";
import { Text } from "../../tui/components/component.ts";

type Params = Record<string, unknown>;
type ToolOptions = { operations?: object } & Record<string, unknown>;

export interface BuiltInTool extends ToolSpec {
  prepareArguments?: (args: unknown) => unknown;
  execute(
    toolCallId: string,
    params: Params,
    signal?: AbortSignal,
    onUpdate?: OnUpdate,
    ctx?: unknown,
  ): Promise<ToolResult>;
  renderCall?: (args: Params) => Text;
  renderResult?: (result: ToolResult) => Text;
}

/** Takes the forms of edits that models write instead of a list. */
function prepareEditArguments(args: unknown): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args;
  const { oldText, newText, ...rest } = args as Params;
  let edits: unknown = rest.edits;
  if (typeof edits === "string") {
    try {
      edits = JSON.parse(edits);
    } catch {
      return args;
    }
  }
  const list: unknown[] = Array.isArray(edits) ? [...edits] : edits === undefined ? [] : [edits];
  if (typeof oldText === "string" && typeof newText === "string") list.push({ oldText, newText });
  return edits === undefined && list.length === 0 ? args : { ...rest, edits: list };
}

/** Options that can be told to the daemon: data. */
function plainOptions(options: ToolOptions): Params {
  return Object.fromEntries(
    Object.entries(options).filter(([name, value]) => name !== "operations" && typeof value !== "function"),
  );
}

function describeCall(name: string, args: Params): Text {
  return new Text(`${name} ${JSON.stringify(args)}`, 0, 0);
}

function describeResult(result: ToolResult): Text {
  return new Text(result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n"), 0, 0);
}

export class BuiltInTools {
  readonly #services: HostServices;

  constructor(services: HostServices) {
    this.#services = services;
  }

  /** A tool definition, as `registerTool` takes it. */
  definition(name: ToolName, cwd: string, options: ToolOptions = {}): BuiltInTool {
    return {
      ...TOOL_SPECS[name],
      ...(name === "edit" ? { prepareArguments: prepareEditArguments } : {}),
      execute: (toolCallId, params, signal, onUpdate) =>
        this.#execute(name, cwd, options, { toolCallId, params, signal, onUpdate }),
      renderCall: (args) => describeCall(name, args),
      renderResult: describeResult,
    };
  }

  /** A tool without what is for drawing. */
  tool(name: ToolName, cwd: string, options: ToolOptions = {}): BuiltInTool {
    const { renderCall: _renderCall, renderResult: _renderResult, ...tool } = this.definition(name, cwd, options);
    return tool;
  }

  async #execute(
    name: ToolName,
    cwd: string,
    options: ToolOptions,
    call: { toolCallId: string; params: Params; signal: AbortSignal | undefined; onUpdate: OnUpdate | undefined },
  ): Promise<ToolResult> {
    const { toolCallId, params, signal, onUpdate } = call;
    const { operations } = options;
    const runsHere = operations !== undefined || options.spawnHook !== undefined || options.shellPath !== undefined;
    const queue = mutationQueue(this.#services);
    if (name === "bash" && runsHere) {
      const bash = params as { command: string; timeout?: number };
      return runBash(cwd, options as BashToolOptions, bash, this.#sessionEnvironment(), signal, onUpdate);
    }
    if (operations === undefined || name === "grep") {
      return this.#inDaemon(name, cwd, options, { toolCallId, params, signal, onUpdate });
    }
    switch (name) {
      case "read":
        return runRead(cwd, operations as ReadOperations, params as never, signal);
      case "write": {
        const path = resolveToolPath(String(params.path), cwd);
        return queue(path, () => runWrite(cwd, operations as WriteOperations, params as never, signal));
      }
      case "edit": {
        const path = resolveToolPath(String(params.path), cwd);
        return queue(path, () => runEdit(cwd, operations as EditOperations, params as never, signal));
      }
      case "ls":
        return runLs(cwd, operations as LsOperations, params, signal);
      default:
        return runFind(cwd, operations as FindOperations, params as never, signal);
    }
  }

  async #inDaemon(
    name: ToolName,
    cwd: string,
    options: ToolOptions,
    call: { toolCallId: string; params: Params; signal: AbortSignal | undefined; onUpdate: OnUpdate | undefined },
  ): Promise<ToolResult> {
    const { toolCallId, params, signal, onUpdate } = call;
    const plain = plainOptions(options);
    const request = { name, cwd, params, toolCallId, ...(Object.keys(plain).length > 0 ? { options: plain } : {}) };
    const onEvent = (event: unknown): void => onUpdate?.(event as ToolResult);
    const callOptions = { ...(signal ? { signal } : {}), ...(onUpdate ? { onEvent } : {}) };
    return (await this.#services.call("tool.builtin", request, callOptions)) as ToolResult;
  }

  /** The variables that commands of the session have. */
  #sessionEnvironment(): Record<string, string> {
    const core = (this.#services.readTopic("core") ?? {}) as {
      sessionId?: string;
      sessionFile?: string | null;
      thinkingLevel?: string;
      model?: { provider: string; id: string } | null;
    };
    return {
      PI_SESSION_ID: core.sessionId ?? this.#services.hello.sessionId,
      ...(core.sessionFile ? { PI_SESSION_FILE: core.sessionFile } : {}),
      ...(core.model ? { PI_PROVIDER: core.model.provider, PI_MODEL: core.model.id } : {}),
      ...(core.thinkingLevel ? { PI_REASONING_LEVEL: core.thinkingLevel } : {}),
    };
  }
}

const CODING: ToolName[] = ["read", "bash", "edit", "write"];
const READ_ONLY: ToolName[] = ["read", "grep", "find", "ls"];
const FACTORY_NAMES: Record<ToolName, string> = {
  read: "Read",
  bash: "Bash",
  edit: "Edit",
  write: "Write",
  grep: "Grep",
  find: "Find",
  ls: "Ls",
};

/** The factories of all tools, by their exported names. */
export function toolFactories(services: HostServices): Record<string, unknown> {
  const tools = new BuiltInTools(services);
  const exports: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(FACTORY_NAMES) as [ToolName, string][]) {
    exports[`create${part}Tool`] = (cwd: string, options?: ToolOptions) => tools.tool(name, cwd, options);
    exports[`create${part}ToolDefinition`] = (cwd: string, options?: ToolOptions) => tools.definition(name, cwd, options);
  }
  const several =
    (names: ToolName[]) =>
    (cwd: string, options: Partial<Record<ToolName, ToolOptions>> = {}): BuiltInTool[] =>
      names.map((name) => tools.tool(name, cwd, options[name]));
  return {
    ...exports,
    createCodingTools: several(CODING),
    createReadOnlyTools: several(READ_ONLY),
    withFileMutationQueue: mutationQueue(services),
  };
}
