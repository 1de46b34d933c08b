//! `--resume`: the person at the terminal picks a session of the folder.

use std::{
    io::{self, BufRead, Write},
    path::Path,
};

use agentd_protocol::daemon::{ListSessionsParams, SessionInfo};
use jiff::Timestamp;

use crate::{
    commands::{anyone, ask, sessions::about},
    exit::{self, Exit, Fault},
    render::{ago, cut, one_line},
    rpc::ListSessions,
};

/// How many are shown.
const SHOWN: u32 = 20;

/// What is shown of what a session is about, in characters.
const ABOUT: usize = 60;

/// The id of the session that was picked.
///
/// # Errors
/// When nobody can be asked, when there is none, and when none is picked.
pub(super) fn session_of(folder: &Path) -> Result<String, Fault> {
    if !ask::possible() {
        let text = "agentctl prompt: --resume asks which session to go on with, and nobody is at the terminal to answer. \
                    --session ID names one (`agentctl sessions --here` lists them), --continue takes the last.";
        return Err(Fault::usage(text));
    }
    let cwd = Some(folder.display().to_string());
    let params = ListSessionsParams { cwd, limit: Some(SHOWN), ..ListSessionsParams::default() };
    let sessions = anyone::call::<ListSessions>(&params)?.sessions;
    if sessions.is_empty() {
        let text = format!("agentctl prompt: {} has no sessions to go on with.", folder.display());
        return Err(Fault::new(Exit::Failed, text));
    }
    let broken = |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot ask: {error}"));
    let mut stderr = exit::stderr();
    stderr.write_all(menu(&sessions, Timestamp::now()).as_bytes()).map_err(broken)?;
    loop {
        write!(stderr, "Which one (1-{}, Enter for none)? ", sessions.len())
            .and_then(|()| stderr.flush())
            .map_err(broken)?;
        let mut answer = String::new();
        let count = io::stdin().lock().read_line(&mut answer).map_err(broken)?;
        match picked(&answer, sessions.len()) {
            Picked::One(at) => return Ok(sessions[at].id.clone()),
            Picked::Nothing => {
                return Err(Fault::new(Exit::Failed, "agentctl prompt: no session was picked."));
            }
            Picked::Unclear if count == 0 => {
                return Err(Fault::new(Exit::Failed, "agentctl prompt: no session was picked."));
            }
            Picked::Unclear => {}
        }
    }
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Picked {
    /// The session at that place.
    One(usize),
    Nothing,
    /// It is to be asked again.
    Unclear,
}

fn picked(answer: &str, count: usize) -> Picked {
    match answer.trim() {
        "" => Picked::Nothing,
        answer => match answer.parse::<usize>() {
            Ok(number) if (1..=count).contains(&number) => Picked::One(number - 1),
            _ => Picked::Unclear,
        },
    }
}

fn menu(sessions: &[SessionInfo], now: Timestamp) -> String {
    let line = |(at, session): (usize, &SessionInfo)| {
        let about = cut(&one_line(&about(session)), ABOUT);
        format!("{:>3}  {:>4}  {about}\n", at + 1, ago(&session.modified, now))
    };
    sessions.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sessions::example;

    #[test]
    fn numbers_pick() {
        for (answer, means) in [
            ("2\n", Picked::One(1)),
            (" 1 ", Picked::One(0)),
            ("\n", Picked::Nothing),
            ("0\n", Picked::Unclear),
            ("4\n", Picked::Unclear),
            ("x\n", Picked::Unclear),
        ] {
            assert_eq!(picked(answer, 3), means, "{answer:?}");
        }
    }

    #[test]
    fn the_menu_counts_and_steers_no_terminal() {
        let mut other = example("b");
        other.first_message = "Red \u{1b}[31m".into();
        let text = menu(&[example("a"), other], "2026-11-21T14:09:00Z".parse().unwrap());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  1    5m  ") && lines[0].ends_with("What is this?"), "{text}");
        assert!(lines[1].starts_with("  2    5m  ") && !text.contains('\u{1b}'), "{text}");
    }
}
