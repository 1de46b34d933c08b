//! `agentctl resume`: goes on with a session that is picked, or that fits some words.

use agentd_protocol::daemon::{ListSessionsParams, SessionInfo};
use jiff::Timestamp;

use super::{
    attach, daemon_call, find_session,
    picker::{self, PickerItem},
};
use crate::{
    cli::{AttachOptions, ResumeOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    render::{ago, model_id, one_line, title},
    rpc::ListSessions,
    shared_daemon::Endpoint,
};

/// How many sessions are offered, the last used first.
const OFFERED: u32 = 1_000;

/// The shortest word that is taken as the beginning of an id.
const ID_LENGTH: usize = 4;

const NO_TERMINAL: &str = "\
agentctl resume: it shows a session on a terminal, and there is none here. For a script:
  agentctl prompt --session ID \"...\"    goes on with a session (`agentctl sessions` lists ids)
  agentctl prompt --continue \"...\"      goes on with the last one of this folder";

pub(crate) fn run(options: &ResumeOptions) -> Exit {
    let found = match find(options) {
        Ok(session) => start_daemon().map(|()| session),
        Err(fault) => Err(fault),
    };
    match found {
        Ok(session) => attach::run(&AttachOptions { plain: options.plain, ..AttachOptions::to(session.id) }),
        Err(fault) => conclude(Err(fault)),
    }
}

fn find(options: &ResumeOptions) -> Result<SessionInfo, Fault> {
    if !super::confirm::possible() {
        return Err(Fault::usage(NO_TERMINAL));
    }
    let query = options.query.join(" ");
    let query = query.trim();
    let mut sessions = listed(if options.all { None } else { Some(here()?) })?;
    let mut fitting = fitting(&sessions, query);
    if fitting.is_empty() && !options.all {
        // What is not of this folder may be of another one.
        sessions = listed(None)?;
        fitting = self::fitting(&sessions, query);
        if !fitting.is_empty() {
            print_stderr("No session of this folder fits; these are of others.");
        }
    }
    let none = || match query {
        "" => "agentctl resume: there is no session to go on with. `agentctl prompt \"...\"` starts one."
            .to_owned(),
        query => format!("Error: no session fits \"{query}\". `agentctl sessions` lists them."),
    };
    match fitting.as_slice() {
        [] => Err(Fault::new(Exit::Failed, none())),
        [only] if !query.is_empty() => Ok(sessions.swap_remove(*only)),
        _ => pick(sessions, &fitting),
    }
}

/// Lets the user pick one of those that fit.
fn pick(sessions: Vec<SessionInfo>, fitting: &[usize]) -> Result<SessionInfo, Fault> {
    let fitting = fitting.iter().filter_map(|at| sessions.get(*at));
    let mut fitting: Vec<SessionInfo> = fitting.cloned().collect();
    let now = Timestamp::now();
    if !picker::possible() {
        let text = format!(
            "Error: several sessions fit. Say by its id which one is meant:\n{}",
            find_session::listed(&fitting, find_session::LISTED, now)
        );
        return Err(Fault::new(Exit::Failed, text));
    }
    let items = items(&fitting, now);
    match picker::pick(items)? {
        Some(at) => Ok(fitting.swap_remove(at)),
        None => Err(Fault::new(Exit::Failed, "agentctl resume: no session was picked.")),
    }
}

/// The sessions as lines of a list.
pub(super) fn items(sessions: &[SessionInfo], now: Timestamp) -> Vec<PickerItem> {
    let several_folders = sessions.windows(2).any(|two| two[0].cwd != two[1].cwd);
    let item = |session: &SessionInfo| {
        let folder = one_line(session.cwd.rsplit('/').next().unwrap_or_default());
        let age = ago(&session.modified, now);
        let model = model_id(session).map(|id| format!("{id} · ")).unwrap_or_default();
        let place = if several_folders { format!("{folder} · ") } else { String::new() };
        let name = Some(title(session)).filter(|title| !title.is_empty());
        PickerItem {
            title: name.unwrap_or_else(|| "(no messages)".to_owned()),
            about: format!("{place}{model}{age}"),
            also: format!("{folder} {}", session.id),
            short: age,
        }
    };
    sessions.iter().map(item).collect()
}

/// The places of the sessions that a query means, in their order; all for none. An id comes first, then words that stand in the title or
/// folder as they are, then letters in order.
fn fitting(sessions: &[SessionInfo], query: &str) -> Vec<usize> {
    let places = |fits: &dyn Fn(&SessionInfo) -> bool| -> Vec<usize> {
        sessions.iter().enumerate().filter(|(_, session)| fits(session)).map(|(at, _)| at).collect()
    };
    let by_id = places(&|session| query.len() >= ID_LENGTH && session.id.starts_with(query));
    if !by_id.is_empty() {
        return by_id;
    }
    let text =
        |session: &SessionInfo| format!("{} {}", title(session), one_line(&session.cwd)).to_lowercase();
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let by_words = places(&|session| {
        let text = text(session);
        words.iter().all(|word| text.contains(word.as_str()))
    });
    if !by_words.is_empty() {
        return by_words;
    }
    picker::matches(sessions.iter().map(title), query)
}

fn here() -> Result<String, Fault> {
    let here = std::env::current_dir().map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the current folder cannot be used: {error}"))
    })?;
    Ok(here.display().to_string())
}

fn listed(cwd: Option<String>) -> Result<Vec<SessionInfo>, Fault> {
    let params = ListSessionsParams { cwd, limit: Some(OFFERED), ..ListSessionsParams::default() };
    Ok(daemon_call::any::<ListSessions>(&params)?.sessions)
}

/// Starts the daemon where none runs, and says so: sessions are shown by it.
fn start_daemon() -> Result<(), Fault> {
    daemon_call::block_on(async {
        let (_, status, started) = Endpoint::find()?.status_or_start().await?;
        if started {
            print_stderr(&format!(
                "agentd was started in the background (pid {}); `agentctl down` ends it.",
                status.daemon.pid
            ));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    fn sessions() -> Vec<SessionInfo> {
        let of = |id: &str, title: &str, cwd: &str| SessionInfo {
            first_message: title.into(),
            cwd: cwd.into(),
            ..example(id)
        };
        vec![
            of("01a2-1", "Fix the date parser", "/p/shop"),
            of("01a2-2", "Test the parser", "/p/shop"),
            of("01b3-3", "Release notes", "/p/parsers"),
        ]
    }

    #[test]
    fn an_id_words_and_then_letters_are_looked_for() {
        let sessions = sessions();
        for (query, expected) in [
            ("", &[0, 1, 2][..]),
            ("01b3", &[2]),
            ("01a2", &[0, 1]),
            ("DATE parser", &[0]),
            ("shop test", &[1]),
            ("parser", &[0, 1, 2]),
            ("rlsnts", &[2]),
            ("zebra", &[]),
        ] {
            assert_eq!(fitting(&sessions, query), expected, "{query}");
        }
    }

    #[test]
    fn lines_name_folders_where_there_are_several() {
        let now = "2026-11-21T14:09:00Z".parse().unwrap();
        let all = items(&sessions(), now);
        assert_eq!(
            (all[0].title.as_str(), all[0].about.as_str(), all[0].short.as_str()),
            ("Fix the date parser", "shop · 5m", "5m")
        );
        assert_eq!(items(&sessions()[..2], now)[1].about, "5m");
        let silent = SessionInfo { first_message: String::new(), ..example("x") };
        assert_eq!(items(&[silent], now)[0].title, "(no messages)");
    }
}
