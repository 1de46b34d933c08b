//! The agents above and beside a subagent, which its own session does not know.

use agentd_protocol::subagent::SubagentSnapshot;
use futures::future::BoxFuture;

/// The id of the user's session among agents.
pub(crate) const MAIN_AGENT: &str = "main";

/// What a message came to: a sentence for the model that sent it, either way.
pub(crate) type Sent = BoxFuture<'static, Result<String, String>>;

/// The session that a subagent works for, and the subagents of that.
pub(crate) trait ParentAgents: Send + Sync {
    /// The id of that session's own agent.
    fn id(&self) -> String;

    /// The subagents of that session, this one included; none while it is not in memory.
    fn list(&self) -> Vec<SubagentSnapshot>;

    /// Sends a message to that session.
    fn send_up(&self, from: &str, text: &str) -> Sent;

    /// Sends a message to one of its subagents, which `list` has. One that has ended goes on with it if `revives`.
    fn send_beside(&self, to: &str, from: &str, text: &str, revives: bool) -> Sent;
}
