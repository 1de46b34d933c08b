//! Finding a session by its id. The daemon opens sessions by their files: an id alone means one of a certain folder there, or the beginning of
//! another id.

use agentd_protocol::{
    daemon::{ListSessionsParams, OpenSessionParams, SessionList},
    session::SessionState,
};
use agentd_translator::{Answer, rpc::quoted};

use super::{
    callers::data,
    state::{DaemonCall, Effects, Errand, Place, Server},
};

/// How many sessions of a client are remembered. Others are looked for again.
const MAX_PLACES: usize = 256;

/// The sessions of a page of the search: as many as the daemon gives. An id is found in the texts of other sessions, too.
const PAGE: u32 = 1_000;

impl Server {
    /// Looks for a session, and goes on with what it is wanted for.
    pub(super) fn find(&mut self, session: String, errand: Errand, effects: &mut Effects) {
        match self.places.get(&session).cloned() {
            Some(place) => self.go_on(session, place, errand, effects),
            None => self.ask_page(session, errand, None, effects),
        }
    }

    fn ask_page(&mut self, session: String, errand: Errand, cursor: Option<String>, effects: &mut Effects) {
        let params = ListSessionsParams {
            search: Some(session.clone()),
            limit: Some(PAGE),
            cursor,
            ..ListSessionsParams::default()
        };
        self.ask(DaemonCall::Find { session, errand }, "list_sessions", None, &params, effects);
    }

    pub(super) fn found(
        &mut self,
        session: String,
        errand: Errand,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        let list = data::<SessionList>(answer);
        let Some(caller) = errand.caller().cloned() else { return };
        match list {
            Ok(SessionList { sessions, cursor, .. }) => {
                match (sessions.into_iter().find(|listed| listed.id == session), cursor) {
                    (Some(listed), _) => {
                        let place = Place { path: listed.path, cwd: listed.cwd };
                        self.go_on(session, place, errand, effects);
                    }
                    (None, Some(cursor)) => self.ask_page(session, errand, Some(cursor), effects),
                    (None, None) => self.tool_failed(&caller, &unknown_session(&session), effects),
                }
            }
            Err(failure) => self.command_failed(&caller, &failure, effects),
        }
    }

    fn go_on(&mut self, session: String, place: Place, errand: Errand, effects: &mut Effects) {
        match errand {
            Errand::Prompt(opening) => self.open(*opening, Some(place), effects),
            Errand::Read { caller, wanted } => self.open_to_read(caller, session, place, wanted, effects),
        }
    }

    /// The parameters that open a session at a place, with the flags of the command line.
    pub(super) fn opening_at(&self, session: &str, place: Place) -> OpenSessionParams {
        let mut args = self.options.session_args.clone();
        if place.path.is_none() {
            // In memory it is known by its id.
            args.extend(["--session-id".to_owned(), session.to_owned()]);
        }
        OpenSessionParams {
            cwd: place.cwd,
            path: place.path,
            args,
            env: self.options.env.clone(),
            ..OpenSessionParams::default()
        }
    }

    /// Remembers where a session is.
    pub(super) fn remember(&mut self, state: &SessionState) {
        if self.places.len() >= MAX_PLACES {
            self.places.clear();
        }
        let cwd = state.cwd.clone().unwrap_or_default();
        self.places.insert(state.session_id.clone(), Place { path: state.session_file.clone(), cwd });
    }
}

/// Whether a session that was asked for by its id is the one that was opened. Where it was gone, another one began in the place of its file, or under
/// its id.
pub(super) fn is_asked_for(asked: &str, opened: &SessionState) -> bool {
    opened.session_id == asked && (opened.session_file.is_some() || opened.message_count > 0)
}

/// The error for a session that does not exist.
pub(super) fn unknown_session(id: &str) -> String {
    format!("There is no session \"{}\". `list_sessions` lists those that there are.", quoted(id))
}
