/** The exports of pi-agent-core. The loop of an agent runs in the daemon. */
import { unavailableAll } from "../unavailable.ts";

export const AGENT_CORE_PACKAGE = "@earendil-works/pi-agent-core";

const UNAVAILABLE = [
  "Agent",
  "agentLoop",
  "agentLoopContinue",
  "runAgentLoop",
  "runAgentLoopContinue",
  "runToolCall",
  "streamProxy",
];

export function createAgentCoreModule(attribution: unknown): Record<string, unknown> {
  return {
    ...unavailableAll(AGENT_CORE_PACKAGE, UNAVAILABLE),
    DEFAULT_AGENT_IDENTITY: { attribution },
    // It would serve loops that cannot be made here.
    setDefaultStreamFn: () => undefined,
  };
}
