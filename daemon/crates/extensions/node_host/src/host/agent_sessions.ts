/** The sessions that extensions of a host have opened: who hears of each. */
import type { DaemonRecord } from "../protocol/records.ts";
import { isObject } from "../protocol/records.ts";
import type { AgentHost, AgentListener, AgentPlace } from "../services.ts";
import type { Host } from "./host.ts";

export class AgentSessions {
  private readonly listeners = new Map<string, AgentListener>();

  constructor(private readonly host: Host) {}

  create(place: AgentPlace): AgentHost {
    return this.host.factories.createAgentHost(this.host, place);
  }

  listen(agent: string, listener: AgentListener): void {
    this.listeners.set(agent, listener);
  }

  /** Takes a note about a session; false: the record is another one. */
  receive(record: DaemonRecord): boolean {
    const agent = String(record["agent"]);
    switch (record.type) {
      case "agents.event":
        if (isObject(record["event"])) this.listeners.get(agent)?.onEvent(record["event"]);
        return true;
      case "agents.lagged":
        this.listeners.get(agent)?.onLagged();
        return true;
      case "agents.ended": {
        const listener = this.listeners.get(agent);
        this.listeners.delete(agent);
        listener?.onEnded(String(record["reason"] ?? "it has ended"));
        return true;
      }
      default:
        return false;
    }
  }
}
