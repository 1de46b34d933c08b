//! Introductions: `initialize`, `server/discover`, and ours to the daemon.

use agentd_protocol::daemon::{ClientCapabilities, ClientInfo, HelloParams, PROTOCOL, Role};
use serde_json::{Value, json};

use super::state::{Caller, DaemonCall, Effects, Handshake, Introduced, Server};
use crate::{
    requests::InitializeParams,
    results::{cacheable, server_info},
    tools::INSTRUCTIONS,
    versions::{MODERN, negotiated},
};

/// What this server offers: tools, which never change.
fn capabilities() -> Value {
    json!({"tools": {}})
}

impl Server {
    pub(super) fn initialize(&mut self, caller: &Caller, given: InitializeParams, effects: &mut Effects) {
        let InitializeParams { protocol_version, capabilities: client, client_info } = given;
        let handshake =
            Handshake { version: negotiated(&protocol_version), shows_forms: client.shows_forms() };
        self.handshake = Some(handshake);
        let client = client_info.or(self.introduced.client.clone());
        self.introduce(Introduced { client, takes_questions: handshake.shows_forms }, effects);
        let result = json!({
            "protocolVersion": handshake.version,
            "capabilities": capabilities(),
            "serverInfo": server_info(&self.options.version),
            "instructions": INSTRUCTIONS,
        });
        self.done(caller, result, effects);
    }

    pub(super) fn discover(&self, caller: &Caller, effects: &mut Effects) {
        let result = json!({
            "supportedVersions": [MODERN],
            "capabilities": capabilities(),
            "instructions": INSTRUCTIONS,
        });
        self.done(caller, cacheable(caller.era, result), effects);
    }

    /// Makes sure that questions about calls come to us, where the caller's user can be asked. Once they do, they always do: those of
    /// callers that cannot be asked are answered with a no.
    pub(super) fn take_questions(&mut self, caller: &Caller, effects: &mut Effects) {
        if caller.shows_forms && !self.introduced.takes_questions {
            self.introduce(Introduced { takes_questions: true, ..self.introduced.clone() }, effects);
        }
    }

    fn introduce(&mut self, mut introduced: Introduced, effects: &mut Effects) {
        introduced.takes_questions |= self.introduced.takes_questions;
        if introduced != self.introduced {
            self.introduced = introduced;
            self.say_hello(effects);
        }
    }

    /// Says to the daemon who we are. Other clients of a session see who answers a question.
    pub(super) fn say_hello(&mut self, effects: &mut Effects) {
        let client = match self.introduced.client.clone() {
            Some(client) => ClientInfo { name: client.name, version: client.version },
            None => {
                ClientInfo { name: "agentd mcp serve".into(), version: Some(self.options.version.clone()) }
            }
        };
        // Without `ui`: whether a project is trusted, say, is no question for an agent.
        let capabilities = ClientCapabilities {
            sessions: true,
            permissions: self.introduced.takes_questions,
            agent: true,
            ..ClientCapabilities::default()
        };
        let hello =
            HelloParams { protocol: PROTOCOL, client: Some(client), capabilities, role: Role::Control };
        self.ask(DaemonCall::Hello, "hello", None, &hello, effects);
    }
}
