//! `agentctl top`: the daemon's sessions as a table that changes with them.

mod live;
mod sessions;
mod table;
mod terminal;

use std::{
    env,
    io::{self, IsTerminal},
};

use agentd_protocol::{
    command::NoParams,
    daemon::{DaemonStatus, Role},
};
use jiff::Timestamp;
use serde::Serialize;

use self::{
    live::LiveEnd,
    sessions::{TopChange, TopSession, TopSessions},
    table::{TableView, header, table},
};
use super::{
    at_work::{LiveSessions, live_sessions},
    attach, daemon_call,
};
use crate::{
    cli::{AttachOptions, TopOptions},
    exit::{Exit, Fault, conclude},
    output,
    render::Screen,
    rpc::GetDaemonStatus,
    shared_daemon::DaemonConnection,
};

/// Shows the table until the user ends it, or prints it once.
pub(crate) fn run(options: &TopOptions) -> Exit {
    let ended = daemon_call::block_on(top(options));
    match ended {
        Ok(LiveEnd::Attach(id)) => attach::run(&AttachOptions::to(id)),
        Ok(LiveEnd::Quit) => Exit::Answered,
        // Ctrl-C is the normal end.
        Err(fault) if fault.exit == Exit::Interrupted => Exit::Answered,
        Err(fault) => conclude(Err(fault)),
    }
}

async fn top(options: &TopOptions) -> Result<LiveEnd, Fault> {
    let can_draw = io::stdout().is_terminal()
        && env::var_os("TERM").is_none_or(|term| !term.is_empty() && term != "dumb");
    let is_live = can_draw && !options.once && !options.json;
    let role = if is_live { Role::Control } else { Role::Observe };
    let mut connection = daemon_call::require(role).await?;
    let LiveSessions { sessions, activities } = live_sessions(&connection.client).await?;
    let status = connection.client.call::<GetDaemonStatus>(&NoParams {}).await?;
    let sessions = TopSessions::new(sessions, activities, now_ms());
    if is_live {
        return live::show(&mut connection, sessions, status, options.sort).await;
    }
    let printed = if options.json {
        print_json(options, &mut connection, sessions, &status).await?
    } else {
        let view =
            TableView { screen: Screen::of_stdout(), sort: options.sort, selected: None, now_ms: now_ms() };
        let mut lines = vec![header(&status, status.uptime_ms / 1_000, &sessions, view.screen)];
        lines.extend(table(&sessions.sorted(options.sort), &view));
        output::print(&(lines.join("\n") + "\n"))?
    };
    // A reader that has left is an exit of its own.
    if printed == Exit::Answered { Ok(LiveEnd::Quit) } else { Err(Fault::new(printed, "")) }
}

/// The table in `--json`.
#[derive(Serialize)]
struct TableReport<'a> {
    daemon: &'a DaemonStatus,
    sessions: Vec<&'a TopSession>,
}

/// A session that is not in memory any more, in `--json`.
#[derive(Serialize)]
struct LeftReport<'a> {
    left: &'a str,
}

async fn print_json(
    options: &TopOptions,
    connection: &mut DaemonConnection,
    mut sessions: TopSessions,
    status: &DaemonStatus,
) -> Result<Exit, Fault> {
    let first = TableReport { daemon: status, sessions: sessions.sorted(options.sort) };
    let mut printed = output::print_json(&first)?;
    while printed == Exit::Answered && !options.once {
        let Some(line) = connection.incoming.events.recv().await else {
            return Err(Fault::new(Exit::NoDaemon, "agentctl: agentd has ended, or closed the connection."));
        };
        let change = line.event().and_then(|event| sessions.apply(event, now_ms()));
        printed = match change {
            Some(TopChange::Session(id)) => match sessions.get(&id) {
                Some(session) => output::print_json(session)?,
                None => printed,
            },
            Some(TopChange::Left(id)) => output::print_json(&LeftReport { left: &id })?,
            None => printed,
        };
    }
    Ok(printed)
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
