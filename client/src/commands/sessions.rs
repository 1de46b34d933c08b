//! `agentctl sessions` and `rm`: the conversations that there are.

mod remove;
mod table;

use agentd_protocol::daemon::{ListSessionsParams, SessionList};
use jiff::Timestamp;

pub(crate) use self::remove::remove;
pub(super) use self::table::about;
use super::{anyone, one_call};
use crate::{
    cli::SessionsOptions,
    exit::{Exit, Fault, tell},
    render::{Screen, one_line},
    rpc::ListSessions,
};

/// Lists sessions.
pub(crate) fn list(options: &SessionsOptions) -> Exit {
    one_call::conclude(show(options))
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
    let list = anyone::call::<ListSessions>(&params)?;
    let printed = if options.json {
        one_call::print_json(&list)?
    } else {
        let printed = one_call::print(&table::table(&list, Timestamp::now(), Screen::of_stdout()))?;
        after(&list);
        printed
    };
    Ok(if printed == Exit::Answered && list.sessions.is_empty() { Exit::Failed } else { printed })
}

/// What is to be known beside the table, on stderr.
fn after(list: &SessionList) {
    if list.sessions.is_empty() {
        tell("No session fits. `agentctl prompt \"...\"` starts one.");
    }
    for file in &list.unreadable {
        tell(&format!("{} {}", one_line(&file.path), one_line(&file.problem)));
    }
    if let Some(cursor) = &list.cursor {
        tell(&format!("There are more: agentctl sessions --cursor {cursor}"));
    }
}

/// A session for tests.
#[cfg(test)]
pub(super) fn example(id: &str) -> agentd_protocol::daemon::SessionInfo {
    let time = "2026-11-21T14:04:00.000Z";
    agentd_protocol::daemon::SessionInfo {
        id: id.into(),
        path: None,
        cwd: "/home/u/project".into(),
        name: None,
        created: time.into(),
        modified: time.into(),
        message_count: 12,
        first_message: "What\nis this?".into(),
        parent_id: None,
        live: false,
        is_streaming: false,
        clients: 0,
    }
}
