//! Tools that clients provide.
//!
//! A connection has a [`ToolSeat`] in each session that it provides tools for. The tools are on the [`ToolBoard`] of the session's
//! feed, which outlasts the session's stay in memory, and leave with the seat. A call goes to the client as a line of its own
//! among the session's events ([`Item::Addressed`](crate::Item::Addressed)), and what the client answers comes back through
//! [`ClientCalls`], of which a connection has one for all its sessions.

mod board;
mod calls;
mod check;
mod seat;
mod tool;

pub(crate) use self::{
    board::ToolBoard,
    check::MAX_TOOLS,
    seat::Seat,
    tool::{CallLimits, Provided, RemoteTool, Request},
};
pub use self::{calls::ClientCalls, check::check_client_tools, seat::ToolSeat};
