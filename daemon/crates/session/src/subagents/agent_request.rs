//! What extensions ask of the agents that they run.

use agentd_extensions::CallResponder;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Something that an extension asks of its agent.
pub(crate) enum AgentRequest {
    /// A command, as clients send it.
    Command {
        /// Its line, without `id`.
        line: Value,
        /// Whether it is answered once nothing works for the session.
        waits: bool,
        /// Fires when what it begins is to be stopped.
        stop: Option<CancellationToken>,
        responder: CallResponder,
    },
    /// The end of the session.
    Close(CallResponder),
}
