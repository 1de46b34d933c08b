//! Agents that extensions run: their calls about them, and the part of such a session that its extension decides about.

use std::sync::Arc;

use agentd_extensions::{CallResponder, EventKind, HostFailure, SessionCall};
use serde_json::{Value, json};

use super::session_actor::Actor;
use crate::{
    extension_start::SetUp,
    extensions::all_taken,
    open::find_agent_extensions,
    subagents::{AgentRequest, open_agent},
};

impl Actor {
    /// Takes a call about agents. Each is answered by a task.
    pub(super) fn on_agent_call(&mut self, call: SessionCall) {
        let SessionCall { method, params, responder, is_within, command, .. } = call;
        match method.as_str() {
            "agents.open" => {
                self.restore_subagents();
                self.tasks.spawn(open_agent(self.context.subagents.clone(), params, responder));
            }
            "agents.command" => {
                // What a tool or a handler of the run has begun is stopped with the run, as its processes are.
                let is_of_run = is_within && command.is_none();
                let stop = if is_of_run { self.run.stop_token() } else { None };
                let waits = params["wait"] == true;
                let line = params["command"].clone();
                let request = AgentRequest::Command { line, waits, stop, responder };
                self.ask_agent(&params, request);
            }
            "agents.close" => self.ask_agent(&params, AgentRequest::Close(responder)),
            "agents.extensions" => {
                let context = Arc::clone(&self.context);
                self.context.services.tasks.spawn(async move {
                    responder.send(&find_agent_extensions(&context, params).await);
                });
            }
            other => {
                let failure = HostFailure::new("unsupported", format!("agentd knows no call {other}"));
                responder.send(&Err(failure));
            }
        }
    }

    fn ask_agent(&self, params: &Value, request: AgentRequest) {
        let id = params["agent"].as_str().unwrap_or_default();
        if let Some(AgentRequest::Command { responder, .. } | AgentRequest::Close(responder)) =
            self.context.subagents.ask_agent(id, request)
        {
            responder.send(&Err(HostFailure::new("gone", format!("There is no agent {id} any more."))));
        }
    }

    /// `session.begin`: the extension that has opened this session lets its extensions begin.
    pub(super) fn begin_for_extension(&self, params: &Value, responder: CallResponder) {
        let Some(extensions) = self.context.extensions.clone().filter(|_| self.is_of_extension()) else {
            let text = "Only the extension that has opened a session lets its extensions begin.";
            return responder.send(&Err(HostFailure::new("unsupported", text)));
        };
        let mut event =
            json!({"type": "session_start", "reason": params["reason"].as_str().unwrap_or("startup")});
        if let Some(file) = params["previousSessionFile"].as_str() {
            event["previousSessionFile"] = file.into();
        }
        let cwd = self.context.cwd.display().to_string();
        let requests = self.extension_requests.0.clone();
        self.context.services.tasks.spawn(async move {
            extensions.notify(EventKind::SessionStart, &event).await;
            extensions.discover(&cwd, "startup").await;
            all_taken(&requests).await;
            responder.send(&Ok(Value::Null));
        });
    }

    /// `session.fill`: the extension that has opened this session puts its entries into it.
    pub(super) async fn fill_for_extension(&mut self, params: Value) -> Result<Value, HostFailure> {
        if !self.is_of_extension() || self.run.is_active() {
            let text = "Only the extension that has opened a session fills it, before anything works in it.";
            return Err(HostFailure::new("unsupported", text));
        }
        let filling: SetUp =
            serde_json::from_value(params).map_err(|error| HostFailure::new("invalid", error.to_string()))?;
        let filled = self.set_up(filling).await;
        filled.map(|()| Value::Null).map_err(|failure| HostFailure::new("failed", failure.error))
    }

    /// Whether an extension of another session has opened this one.
    pub(super) fn is_of_extension(&self) -> bool {
        self.context.subagents.own().is_some_and(|own| own.of_extension.is_some())
    }
}
