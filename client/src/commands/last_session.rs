//! The session of a verb that was given none: the last one of this terminal and folder, as `agentctl prompt --continue` has it.

use std::path::PathBuf;

use agentd_protocol::daemon::{ListSessionsParams, SessionInfo, SessionList};

use super::{
    controlling_terminal::ControllingTerminal,
    daemon_call,
    find_session::{self, SessionScope},
};
use crate::{
    exit::{Exit, Fault, print_stderr},
    render::{cut, short_id, title},
    rpc::{Client, ListSessions},
};

/// How many sessions of the folder are looked at. The list comes in one answer.
const PAGE: u32 = 1_000;

/// The length of a title on stderr, in columns.
const TITLE: usize = 60;

/// The session with this id or beginning of one; without one the last of this folder, which stderr names.
///
/// # Errors
/// As [`find_session::on_any`], and when the folder has no session.
pub(crate) fn given_or_last(given: Option<&str>) -> Result<SessionInfo, Fault> {
    let Some(given) = given else {
        let here = Here::find()?;
        return here.last(daemon_call::any::<ListSessions>(&here.params())?);
    };
    find_session::on_any(given)
}

/// As [`given_or_last`], asking this daemon.
///
/// # Errors
/// As [`given_or_last`].
pub(crate) async fn given_or_last_on(client: &Client, given: Option<&str>) -> Result<SessionInfo, Fault> {
    let Some(given) = given else {
        let here = Here::find()?;
        return here.last(client.call::<ListSessions>(&here.params()).await?);
    };
    find_session::on(client, given, SessionScope::All).await
}

/// The current folder, and the session that this terminal used in it.
struct Here {
    folder: PathBuf,
    used: Option<String>,
}

impl Here {
    fn find() -> Result<Self, Fault> {
        let folder = std::env::current_dir().map_err(|error| {
            Fault::new(Exit::Failed, format!("agentctl: the current folder cannot be used: {error}"))
        })?;
        let used = ControllingTerminal::current().and_then(|terminal| terminal.last(&folder));
        Ok(Self { folder, used })
    }

    fn params(&self) -> ListSessionsParams {
        let cwd = Some(self.folder.display().to_string());
        ListSessionsParams { cwd, limit: Some(PAGE), ..ListSessionsParams::default() }
    }

    /// The session that is meant; says on stderr which one.
    fn last(&self, list: SessionList) -> Result<SessionInfo, Fault> {
        let session = chosen(list.sessions, self.used.as_deref()).ok_or_else(|| {
            let text =
                "Error: there is no session of this folder. `agentctl sessions` lists those of all folders.";
            Fault::new(Exit::Failed, text)
        })?;
        print_stderr(&format!(
            "Session {}, the last one here: {}",
            short_id(&session.id),
            cut(&title(&session), TITLE)
        ));
        Ok(session)
    }
}

/// The session with the id that was used here, else the last one in which something was said, else the last one.
fn chosen(mut sessions: Vec<SessionInfo>, used: Option<&str>) -> Option<SessionInfo> {
    let of_terminal = used.and_then(|used| sessions.iter().position(|session| session.id == used));
    let said = || sessions.iter().position(|session| !session.first_message.is_empty());
    let at = of_terminal.or_else(said).unwrap_or(0);
    (at < sessions.len()).then(|| sessions.swap_remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    #[test]
    fn this_terminals_session_comes_first_then_one_that_says_something() {
        let silent = SessionInfo { first_message: String::new(), ..example("silent") };
        let all = || vec![silent.clone(), example("new"), example("old")];
        let id = |sessions, used| chosen(sessions, used).map(|session| session.id);
        assert_eq!(id(all(), None).as_deref(), Some("new"));
        assert_eq!(id(all(), Some("old")).as_deref(), Some("old"));
        assert_eq!(id(all(), Some("gone")).as_deref(), Some("new"));
        assert_eq!(id(vec![silent.clone()], None).as_deref(), Some("silent"));
        assert_eq!(id(Vec::new(), Some("x")), None);
    }
}
