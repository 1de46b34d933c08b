//! Finds the session that an id, the beginning of an id, or the id of a subagent stands for.

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

/// Asks a daemon for the session with this id, of the only subagent in memory with this id, or the only one whose id begins so.
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
        let given = self.given;
        let fits = |session: &SessionInfo| session.id.starts_with(given) || is_agent(session, given);
        self.fitting.extend(list.sessions.into_iter().filter(fits));
        list.cursor
    }

    fn only(mut self) -> Result<SessionInfo, Fault> {
        // A whole id can be the beginning of another one.
        if let Some(at) = self.fitting.iter().position(|session| session.id == self.given) {
            return Ok(self.fitting.swap_remove(at));
        }
        if self.fitting.iter().any(|session| is_agent(session, self.given)) {
            self.fitting.retain(|session| is_agent(session, self.given));
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
        let (given, count) = (self.given, self.fitting.len());
        let found = match self.fitting.iter().all(|session| is_agent(session, given)) {
            true => format!("{count} subagents have the id \"{given}\". Give the beginning of its session's"),
            false => {
                format!("\"{given}\" is the beginning of {count} ids. Give more of the one that is meant")
            }
        };
        let text = format!("Error: {found}:\n{}", listed(&self.fitting, LISTED, now));
        Fault::new(Exit::Failed, text)
    }
}

/// Whether the session is that of the subagent with this id.
fn is_agent(session: &SessionInfo, id: &str) -> bool {
    session.agent_id.as_deref() == Some(id)
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
    fn a_subagent_is_found_by_its_id() {
        let agent = |id: &str, agent: &str| SessionInfo { agent_id: Some(agent.into()), ..example(id) };
        let sessions =
            vec![agent("01-1", "Docs"), agent("01-2", "0"), agent("01-3", "Twin"), agent("01-4", "Twin")];
        let find = |given: &str| {
            let mut search = SessionSearch::new(given, SessionScope::All).unwrap();
            search.add(SessionList { sessions: sessions.clone(), cursor: None, unreadable: Vec::new() });
            search.only().map(|session| session.id).map_err(|fault| fault.message)
        };
        assert_eq!(find("Docs").unwrap(), "01-1");
        assert_eq!(find("0").unwrap(), "01-2");
        assert!(find("01").unwrap_err().contains("is the beginning of 4 ids"));
        assert!(find("Twin").unwrap_err().contains("2 subagents have the id \"Twin\""));
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
