//! `agentctl ps`: the processes that work for sessions.

mod tree;

use agentd_protocol::daemon::{ListProcessesParams, ListSessionsParams, Role, SessionInfo};
use jiff::Timestamp;

use super::{
    daemon, live, one_call,
    which::{self, Among},
};
use crate::{
    cli::PsOptions,
    exit::{Exit, Fault, tell},
    render::Screen,
    rpc::{ListProcesses, ListSessions},
};

/// Asks the daemon, and prints the trees or the JSON.
pub(crate) fn run(options: &PsOptions) -> Exit {
    one_call::conclude(daemon::block_on(show(options)))
}

async fn show(options: &PsOptions) -> Result<Exit, Fault> {
    let refused = |error| one_call::fault(&error);
    let connection = live::require(Role::Observe).await?;
    let client = &connection.client;
    let session_id = match &options.id {
        Some(id) => Some(which::session(client, id, Among::Live).await?.id),
        None => None,
    };
    let list = client.call::<ListProcesses>(&ListProcessesParams { session_id }).await.map_err(refused)?;
    if options.json {
        return one_call::print_json(&list);
    }
    if list.processes.is_empty() {
        tell("No process is at work.");
        return Ok(Exit::Answered);
    }
    let params = ListSessionsParams { live: Some(true), limit: Some(1_000), ..ListSessionsParams::default() };
    let sessions: Vec<SessionInfo> = client.call::<ListSessions>(&params).await.map_err(refused)?.sessions;
    one_call::print(&tree::trees(&list.processes, &sessions, Timestamp::now(), Screen::of_stdout()))
}
