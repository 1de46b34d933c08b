//! `read_session` and `list_sessions`.

use agentd_protocol::{
    command::{Entries, GetEntriesParams},
    daemon::{ListSessionsParams, OpenSessionParams, OpenedSession, SessionList},
    error::ErrorCode,
};
use agentd_translator::{Answer, shortened};
use serde_json::{Value, json};

use super::{
    callers::data,
    finding::{is_asked_for, unknown_session},
    state::{Caller, DaemonCall, Effects, Errand, Place, Server},
};
use crate::{
    arguments::{ListArguments, ReadArguments},
    results::of_tool,
    transcript::{Wanted, page},
};

impl Server {
    pub(super) fn read_session(&mut self, caller: Caller, given: ReadArguments, effects: &mut Effects) {
        let ReadArguments { session_id, cursor, last, limit } = given;
        self.ask_entries(caller, session_id, Wanted { cursor, last, limit }, true, effects);
    }

    fn ask_entries(
        &mut self,
        caller: Caller,
        session: String,
        wanted: Wanted,
        may_open: bool,
        effects: &mut Effects,
    ) {
        let call = DaemonCall::Entries { caller, session: session.clone(), wanted, may_open };
        self.ask(call, "get_entries", Some(&session), &GetEntriesParams::default(), effects);
    }

    pub(super) fn entries_known(
        &mut self,
        caller: Caller,
        session: String,
        wanted: Wanted,
        may_open: bool,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        match data::<Entries>(answer) {
            Ok(entries) => match page(&session, &entries, &wanted) {
                Ok(page) => self.done(&caller, of_tool(&page), effects),
                Err(text) => self.tool_failed(&caller, &text, effects),
            },
            // It is stored, perhaps.
            Err(failure) if failure.code == ErrorCode::SessionNotFound && may_open => {
                self.find(session, Errand::Read { caller, wanted }, effects);
            }
            Err(failure) => self.command_failed(&caller, &failure, effects),
        }
    }

    /// Opens a session without following it.
    pub(super) fn open_to_read(
        &mut self,
        caller: Caller,
        session: String,
        place: Place,
        wanted: Wanted,
        effects: &mut Effects,
    ) {
        let params = OpenSessionParams { attach: Some(false), ..self.opening_at(&session, place) };
        let call = DaemonCall::OpenToRead { caller, session, wanted };
        self.ask(call, "open_session", None, &params, effects);
    }

    pub(super) fn opened_to_read(
        &mut self,
        caller: Caller,
        session: String,
        wanted: Wanted,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        match data::<OpenedSession>(answer) {
            Ok(opened) if is_asked_for(&session, &opened.state) => {
                self.ask_entries(caller, session, wanted, false, effects);
            }
            Ok(_) => self.tool_failed(&caller, &unknown_session(&session), effects),
            Err(failure) => self.command_failed(&caller, &failure, effects),
        }
    }

    pub(super) fn list_sessions(&mut self, caller: Caller, given: ListArguments, effects: &mut Effects) {
        let limit = Some(given.page());
        let ListArguments { cwd, search, cursor, .. } = given;
        let params = ListSessionsParams { cwd, search, cursor, limit, ..ListSessionsParams::default() };
        self.ask(DaemonCall::List { caller }, "list_sessions", None, &params, effects);
    }

    pub(super) fn listed(&mut self, caller: &Caller, answer: Answer<'_>, effects: &mut Effects) {
        let SessionList { sessions, cursor, .. } = match data(answer) {
            Ok(list) => list,
            Err(failure) => return self.command_failed(caller, &failure, effects),
        };
        let sessions = sessions.into_iter().map(|session| {
            let mut shown = json!({
                "sessionId": session.id,
                "cwd": session.cwd,
                "firstMessage": shortened(&session.first_message),
                "modified": session.modified,
                "messages": session.message_count,
                "costUsd": session.cost,
                "isWorking": session.is_streaming,
            });
            if let Some(name) = session.name {
                shown["name"] = name.into();
            }
            if let Some(model) = session.model {
                shown["model"] = model.into();
            }
            shown
        });
        let mut list = json!({"sessions": sessions.collect::<Vec<Value>>()});
        if let Some(cursor) = cursor {
            list["nextCursor"] = cursor.into();
        }
        self.done(caller, of_tool(&list), effects);
    }
}
