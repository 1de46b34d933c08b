//! `agentctl sessions` and `agentctl rm`: lists and deletes conversations.

use agentd_protocol::daemon::{ListSessionsParams, SessionInfo, SessionList, SessionParams};
use jiff::Timestamp;

use super::{
    confirm::{self, EnterMeans},
    daemon_call, find_session,
};
use crate::{
    cli::{RemoveOptions, SessionsOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{Screen, ago, counted, cut, one_line, session_title, short_id},
    rpc::{DeleteSession, ListSessions},
};

pub(crate) fn list(options: &SessionsOptions) -> Exit {
    conclude(show(options))
}

fn show(options: &SessionsOptions) -> Result<Exit, Fault> {
    let here = std::env::current_dir().map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the working directory cannot be used: {error}"))
    })?;
    let params = ListSessionsParams {
        cwd: options.here.then(|| here.display().to_string()),
        live: options.live.then_some(true),
        limit: Some(options.limit),
        cursor: options.cursor.clone(),
        search: options.search.clone(),
    };
    let list = daemon_call::any::<ListSessions>(&params)?;
    let printed = if options.json {
        output::print_json(&list)?
    } else {
        let printed = output::print(&table(&list, Timestamp::now(), Screen::of_stdout()))?;
        after(&list);
        printed
    };
    Ok(if printed == Exit::Answered && list.sessions.is_empty() { Exit::Failed } else { printed })
}

/// Prints remarks on the list to stderr.
fn after(list: &SessionList) {
    if list.sessions.is_empty() {
        print_stderr("No session fits. `agentctl prompt \"...\"` starts one.");
    }
    for file in &list.unreadable {
        print_stderr(&format!("{} {}", one_line(&file.path), one_line(&file.problem)));
    }
    if let Some(cursor) = &list.cursor {
        print_stderr(&format!("There are more: agentctl sessions --cursor {cursor}"));
    }
}

/// The width of a line where nothing limits it.
const DEFAULT_WIDTH: usize = 120;

/// The least width of the title at the end of a line.
const MIN_TEXT: usize = 20;

/// A line for each session, with its title cut to the width; empty without sessions.
fn table(list: &SessionList, now: Timestamp, screen: Screen) -> String {
    if list.sessions.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 4]> = list.sessions.iter().map(|session| row(session, now)).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [widest(0), widest(1), widest(2)];
    let width = screen.width.unwrap_or(DEFAULT_WIDTH);
    let room = width.saturating_sub(widths.iter().sum::<usize>() + 8).max(MIN_TEXT);
    let lines = rows.iter().zip(&list.sessions).map(|(row, session)| {
        let mark = match (session.is_streaming, session.live) {
            (true, _) => "*",
            (false, true) => "+",
            (false, false) => " ",
        };
        let mark = if session.live { screen.paint("32", mark) } else { mark.to_owned() };
        let line = format!(
            "{mark} {:<a$}  {:>b$}  {:>c$}  {}",
            row[0],
            row[1],
            row[2],
            cut(&row[3], room),
            a = widths[0],
            b = widths[1],
            c = widths[2]
        );
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn row(session: &SessionInfo, now: Timestamp) -> [String; 4] {
    [
        short_id(&session.id),
        ago(&session.modified, now),
        session.message_count.to_string(),
        session_title(session),
    ]
}

pub(crate) fn remove(options: &RemoveOptions) -> Exit {
    conclude(delete(options))
}

fn delete(options: &RemoveOptions) -> Result<Exit, Fault> {
    // All ids are resolved before the first deletion: a typing error deletes nothing.
    let mut sessions: Vec<SessionInfo> = Vec::new();
    for given in &options.ids {
        let session = find_session::on_any(given)?;
        if !sessions.iter().any(|other| other.id == session.id) {
            sessions.push(session);
        }
    }
    if !options.yes {
        if confirm::possible() {
            print_stderr(&find_session::listed(&sessions, usize::MAX, Timestamp::now()));
            let question = format!("Delete {} for good?", counted(sessions.len(), "session"));
            if !confirm::agreed(&question, EnterMeans::No)? {
                return Err(Fault::new(Exit::Failed, "Nothing was deleted."));
            }
        } else {
            whole_ids(&options.ids, &sessions)?;
        }
    }
    for session in sessions {
        daemon_call::any::<DeleteSession>(&SessionParams { session_id: session.id })?;
    }
    Ok(Exit::Answered)
}

/// Refuses beginnings of ids where nobody can be asked.
fn whole_ids(given: &[String], sessions: &[SessionInfo]) -> Result<(), Fault> {
    let whole = |given: &&String| sessions.iter().any(|session| session.id == given.trim());
    match given.iter().find(|given| !whole(given)) {
        None => Ok(()),
        Some(short) => Err(Fault::usage(format!(
            "Error: \"{short}\" is the beginning of an id, and nobody can be asked here. Give the whole id, or --yes."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    const NOW: &str = "2026-11-21T14:04:42.892Z";

    fn session(id: &str, modified: &str, about: &str, live: bool, is_streaming: bool) -> SessionInfo {
        let (modified, first_message) = (modified.into(), about.into());
        SessionInfo { modified, first_message, live, is_streaming, ..example(id) }
    }

    #[test]
    fn a_line_for_each_with_live_ones_marked() {
        let sessions = vec![
            session("0198c0de-0000-7000", "2026-11-21T14:04:42.892Z", "What\nis this?", true, true),
            session("0198c0dd-1111-7000", "2026-11-19T11:00:00Z", &"long ".repeat(40), true, false),
            session("x", "2026-11-19T11:00:00Z", "", false, false),
        ];
        let (now, screen) = (NOW.parse().unwrap(), Screen { width: Some(60), ..Screen::default() });
        let text = table(&SessionList { sessions, cursor: None, unreadable: Vec::new() }, now, screen);
        assert_eq!(
            text,
            "* 0198c0de-0000  now  12  project: What is this?\n\
             + 0198c0dd-1111   2d  12  project: long long long long long…\n\
             \u{20} x               2d  12  project:\n"
        );
        assert_eq!(
            table(&SessionList { sessions: Vec::new(), cursor: None, unreadable: Vec::new() }, now, screen),
            ""
        );
    }

    #[test]
    fn a_script_gives_whole_ids() {
        let sessions = [example("0198-1"), example("0199-2")];
        assert_eq!(whole_ids(&["0199-2".into(), "0198-1".into()], &sessions), Ok(()));
        let fault = whole_ids(&["0199-2".into(), "0198".into()], &sessions).unwrap_err();
        assert!(fault.exit == Exit::Usage && fault.message.contains("\"0198\" is the beginning"), "{fault}");
    }
}
