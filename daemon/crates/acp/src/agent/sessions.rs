//! `session/list`, `session/close`, `session/delete`.

use agentd_protocol::daemon::{CloseSessionParams, EndMode, ListSessionsParams, SessionList, SessionParams};
use serde::Serialize;
use serde_json::json;

use super::{
    calls::{Answer, data, done, failed, rpc_error},
    state::{Agent, DaemonCall, Effects},
};
use crate::{
    requests::{ListParams, SessionParams as Named},
    rpc::{RESOURCE_NOT_FOUND, RequestId, RpcError},
    tool_calls::shortened,
};

/// A stored session.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    session_id: String,
    cwd: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_directories: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    updated_at: String,
}

/// The answer to `session/list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    sessions: Vec<Listed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Agent {
    pub(super) fn list_sessions(&mut self, id: &RequestId, given: ListParams, effects: &mut Effects) {
        let ListParams { cwd, cursor } = given;
        let params = ListSessionsParams { cwd, cursor, ..ListSessionsParams::default() };
        self.ask(DaemonCall::List { request: id.clone() }, "list_sessions", None, &params, effects);
    }

    pub(super) fn listed(&mut self, id: &RequestId, answer: Answer<'_>, effects: &mut Effects) {
        let SessionList { sessions, cursor, .. } = match data(answer) {
            Ok(list) => list,
            Err(error) => return failed(id, &error, effects),
        };
        let sessions = sessions.into_iter().map(|session| Listed {
            title: session.name.or(Some(shortened(&session.first_message))).filter(|title| !title.is_empty()),
            // They are not stored: a session has them while it is open.
            additional_directories: self
                .sessions
                .get(&session.id)
                .map(|open| open.additional_directories.clone())
                .unwrap_or_default(),
            session_id: session.id,
            cwd: session.cwd,
            updated_at: session.modified,
        });
        done(id, &List { sessions: sessions.collect(), next_cursor: cursor }, effects);
    }

    /// Closes a session: what runs in it is cancelled first. One that other clients may have goes on without us.
    pub(super) fn close_session(
        &mut self,
        id: &RequestId,
        given: &Named,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        self.session(&given.session_id)?;
        self.cancel(&given.session_id, effects);
        self.close(&given.session_id, id.clone(), false, effects);
        Ok(())
    }

    pub(super) fn delete_session(&mut self, id: &RequestId, given: &Named, effects: &mut Effects) {
        let session = &given.session_id;
        if self.sessions.contains_key(session) {
            self.cancel(session, effects);
            return self.close(session, id.clone(), true, effects);
        }
        self.delete(session, id.clone(), effects);
    }

    fn delete(&mut self, session: &str, request: RequestId, effects: &mut Effects) {
        let params = SessionParams { session_id: session.to_owned() };
        self.ask(DaemonCall::Delete { request }, "delete_session", None, &params, effects);
    }

    /// The session does not exist any more: nothing was there, or it is deleted now.
    pub(super) fn deleted(&mut self, id: &RequestId, answer: Answer<'_>, effects: &mut Effects) {
        match answer.map_err(|failure| rpc_error(&failure)) {
            Ok(_) => done(id, &json!({}), effects),
            Err(error) if error.is(RESOURCE_NOT_FOUND) => done(id, &json!({}), effects),
            Err(error) => failed(id, &error, effects),
        }
    }

    /// Leaves a session that the editor does not get, and refuses its request after that: the next one finds the session closed.
    pub(super) fn refuse_opened(
        &mut self,
        session: &str,
        request: RequestId,
        error: RpcError,
        effects: &mut Effects,
    ) {
        self.leave(session, DaemonCall::Refuse { request, error }, false, effects);
    }

    fn close(&mut self, session: &str, request: RequestId, delete: bool, effects: &mut Effects) {
        let call = DaemonCall::Close { session: session.to_owned(), request, delete };
        self.leave(session, call, delete, effects);
    }

    fn leave(&mut self, session: &str, call: DaemonCall, delete: bool, effects: &mut Effects) {
        // Only a session that is closed can be deleted.
        if self.options.shared && !delete {
            let params = SessionParams { session_id: session.to_owned() };
            self.ask(call, "detach_session", None, &params, effects);
        } else {
            let params = CloseSessionParams { session_id: session.to_owned(), mode: EndMode::Abort };
            self.ask(call, "close_session", None, &params, effects);
        }
    }

    pub(super) fn closed(
        &mut self,
        session: &str,
        request: RequestId,
        delete: bool,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        match answer {
            Ok(_) => {
                self.forget(session, effects);
                if delete {
                    self.delete(session, request, effects)
                } else {
                    done(&request, &json!({}), effects)
                }
            }
            Err(failure) => failed(&request, &rpc_error(&failure), effects),
        }
    }

    /// The session is gone: whatever the editor waits for in it ends as cancelled.
    pub(super) fn forget(&mut self, id: &str, effects: &mut Effects) {
        let Some(mut session) = self.sessions.remove(id) else { return };
        let cancelled = json!({"stopReason": "cancelled"});
        if let Some(turn) = session.turn.take() {
            done(&turn.request, &cancelled, effects);
        }
        for (request, _) in session.waiting.drain(..) {
            done(&request, &cancelled, effects);
        }
        if let Some(opening) = session.opening.take() {
            failed(&opening.request, &super::calls::unknown_session(id), effects);
        }
        self.give_up_editor(Some(id), "the session is closed", effects);
        self.client_calls.retain(|_, call| call.session() != id || call.question().is_none());
    }
}
