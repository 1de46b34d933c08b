//! `steer` and `abort`: words to a session that works, and its end.

use agentd_protocol::{
    command::{AbortParams, AbortReceipt, AbortScope, LookParams, QueueParams},
    error::ErrorCode,
    session::SessionState,
};
use agentd_translator::{Answer, rpc::quoted};
use serde_json::json;

use super::{
    callers::data,
    state::{Caller, DaemonCall, Effects, Server},
};
use crate::{
    arguments::{AbortArguments, SteerArguments},
    results::of_tool,
};

impl Server {
    pub(super) fn steer(&mut self, caller: Caller, given: SteerArguments, effects: &mut Effects) {
        let SteerArguments { session_id: session, message } = given;
        let call = DaemonCall::SteerLook { caller, session: session.clone(), message };
        self.ask(call, "get_state", Some(&session), &LookParams::default(), effects);
    }

    /// A message to a session that does not work would wait there for a prompt of somebody.
    pub(super) fn steer_looked(
        &mut self,
        caller: Caller,
        session: String,
        message: String,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        match data::<SessionState>(answer) {
            Ok(state) if state.is_streaming => {
                let params = QueueParams { message, ..QueueParams::default() };
                let call = DaemonCall::Steer { caller, session: session.clone() };
                self.ask(call, "steer", Some(&session), &params, effects);
            }
            Ok(_) => self.tool_failed(&caller, &not_working(&session), effects),
            Err(failure) if failure.code == ErrorCode::SessionNotFound => {
                self.tool_failed(&caller, &not_working(&session), effects);
            }
            Err(failure) => self.command_failed(&caller, &failure, effects),
        }
    }

    pub(super) fn steered(
        &mut self,
        caller: &Caller,
        session: &str,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        match answer {
            Ok(_) => self.done(caller, of_tool(&json!({"sessionId": session, "queued": true})), effects),
            Err(failure) => self.command_failed(caller, &failure, effects),
        }
    }

    pub(super) fn abort(&mut self, caller: Caller, given: AbortArguments, effects: &mut Effects) {
        let AbortArguments { session_id: session, scope } = given;
        let params = AbortParams { scope: Some(scope.unwrap_or(AbortScope::Turn)) };
        let call = DaemonCall::Abort { caller, session: session.clone() };
        self.ask(call, "abort", Some(&session), &params, effects);
    }

    pub(super) fn aborted(
        &mut self,
        caller: &Caller,
        session: &str,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        match data::<AbortReceipt>(answer) {
            Ok(AbortReceipt { ended, survives }) => {
                let data =
                    json!({"sessionId": session, "ended": shown(&ended), "survives": shown(&survives)});
                self.done(caller, of_tool(&data), effects);
            }
            Err(failure) if failure.code == ErrorCode::SessionNotFound => {
                self.tool_failed(caller, &not_working(session), effects);
            }
            Err(failure) => self.command_failed(caller, &failure, effects),
        }
    }
}

/// Work for a caller: ids are texts.
fn shown(work: &[agentd_protocol::command::Work]) -> Vec<serde_json::Value> {
    let shown = work.iter().map(|work| {
        let mut shown = json!({"kind": work.kind});
        if let Some(id) = &work.id {
            shown["id"] = id.as_str().map_or_else(|| id.to_string(), str::to_owned).into();
        }
        if let Some(name) = &work.name {
            shown["name"] = name.as_str().into();
        }
        shown
    });
    shown.collect()
}

fn not_working(session: &str) -> String {
    format!(
        "The session \"{}\" does not work on anything now. `prompt` with its sessionId goes on in it, if it exists.",
        quoted(session)
    )
}
