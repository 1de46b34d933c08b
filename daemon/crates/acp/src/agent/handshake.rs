//! `initialize` and `authenticate`.

use agentd_protocol::{
    daemon::{ClientCapabilities, ClientInfo, HelloParams, PROTOCOL, Role},
    model_list::ListModelsParams,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    calls::{Answer, data, done, failed},
    state::{Agent, DaemonCall, Effects},
};
use crate::{
    requests::{AuthenticateParams, InitializeParams, PROTOCOL_VERSION},
    rpc::{AUTH_REQUIRED, RequestId, RpcError, quoted},
};

/// The id of the way to log in.
const LOGIN: &str = "agentd-login";

/// What the user does to get a model.
const HOW_TO_LOG_IN: &str = "Run `agentctl login PROVIDER` in a terminal to give a provider's key, or `agentctl setup local` to use a \
     model server of this machine; `agentctl doctor` says what is missing.";

impl Agent {
    pub(super) fn initialize(&mut self, id: &RequestId, given: InitializeParams, effects: &mut Effects) {
        self.client = given.client_capabilities;
        if let Some(info) = given.client_info {
            // Other clients of a session see who answers a question.
            self.introduce(ClientInfo { name: info.name, version: info.version }, effects);
        }
        let result = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "agentd", "title": "agentd", "version": self.options.version},
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": {
                    "list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}, "additionalDirectories": {},
                },
            },
            "authMethods": [self.login_method()],
        });
        done(id, &result, effects);
    }

    /// The way to log in: in a terminal of the client, where it has one for that, else in one of the user's own.
    fn login_method(&self) -> Value {
        let mut method = json!({"id": LOGIN, "name": "Log in by agentctl", "description": HOW_TO_LOG_IN});
        let in_terminal = "Asks for a provider, and for its key or an account, in a terminal";
        if self.client.auth.terminal {
            // Added to the command line that the client was given.
            method = json!({
                "type": "terminal", "id": LOGIN, "name": "Log in", "description": in_terminal, "args": ["login"],
            });
        }
        if self.client.meta.terminal_auth {
            method["_meta"] = json!({"terminal-auth": {
                "label": "Log in", "command": self.options.program, "args": ["acp", "login"], "env": {},
            }});
        }
        method
    }

    /// Says to the daemon who we are.
    pub(super) fn introduce(&mut self, client: ClientInfo, effects: &mut Effects) {
        let capabilities = ClientCapabilities {
            sessions: true,
            ui: true,
            permissions: true,
            ..ClientCapabilities::default()
        };
        let hello =
            HelloParams { protocol: PROTOCOL, client: Some(client), capabilities, role: Role::Control };
        self.ask(DaemonCall::Hello, "hello", None, &hello, effects);
    }

    /// Looks whether there is a model by now: the user logs in elsewhere.
    pub(super) fn authenticate(
        &mut self,
        id: &RequestId,
        given: &AuthenticateParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        if given.method_id != LOGIN {
            let text =
                format!("Invalid params: methodId: there is no method \"{}\"", quoted(&given.method_id));
            return Err(RpcError::invalid_params(text));
        }
        let call = DaemonCall::UsableModels { request: id.clone() };
        self.ask(call, "list_models", None, &ListModelsParams::default(), effects);
        Ok(())
    }

    pub(super) fn authenticated(&mut self, id: &RequestId, answer: Answer<'_>, effects: &mut Effects) {
        #[derive(Deserialize)]
        struct Usable {
            models: Vec<IgnoredAny>,
        }
        match data::<Usable>(answer) {
            Ok(Usable { models }) if models.is_empty() => failed(id, &not_logged_in(), effects),
            Ok(_) => done(id, &json!({}), effects),
            Err(error) => failed(id, &error, effects),
        }
    }
}

/// The error where no model can be used.
pub(super) fn not_logged_in() -> RpcError {
    RpcError::new(AUTH_REQUIRED, format!("agentd has no model that it can use. {HOW_TO_LOG_IN}"))
}
