//! `agentctl sessions` and `rm`: the conversations that there are.

mod table;

use std::{
    io::{self, IsTerminal},
    time::{SystemTime, UNIX_EPOCH},
};

use agentd_protocol::daemon::{ListSessionsParams, SessionList, SessionParams};

use super::{anyone, one_call};
use crate::{
    cli::{RemoveOptions, SessionsOptions},
    exit::{Exit, Fault, tell},
    render::{colour_wanted, terminal_width},
    rpc::{DeleteSession, ListSessions},
};

/// Lists sessions.
pub(crate) fn list(options: &SessionsOptions) -> Exit {
    one_call::conclude(show(options))
}

/// Deletes sessions.
pub(crate) fn remove(options: &RemoveOptions) -> Exit {
    one_call::conclude(delete(options))
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
        let colour = io::stdout().is_terminal() && colour_wanted();
        let printed = one_call::print(&table::table(&list, now_ms(), terminal_width(), colour))?;
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
    if let Some(cursor) = &list.cursor {
        tell(&format!("There are more: agentctl sessions --cursor {cursor}"));
    }
}

fn delete(options: &RemoveOptions) -> Result<Exit, Fault> {
    for id in &options.ids {
        anyone::call::<DeleteSession>(&SessionParams { session_id: id.clone() })?;
    }
    Ok(Exit::Answered)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
