//! Finds the session that an id, or the beginning of an id, stands for.

use agentd_protocol::daemon::{ListSessionsParams, SessionInfo, SessionList};
use jiff::Timestamp;

use super::daemon_call;
use crate::{
    exit::{Exit, Fault},
    render::{ago, cut, session_title},
    rpc::{Client, ListSessions},
};

/// How many candidates an error lists.
pub(crate) const LISTED: usize = 10;

/// The length of a session's title in an error, in characters.
const ABOUT: usize = 50;

/// How many sessions one answer holds.
const PAGE: u32 = 1_000;

/// The sessions that are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionScope {
    /// All sessions.
    All,
    /// The sessions in the daemon's memory.
    Live,
}

/// Asks a daemon for the session with this id, or the only one whose id begins so.
///
/// # Errors
/// When none fits, or several do: the error lists them.
pub(crate) async fn on(client: &Client, given: &str, among: SessionScope) -> Result<SessionInfo, Fault> {
    let mut search = SessionSearch::new(given, among)?;
    let mut params = search.params();
    loop {
        let list = client.call::<ListSessions>(&params).await?;
        params.cursor = search.add(list);
        if params.cursor.is_none() {
            return search.only();
        }
    }
}

/// As [`on`], asking the daemon where one runs, else an agentd of our own.
///
/// # Errors
/// As [`on`].
pub(crate) fn on_any(given: &str) -> Result<SessionInfo, Fault> {
    let mut search = SessionSearch::new(given, SessionScope::All)?;
    let mut params = search.params();
    loop {
        params.cursor = search.add(daemon_call::any::<ListSessions>(&params)?);
        if params.cursor.is_none() {
            return search.only();
        }
    }
}

/// The sessions that fit, gathered page by page.
#[derive(Debug)]
struct SessionSearch<'a> {
    given: &'a str,
    among: SessionScope,
    fitting: Vec<SessionInfo>,
}

impl<'a> SessionSearch<'a> {
    fn new(given: &'a str, among: SessionScope) -> Result<Self, Fault> {
        let given = given.trim();
        if given.is_empty() {
            return Err(Fault::usage("Error: the id of a session is empty. `agentctl sessions` lists ids."));
        }
        Ok(Self { given, among, fitting: Vec::new() })
    }

    fn params(&self) -> ListSessionsParams {
        let live = (self.among == SessionScope::Live).then_some(true);
        ListSessionsParams { live, limit: Some(PAGE), ..ListSessionsParams::default() }
    }

    /// Adds a page; gives the cursor of the next one.
    fn add(&mut self, list: SessionList) -> Option<String> {
        self.fitting.extend(list.sessions.into_iter().filter(|session| session.id.starts_with(self.given)));
        list.cursor
    }

    fn only(mut self) -> Result<SessionInfo, Fault> {
        // A whole id can be the beginning of another one.
        if let Some(at) = self.fitting.iter().position(|session| session.id == self.given) {
            return Ok(self.fitting.swap_remove(at));
        }
        match self.fitting.len() {
            0 => Err(self.none()),
            1 => Ok(self.fitting.remove(0)),
            _ => Err(self.several(Timestamp::now())),
        }
    }

    fn none(&self) -> Fault {
        let (which, list) = match self.among {
            SessionScope::All => ("session", "agentctl sessions"),
            SessionScope::Live => ("live session", "agentctl sessions --live"),
        };
        let text =
            format!("Error: no {which} has an id that begins with \"{}\". `{list}` lists them.", self.given);
        Fault::new(Exit::Failed, text)
    }

    fn several(&self, now: Timestamp) -> Fault {
        let text = format!(
            "Error: \"{}\" is the beginning of {} ids. Give more of the one that is meant:\n{}",
            self.given,
            self.fitting.len(),
            listed(&self.fitting, LISTED, now)
        );
        Fault::new(Exit::Failed, text)
    }
}

/// A line for each session, at most `most`, without the last line feed.
pub(crate) fn listed(sessions: &[SessionInfo], most: usize, now: Timestamp) -> String {
    let mut lines: Vec<String> = sessions.iter().take(most).map(|session| line(session, now)).collect();
    if sessions.len() > most {
        lines.push(format!("  and {} more", sessions.len() - most));
    }
    lines.join("\n")
}

fn line(session: &SessionInfo, now: Timestamp) -> String {
    let id = crate::render::one_line(&session.id);
    format!("  {id}  {:>3}  {}", ago(&session.modified, now), cut(&session_title(session), ABOUT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    fn pick(ids: &[&str], given: &str) -> Result<String, Fault> {
        let mut search = SessionSearch::new(given, SessionScope::All)?;
        let sessions = ids.iter().map(|id| example(id)).collect();
        assert_eq!(search.add(SessionList { sessions, cursor: None, unreadable: Vec::new() }), None);
        search.only().map(|session| session.id)
    }

    #[test]
    fn an_id_or_its_beginning_finds_one() {
        let ids = ["0198c0de-1", "0198c0de-12", "0199"];
        assert_eq!(pick(&ids, "0199").unwrap(), "0199");
        assert_eq!(pick(&ids, " 01990").unwrap_err().exit, Exit::Failed);
        assert_eq!(pick(&ids, "0198c0de-12").unwrap(), "0198c0de-12");
        assert_eq!(pick(&ids, "0198c0de-1").unwrap(), "0198c0de-1");
        assert_eq!(pick(&ids, "").unwrap_err().exit, Exit::Usage);
        assert!(
            pick(&ids, "x").unwrap_err().message.contains("begins with \"x\". `agentctl sessions` lists")
        );
    }

    #[test]
    fn several_are_listed() {
        let sessions = (0..12).map(|n| example(&format!("ab-{n}"))).collect();
        let mut search = SessionSearch::new("ab", SessionScope::Live).unwrap();
        assert_eq!(
            search.add(SessionList { sessions, cursor: Some("c".into()), unreadable: Vec::new() }),
            Some("c".into())
        );
        let text = search.several("2026-11-21T14:09:00Z".parse().unwrap()).message;
        assert!(text.starts_with("Error: \"ab\" is the beginning of 12 ids."), "{text}");
        assert!(text.contains("\n  ab-0   5m  project: What is this?\n"), "{text}");
        assert!(text.ends_with("\n  and 2 more"), "{text}");
    }
}
