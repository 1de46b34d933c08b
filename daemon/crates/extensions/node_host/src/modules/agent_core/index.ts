/** The exports of pi-agent-core. */
import { AgentBase, type AgentOptions } from "./agent.ts";
import { agentLoop, agentLoopContinue, runAgentLoop, runAgentLoopContinue } from "./loop.ts";
import { streamProxy } from "./proxy.ts";
import { runToolCall } from "./tool_calls.ts";
import type { StreamFn } from "./types.ts";

/** `streamSimple` makes the requests of agents and loops that are given no stream function. */
export function createAgentCoreModule(attribution: unknown, streamSimple: StreamFn): Record<string, unknown> {
  let fallback: StreamFn = streamSimple;
  const identity = { attribution };
  const stream = (given: StreamFn | undefined): StreamFn => given ?? fallback;
  type Loop = typeof runAgentLoop;
  type Continue = typeof runAgentLoopContinue;
  return {
    Agent: class Agent extends AgentBase {
      constructor(options: AgentOptions = {}) {
        super(options, (model, context, more) => fallback(model, context, more));
      }
    },
    DEFAULT_AGENT_IDENTITY: identity,
    agentLoop: (...[prompts, context, config, signal, given]: Parameters<typeof agentLoop>) => agentLoop(prompts, context, config, signal, stream(given)),
    agentLoopContinue: (...[context, config, signal, given]: Parameters<typeof agentLoopContinue>) => agentLoopContinue(context, config, signal, stream(given)),
    runAgentLoop: (...[prompts, context, config, emit, signal, given]: Parameters<Loop>) => runAgentLoop(prompts, context, config, emit, signal, stream(given)),
    runAgentLoopContinue: (...[context, config, emit, signal, given]: Parameters<Continue>) => runAgentLoopContinue(context, config, emit, signal, stream(given)),
    runToolCall,
    setDefaultStreamFn: (given: StreamFn | undefined) => {
      fallback = given ?? streamSimple;
    },
    streamProxy,
  };
}
