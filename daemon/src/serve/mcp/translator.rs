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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A translator whose client waits for a prompt, and hears of its progress.
    fn at_work() -> McpTranslator {
        let mut translator = McpTranslator::new(ServerOptions::default());
        translator.host_line(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        );
        translator.host_line(
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"prompt","arguments":{"prompt":"a"},"_meta":{"progressToken":"t"}}}"#,
        );
        let open = translator.to_daemon().iter().find(|line| line.contains("open_session")).unwrap().clone();
        let id = serde_json::from_str::<serde_json::Value>(&open).unwrap()["id"].clone();
        translator.daemon_line(&format!(
            r#"{{"id":{id},"type":"response","command":"open_session","success":true,"data":{{"model":{{"id":"m","name":"M","api":"a","provider":"p"}},"thinkingLevel":"off","isStreaming":false,"isCompacting":false,"steeringMode":"all","followUpMode":"all","sessionId":"s","cwd":"/p","autoCompactionEnabled":true,"messageCount":0,"pendingMessageCount":0,"epoch":"e","seq":0}}}}"#
        ));
        translator.to_host().clear();
        translator
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_hears_of_work_that_takes_long() {
        let mut translator = at_work();
        for number in 1..3 {
            let before = Instant::now();
            translator.start_work();
            // Lines that come meanwhile do not put it off.
            translator.start_work();
            let news = translator.news().await;
            assert!(before.elapsed() >= MCP_HEARTBEAT && before.elapsed() < MCP_HEARTBEAT * 2);
            translator.take_news(news);
            let told = String::from_utf8(std::mem::take(translator.to_host())).unwrap();
            assert!(told.contains(&format!(r#""progressToken":"t","progress":{number},"#)), "{told}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_anything_where_nothing_is_worked_on() {
        let mut translator = McpTranslator::new(ServerOptions::default());
        translator.start_work();
        assert!(tokio::time::timeout(Duration::from_secs(3600), translator.news()).await.is_err());
    }
}
