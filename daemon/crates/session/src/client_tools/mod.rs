//! Tools that clients provide.
//!
//! A connection is a [`ToolProvider`] in each session that it provides tools for. The tools are in the session's
//! [`ToolRegistry`](crate::tool_registry::ToolRegistry), which outlives the session's stay in memory, and leave with their provider. A call goes to the client
//! as a line of its own among the session's events ([`FeedItem::Addressed`](crate::FeedItem::Addressed)). The client's answer
//! comes back through [`ClientCalls`]: a connection has one for all its sessions.
//!
//! As soon as the connection leaves the session, its tools are unregistered and its calls end. A call opens a request in the connection's
//! [`ClientCalls`] and goes to the actor by a run message; the actor puts it among the events, for that connection alone. It therefore
//! follows `tool_execution_start`, and a request that was given up on the way is never sent. The answer goes from the dispatcher straight
//! to the waiting call.

mod calls;
mod check;
mod eval_executors;
mod host_urls;
mod provider;
mod request_ends;
mod tool;

pub use self::{calls::ClientCalls, check::check_client_tools, provider::ToolProvider};
pub(crate) use self::{
    check::MAX_TOOLS,
    eval_executors::{EvalExecutors, EvalExecutorsLink},
    host_urls::{HostUrls, HostUrlsLink},
    tool::{CallLimits, ClientToolRequest, ProvidedTool, ProvidingClient, RequestRoute},
};
