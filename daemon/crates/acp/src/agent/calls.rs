//! Lines in, and lines to both sides: who gets a request, an answer or an event.

use agentd_protocol::{
    daemon::ClientInfo,
    error::{ErrorCode, Failure},
};
use agentd_translator::{DaemonCalls, DaemonLine, with_hint};
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::state::{Agent, AgentOptions, DaemonCall, Effects, Session};
use crate::{
    requests::CancelRequestParams,
    rpc::{
        AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, Incoming, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND,
        RequestId, RpcError, params, parse, quoted, write_error, write_result,
    },
    updates::{Update, write_update},
};

/// The data of a response, or why there is none.
pub(super) use agentd_translator::Answer;

impl Agent {
    /// An agent that begins to speak to the daemon.
    #[must_use]
    pub fn start(options: AgentOptions, effects: &mut Effects) -> Self {
        let client = ClientInfo { name: "agentd acp".into(), version: Some(options.version.clone()) };
        let mut agent = Self {
            options,
            client: crate::requests::ClientCapabilities::default(),
            sessions: std::collections::HashMap::new(),
            daemon_calls: DaemonCalls::default(),
            client_calls: std::collections::HashMap::new(),
            last_client_call: 0,
        };
        agent.introduce(client, effects);
        agent
    }

    /// Takes a line of the editor.
    pub fn client_line(&mut self, line: &str, effects: &mut Effects) {
        match parse(line) {
            Ok(Incoming::Request { id, method, params }) => {
                if let Err(error) = self.request(&id, &method, params, effects) {
                    write_error(Some(&id), &error, &mut effects.to_client);
                }
            }
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params, effects),
            Ok(Incoming::Response { id, result }) => {
                if let Some(call) = self.client_calls.remove(&id) {
                    self.answered(call, &result, effects);
                }
            }
            Ok(Incoming::Stray) => {}
            Err((id, error)) => write_error(id.as_ref(), &error, &mut effects.to_client),
        }
    }

    /// Takes the news that the editor's line was not kept: it was longer than `limit` bytes.
    pub fn line_too_long(&mut self, limit: usize, effects: &mut Effects) {
        let text = format!("Invalid request: the line is longer than the limit of {limit} bytes");
        write_error(None, &RpcError::new(crate::rpc::INVALID_REQUEST, text), &mut effects.to_client);
    }

    /// Takes the news that the editor's line was not kept, and why.
    pub fn line_refused(&mut self, failure: &Failure, effects: &mut Effects) {
        let error = RpcError::new(crate::rpc::INVALID_REQUEST, with_hint(failure));
        write_error(None, &error, &mut effects.to_client);
    }

    /// Begins a request; what is answered later is kept with its id.
    fn request(
        &mut self,
        id: &RequestId,
        method: &str,
        given: Option<&RawValue>,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        match method {
            "initialize" => self.initialize(id, params(given)?, effects),
            "authenticate" => self.authenticate(id, &params(given)?, effects)?,
            "session/new" => self.new_session(id, params(given)?, effects)?,
            "session/load" => self.load_session(id, params(given)?, effects)?,
            "session/resume" => self.resume_session(id, params(given)?, effects)?,
            "session/fork" => self.fork_session(id, params(given)?, effects)?,
            "session/list" => self.list_sessions(id, params(given)?, effects),
            "session/close" => self.close_session(id, &params(given)?, effects)?,
            "session/delete" => self.delete_session(id, &params(given)?, effects),
            "session/prompt" => self.prompt(id, params(given)?, effects)?,
            "session/set_mode" => self.set_mode(id, params(given)?, effects)?,
            "session/set_config_option" => self.set_option(id, params(given)?, effects)?,
            other => {
                let text = format!("Method not found: {}", quoted(other));
                return Err(RpcError::new(METHOD_NOT_FOUND, text));
            }
        }
        Ok(())
    }

    /// Takes a notification. One that is not known or cannot be read has no effect, as JSON-RPC says.
    fn notification(&mut self, method: &str, given: Option<&RawValue>, effects: &mut Effects) {
        match method {
            "session/cancel" => {
                if let Ok(params) = params::<crate::requests::SessionParams>(given) {
                    self.cancel(&params.session_id, effects);
                }
            }
            "$/cancel_request" => {
                if let Ok(params) = params::<CancelRequestParams>(given) {
                    self.cancel_request(params.request_id.get(), effects);
                }
            }
            _ => {}
        }
    }

    /// Takes a line of the daemon.
    pub fn daemon_line(&mut self, line: &str, effects: &mut Effects) {
        match self.daemon_calls.read(line) {
            DaemonLine::Event { session, kind, seq } => self.event(&session, kind, seq, line, effects),
            DaemonLine::Answer(call, answer) => self.replied(call, answer, effects),
            DaemonLine::Unusable(reason) => effects.unusable = Some(reason),
            DaemonLine::Other => {}
        }
    }

    fn replied(&mut self, call: DaemonCall, answer: Answer<'_>, effects: &mut Effects) {
        match call {
            DaemonCall::Hello => {
                if let Err(failure) = answer {
                    effects.unusable = Some(with_hint(&failure));
                }
            }
            DaemonCall::Quiet => {}
            DaemonCall::Open(open) => self.opened(*open, answer, effects),
            DaemonCall::Models { session } => self.models_known(&session, answer, effects),
            DaemonCall::Levels { session, then } => self.levels_known(&session, then, answer, effects),
            DaemonCall::Commands { session } => self.commands_known(&session, answer, effects),
            DaemonCall::Tools { session } => self.tools_known(&session, answer, effects),
            DaemonCall::Entries { session } => self.entries_known(&session, answer, effects),
            DaemonCall::AtWork { session } => self.work_known(&session, answer, effects),
            DaemonCall::Stats { session, ends_turn } => {
                self.stats_known(&session, answer, effects);
                if ends_turn {
                    self.end_turn(&session, effects);
                }
            }
            DaemonCall::Prompt { session } => self.prompt_taken(&session, answer, effects),
            DaemonCall::Close { session, request, delete } => {
                self.closed(&session, request, delete, answer, effects);
            }
            // However that ended: the session is not the editor's.
            DaemonCall::Refuse { request, error } => failed(&request, &error, effects),
            DaemonCall::Delete { request } => self.deleted(&request, answer, effects),
            DaemonCall::List { request } => self.listed(&request, answer, effects),
            DaemonCall::SetMode { session, request, is_option, wanted } => {
                self.mode_set(&session, &request, is_option, &wanted, answer, effects);
            }
            DaemonCall::SetPlan { session, request, is_option, then } => {
                self.plan_set(&session, &request, is_option, then, answer, effects);
            }
            DaemonCall::SetModel { session, request } => self.model_set(&session, request, answer, effects),
            DaemonCall::SetLevel { session, request } => self.level_set(&session, &request, answer, effects),
            DaemonCall::Reattach { session } => self.reattached(&session, answer, effects),
            DaemonCall::Join { session, has_history } => {
                self.joined(&session, has_history, answer, effects);
            }
            DaemonCall::UsableModels { request } => self.authenticated(&request, answer, effects),
        }
    }

    /// Sends a command to the daemon.
    pub(super) fn ask(
        &mut self,
        call: DaemonCall,
        command: &str,
        session: Option<&str>,
        params: &impl Serialize,
        effects: &mut Effects,
    ) {
        self.daemon_calls.ask(call, command, session, params, &mut effects.to_daemon);
    }

    /// The session of a request.
    pub(super) fn session(&mut self, id: &str) -> Result<&mut Session, RpcError> {
        self.sessions.get_mut(id).ok_or_else(|| unknown_session(id))
    }

    /// The editor has left. Prompts end, but for those of a shared daemon, whose sessions go on.
    pub fn client_gone(&mut self, effects: &mut Effects) {
        self.client = crate::requests::ClientCapabilities::default();
        self.give_up_editor(None, "it has left", effects);
        if self.options.shared {
            return;
        }
        let sessions: Vec<String> = self.sessions.keys().cloned().collect();
        for session in sessions {
            self.cancel(&session, effects);
        }
    }

    /// Whether the daemon has answered everything, and no prompt is worked on that ends with the editor.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let has_turn = || self.sessions.values().any(|session| session.turn.is_some());
        self.daemon_calls.is_empty() && (self.options.shared || !has_turn())
    }

    /// Ends everything that the editor waits for: the daemon is gone.
    pub fn daemon_gone(&mut self, effects: &mut Effects) {
        let error = RpcError::new(INTERNAL_ERROR, "The connection to agentd is lost");
        let mut fail = |request: &RequestId| write_error(Some(request), &error, &mut effects.to_client);
        for session in self.sessions.values() {
            session.opening.iter().for_each(|opening| fail(&opening.request));
            session.turn.iter().for_each(|turn| fail(&turn.request));
            session.waiting.iter().for_each(|(request, _)| fail(request));
        }
        for call in self.daemon_calls.iter() {
            match call {
                DaemonCall::Open(open) => fail(&open.request),
                DaemonCall::Levels { then: Some(request), .. }
                | DaemonCall::Close { request, .. }
                | DaemonCall::Refuse { request, .. }
                | DaemonCall::Delete { request }
                | DaemonCall::List { request }
                | DaemonCall::SetMode { request, .. }
                | DaemonCall::SetModel { request, .. }
                | DaemonCall::SetLevel { request, .. }
                | DaemonCall::UsableModels { request } => fail(request),
                _ => {}
            }
        }
        self.sessions.clear();
        self.daemon_calls = DaemonCalls::default();
    }
}

/// Answers a request.
pub(super) fn done(request: &RequestId, result: &impl Serialize, effects: &mut Effects) {
    write_result(request, result, &mut effects.to_client);
}

/// Answers a request with an error.
pub(super) fn failed(request: &RequestId, error: &RpcError, effects: &mut Effects) {
    write_error(Some(request), error, &mut effects.to_client);
}

/// Sends an update.
pub(super) fn tell(session: &str, update: &Update, effects: &mut Effects) {
    write_update(session, update, &mut effects.to_client);
}

/// The error for a session that the editor has not opened, or that does not exist.
pub(super) fn unknown_session(id: &str) -> RpcError {
    let text = format!("There is no session \"{}\"", quoted(id));
    RpcError::new(RESOURCE_NOT_FOUND, text)
        .data(json!({"hint": "session/new makes one, session/load opens a stored one"}))
}

/// A failure of the daemon in the words of JSON-RPC.
pub(super) fn rpc_error(failure: &Failure) -> RpcError {
    let code = match failure.code {
        ErrorCode::SessionNotFound => RESOURCE_NOT_FOUND,
        ErrorCode::NoModel | ErrorCode::NoCredentials => AUTH_REQUIRED,
        ErrorCode::InvalidField => INVALID_PARAMS,
        _ => INTERNAL_ERROR,
    };
    RpcError::new(code, with_hint(failure)).data(json!({"code": failure.code}))
}

/// Reads the data of a response.
pub(super) fn data<T: serde::de::DeserializeOwned>(answer: Answer<'_>) -> Result<T, RpcError> {
    let data = answer.map_err(|failure| rpc_error(&failure))?;
    serde_json::from_str(data.map_or("null", RawValue::get))
        .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("agentd's answer cannot be read: {error}")))
}
