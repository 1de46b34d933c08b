//! The MCP server for the relay, with the clock that it does not have itself.

use std::collections::VecDeque;

use agentd_mcp_server::{Effects, Server, ServerOptions};
use agentd_protocol::error::Failure;
use tokio::time::{Instant, sleep_until};

use super::super::relay::Translator;
use crate::limits::MCP_HEARTBEAT;

/// The server, and the time of its next sign of life.
pub(super) struct McpTranslator {
    server: Server,
    effects: Effects,
    heartbeat: Option<Instant>,
}

/// It is time to tell the client that its calls are worked on.
pub(super) struct Heartbeat;

impl McpTranslator {
    /// A server that begins to speak to the daemon.
    pub(super) fn new(options: ServerOptions) -> Self {
        let mut effects = Effects::default();
        let server = Server::start(options, &mut effects);
        Self { server, effects, heartbeat: None }
    }
}

impl Translator for McpTranslator {
    type News = Heartbeat;

    fn host_line(&mut self, line: &str) {
        self.server.client_line(line, &mut self.effects);
    }

    fn line_too_long(&mut self, limit: usize) {
        self.server.line_too_long(limit, &mut self.effects);
    }

    fn line_refused(&mut self, failure: &Failure) {
        self.server.line_refused(failure, &mut self.effects);
    }

    fn daemon_line(&mut self, line: &str) {
        self.server.daemon_line(line, &mut self.effects);
    }

    fn host_gone(&mut self) {
        self.server.client_gone(&mut self.effects);
    }

    fn daemon_gone(&mut self) {
        self.server.daemon_gone(&mut self.effects);
    }

    fn is_idle(&self) -> bool {
        self.server.is_idle()
    }

    fn to_host(&mut self) -> &mut Vec<u8> {
        &mut self.effects.to_client
    }

    fn to_daemon(&mut self) -> &mut VecDeque<String> {
        &mut self.effects.to_daemon
    }

    fn unusable(&mut self) -> Option<String> {
        self.effects.unusable.take()
    }

    fn start_work(&mut self) {
        self.heartbeat = match self.heartbeat {
            _ if !self.server.wants_heartbeat() => None,
            None => Some(Instant::now() + MCP_HEARTBEAT),
            waiting => waiting,
        };
    }

    async fn news(&mut self) -> Heartbeat {
        match self.heartbeat {
            Some(time) => sleep_until(time).await,
            None => std::future::pending().await,
        }
        Heartbeat
    }

    fn take_news(&mut self, Heartbeat: Heartbeat) {
        self.heartbeat = None;
        self.server.heartbeat(&mut self.effects);
    }
}
