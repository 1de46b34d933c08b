//! `agentctl sessions` and `agentctl rm`: lists and deletes conversations.

mod table;

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
    render::{Screen, counted, one_line},
    rpc::{DeleteSession, ListSessions},
};

pub(crate) fn list(options: &SessionsOptions) -> Exit {
    conclude(show(options))
}

/// How many sessions one answer holds where all are asked for.
const PAGE: u32 = 1_000;

fn show(options: &SessionsOptions) -> Result<Exit, Fault> {
    let here = std::env::current_dir().map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the working directory cannot be used: {error}"))
    })?;
    let mut params = ListSessionsParams {
        cwd: options.here.then(|| here.display().to_string()),
        live: options.live.then_some(true),
        limit: Some(if options.all { PAGE } else { options.limit }),
        cursor: options.cursor.clone(),
        search: options.search.clone(),
    };
    let mut list = daemon_call::any::<ListSessions>(&params)?;
    while options.all && list.cursor.is_some() {
        params.cursor = list.cursor.take();
        let next = daemon_call::any::<ListSessions>(&params)?;
        list.sessions.extend(next.sessions);
        list.cursor = next.cursor;
    }
    let printed = if options.json {
        output::print_json(&list)?
    } else {
        let screen = Screen::of_stdout();
        let text = if screen.is_terminal {
            let home = std::env::var("HOME").ok();
            let with_folder = (options.all && !options.here) || several_folders(&list.sessions);
            table::table(&list.sessions, Timestamp::now(), screen, home.as_deref(), with_folder)
        } else {
            table::lines(&list.sessions)
        };
        let printed = output::print(&text)?;
        after(&list);
        printed
    };
    Ok(if printed == Exit::Answered && list.sessions.is_empty() { Exit::Failed } else { printed })
}

fn several_folders(sessions: &[SessionInfo]) -> bool {
    sessions.windows(2).any(|two| two[0].cwd != two[1].cwd)
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
        print_stderr(&format!("There are more: agentctl sessions --cursor {cursor} (or --all)"));
    }
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

    #[test]
    fn a_script_gives_whole_ids() {
        let sessions = [example("0198-1"), example("0199-2")];
        assert_eq!(whole_ids(&["0199-2".into(), "0198-1".into()], &sessions), Ok(()));
        let fault = whole_ids(&["0199-2".into(), "0198".into()], &sessions).unwrap_err();
        assert!(fault.exit == Exit::Usage && fault.message.contains("\"0198\" is the beginning"), "{fault}");
    }
}
