//! The tools that a connection provides for sessions, and the calls of them that its client works on.

use agentd_protocol::{client_tools::ClientTool, frame::FieldError, host_uris::HostUriScheme};
use agentd_session::ClientCalls;
use serde::Deserialize;

/// The tools that a connection provides.
#[derive(Default)]
pub(super) struct ProvidedTools {
    /// The calls that the client works on, in all its sessions.
    pub(super) calls: ClientCalls,
    /// The tools for every session that the connection follows.
    pub(super) for_every_session: Vec<ClientTool>,
    /// The schemes of URLs that it serves in every session that it follows.
    pub(super) schemes: Vec<HostUriScheme>,
    /// The languages whose cells it runs in every session that it follows.
    pub(super) languages: Vec<String>,
}

impl ProvidedTools {
    /// Ends the call whose `tool_response` could not be read, if at least its request id could.
    pub(super) fn unreadable(&self, line: &str, error: &FieldError) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Request {
            request_id: String,
        }
        if let Ok(Request { request_id }) = agentd_protocol::parse_json(line) {
            self.calls.unreadable(&request_id, &error.to_string());
        }
    }

    /// Keeps tools for every session, replacing those of the same names.
    pub(super) fn keep(&mut self, tools: Vec<ClientTool>) {
        for tool in tools {
            match self.for_every_session.iter_mut().find(|other| other.name == tool.name) {
                Some(other) => *other = tool,
                None => self.for_every_session.push(tool),
            }
        }
    }
}
