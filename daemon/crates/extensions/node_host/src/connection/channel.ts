/**
 * Connections within a connection.
 *
 * A channel carries the records of a session whose extensions run in this process beside those of the session that the process is for. Its
 * records stand in `channel` records, in one order with all others.
 */
import { type DaemonRecord, isObject } from "../protocol/records.ts";
import type { HostLink, Sorter } from "./host_link.ts";

/** What takes the records of a channel. */
export interface ChannelHost {
  receive(record: DaemonRecord): void;
  /** Takes a patch of a mirror; false: the record is another one. */
  takePatch(record: DaemonRecord): boolean;
  /** The daemon has closed the channel. */
  closed(): void;
}

/** The channels of one connection. */
export class Channels {
  private next = 1;
  private readonly open = new Map<number, ChannelHost>();

  constructor(
    private readonly link: HostLink,
    /** Takes a patch that is for the connection itself, or for a channel. */
    private readonly takePatch: (record: DaemonRecord) => boolean,
  ) {}

  /** A new channel, whose records go to the host that `host` makes for it. */
  add<H extends ChannelHost>(host: (link: ChannelLink) => H): { channel: number; host: H } {
    const channel = this.next++;
    const made = host(new ChannelLink(channel, this.link, this.takePatch));
    this.open.set(channel, made);
    return { channel, host: made };
  }

  remove(channel: number): void {
    this.open.delete(channel);
  }

  /** Hands on a record of a channel; false: the record is another one. */
  receive(record: DaemonRecord): boolean {
    if (record.type !== "channel" && record.type !== "channel.close") return false;
    const channel = Number(record["channel"]);
    const host = this.open.get(channel);
    if (record.type === "channel.close") {
      this.open.delete(channel);
      host?.closed();
    } else {
      const inner = innerOf(record);
      if (inner !== undefined) host?.receive(inner);
    }
    return true;
  }

  /** Takes a patch of the mirror of a channel; false: the record is another one. */
  takePatchOf(record: DaemonRecord): boolean {
    if (record.type !== "channel") return false;
    const inner = innerOf(record);
    return inner !== undefined && (this.open.get(Number(record["channel"]))?.takePatch(inner) ?? false);
  }
}

/** One channel, as the host in it uses it. */
export class ChannelLink implements HostLink {
  constructor(
    readonly channel: number,
    private readonly link: HostLink,
    private readonly takePatch: (record: DaemonRecord) => boolean,
  ) {}

  send(line: string): void {
    this.link.send(`{"type":"channel","channel":${this.channel},"record":${line}}`);
  }

  wait(timeoutMs: number, sort: Sorter): boolean {
    return this.link.wait(timeoutMs, (record) => {
      const inner = record.type === "channel" && record["channel"] === this.channel ? innerOf(record) : undefined;
      if (inner !== undefined) return sort(inner);
      // Patches are applied in their order, whoever waits.
      return this.takePatch(record) ? "taken" : "later";
    });
  }

  /** The limit is that of the connection. */
  setMaxLineBytes(): void {}
}

function innerOf(record: DaemonRecord): DaemonRecord | undefined {
  const inner = record["record"];
  return isObject(inner) && typeof inner["type"] === "string" ? (inner as DaemonRecord) : undefined;
}
