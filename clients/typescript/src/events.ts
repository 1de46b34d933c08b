import type { Event, InFlight, SessionState } from "./protocol.js";

/**
 * Events of the session were missed and cannot be sent any more: the connection was lost for too long, the daemon was
 * started again, or this client was too slow. It is the library's own event. Read the messages again, if you show them.
 */
export interface ResyncEvent {
  type: "resync";
  sessionId: string;
  /** The state from which the next events go on. */
  state: SessionState;
  /** The answer and the tool calls in progress; absent where there are none. */
  inFlight?: InFlight;
  /** Whether it is another daemon: what was at work in the former one has ended. */
  isOtherDaemon: boolean;
}

/** The connection was lost, or is there again. It is the library's own event. */
export interface ConnectionEvent {
  type: "connection";
  state: "lost" | "restored";
}

/** An event of a session. */
export type SessionEvent = Event | ResyncEvent;

/** Any event of a client: those of all sessions, and of the connection. */
export type ClientEvent = SessionEvent | ConnectionEvent;
