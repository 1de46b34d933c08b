//! Tools that clients provide.
//!
//! A connection has a [`ToolProvider`] in each session that it provides tools for. The tools are on the [`ClientToolRegistry`] of the session's
//! feed, which outlasts the session's stay in memory, and leave with the provider. A call goes to the client as a line of its own
//! among the session's events ([`FeedItem::Addressed`](crate::FeedItem::Addressed)), and what the client answers comes back through
//! [`ClientCalls`], of which a connection has one for all its sessions.

mod calls;
mod check;
mod provider;
mod registry;
mod tool;

pub use self::{calls::ClientCalls, check::check_client_tools, provider::ToolProvider};
pub(crate) use self::{
    check::MAX_TOOLS,
    provider::ProvidingClient,
    registry::ClientToolRegistry,
    tool::{CallLimits, CallableClientTool, ClientToolSpec, Request},
};
