/**
 * Drives agentd. `Agentd.spawn()` starts an agentd of one's own, `Agentd.connect()` joins the daemon that all clients of the
 * user share.
 */
export { Agentd, type ClientOptions, type ConnectOptions, type OpenOptions, type SpawnOptions } from "./client.js";
export type { Data, Order } from "./calls.js";
export { AgentdError, type AgentdErrorCode, type AgentdErrorDetails } from "./error.js";
export type { EventQueue } from "./event_queue.js";
export type { ClientEvent, ConnectionEvent, ResyncEvent, SessionEvent } from "./events.js";
export { LineSplitter } from "./lines.js";
export type * from "./protocol.js";
export type { PermissionDecision, QuestionContext, QuestionHandlers } from "./questions.js";
export { type RunResult, type RunUsage, textOf } from "./results.js";
export type { Run } from "./run.js";
export type { PromptOptions } from "./prompt_options.js";
export type { Session, SessionOrder } from "./session.js";
export type { ProcessOptions } from "./stdio.js";
export type { SocketOptions } from "./socket.js";
export { socketPath } from "./socket_path.js";
export type { Tool } from "./tools.js";
export type { ToolCall as ToolCallContext } from "./tools.js";
