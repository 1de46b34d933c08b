//! The session of a verb about work under way that was given none: the only one at work.

use std::path::Path;

use agentd_protocol::daemon::{ListSessionsParams, SessionInfo};
use jiff::Timestamp;

use super::find_session;
use crate::{
    exit::{Exit, Fault},
    render::counted,
    rpc::{Client, ListSessions},
};

/// The only session at work, or the only one of them that works in this folder; `None` when none is at work.
///
/// # Errors
/// When several are.
pub(crate) async fn only(client: &Client) -> Result<Option<SessionInfo>, Fault> {
    let params = ListSessionsParams { live: Some(true), limit: Some(1_000), ..ListSessionsParams::default() };
    let list = client.call::<ListSessions>(&params).await?;
    let at_work = list.sessions.into_iter().filter(|session| session.is_streaming).collect();
    // Without a current folder, no session is of it.
    let here = std::env::current_dir().unwrap_or_default();
    one_of(at_work, &here)
}

fn one_of(mut at_work: Vec<SessionInfo>, here: &Path) -> Result<Option<SessionInfo>, Fault> {
    if at_work.len() <= 1 {
        return Ok(at_work.pop());
    }
    let is_here = |session: &SessionInfo| Path::new(&session.cwd) == here;
    if at_work.iter().filter(|session| is_here(session)).count() == 1 {
        return Ok(at_work.into_iter().find(is_here));
    }
    let text = format!(
        "Error: {} are at work. Say by its id which one is meant:\n{}",
        counted(at_work.len(), "session"),
        find_session::listed(&at_work, find_session::LISTED, Timestamp::now())
    );
    Err(Fault::new(Exit::Failed, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    #[test]
    fn one_of_this_folder_is_meant_where_several_work() {
        let of = |id: &str, cwd: &str| SessionInfo { cwd: cwd.into(), ..example(id) };
        let only =
            |sessions: Vec<SessionInfo>| one_of(sessions, Path::new("/a")).map(|one| one.map(|one| one.id));
        assert_eq!(only(Vec::new()), Ok(None));
        assert_eq!(only(vec![of("x", "/b")]), Ok(Some("x".into())));
        assert_eq!(only(vec![of("x", "/b"), of("y", "/a")]), Ok(Some("y".into())));
        for several in [vec![of("x", "/b"), of("y", "/c")], vec![of("x", "/a"), of("y", "/a")]] {
            let fault = only(several).unwrap_err();
            assert!(
                fault.exit == Exit::Failed && fault.message.contains("2 sessions are at work"),
                "{fault}"
            );
        }
    }
}
