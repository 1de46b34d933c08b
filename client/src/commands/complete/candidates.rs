//! The words that fit at the cursor of a shell. The running daemon is asked; without one, session files and an agentd of our own. No daemon
//! is started.

use std::{ffi::OsStr, future::Future, io, time::Duration};

use agentd_protocol::{
    daemon::{ListSessionsParams, SessionInfo},
    model_list::ListModelsParams,
};
use clap_complete::{CompletionCandidate, PathCompleter, engine::ValueCompleter};
use jiff::Timestamp;

use super::stored_sessions::stored_sessions;
use crate::{
    output::Output,
    private_daemon::{PrivateDaemon, StartOptions},
    render::{ago, cut, one_line, session_title},
    rpc::{Call, ListModels, ListSessions},
    shared_daemon::Endpoint,
};

/// How long the user at the shell waits at most.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(700);

/// How many sessions are offered, the last used first.
const OFFERED: u32 = 100;

/// The length of a session's description, in characters.
const ABOUT: usize = 60;

/// Ids of all sessions.
pub(crate) fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, ListSessionsParams { limit: Some(OFFERED), ..ListSessionsParams::default() })
}

/// Ids of all sessions; files, when the typed word looks like a path.
pub(crate) fn sessions_or_files(typed: &OsStr) -> Vec<CompletionCandidate> {
    let looks_like_a_path = typed.to_string_lossy().contains(['/', '.', '~']);
    if looks_like_a_path { PathCompleter::file().complete(typed) } else { sessions(typed) }
}

/// Ids of the sessions in the daemon's memory.
pub(crate) fn live_sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(
        typed,
        ListSessionsParams { limit: Some(OFFERED), live: Some(true), ..ListSessionsParams::default() },
    )
}

/// Models that can be used, as `provider/id`.
pub(crate) fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask_any::<ListModels>(&ListModelsParams::default());
    let models = list.into_iter().flat_map(|list| list.models);
    candidates(
        typed,
        models.map(|model| (format!("{}/{}", model.model.provider, model.model.id), model.model.name)),
    )
}

/// The ids of providers.
pub(crate) fn providers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask_any::<ListModels>(&ListModelsParams { all: Some(true), ..ListModelsParams::default() });
    let providers = list.into_iter().flat_map(|list| list.providers);
    candidates(typed, providers.map(|provider| (provider.id, provider.name)))
}

fn offer(typed: &OsStr, params: ListSessionsParams) -> Vec<CompletionCandidate> {
    let now = Timestamp::now();
    let described = |session: SessionInfo| {
        let text = format!("{}  {}", ago(&session.modified, now), cut(&session_title(&session), ABOUT));
        (session.id, text)
    };
    if let Some(list) = ask::<ListSessions>(&params) {
        return candidates(typed, list.sessions.into_iter().map(described));
    }
    // Only a daemon has sessions in memory.
    let Some(endpoint) = Endpoint::find().ok().filter(|_| params.live.is_none()) else { return Vec::new() };
    let stored = stored_sessions(&endpoint.agent_dir, &typed.to_string_lossy(), OFFERED as usize);
    let described = stored.into_iter().map(|session| {
        (session.id, format!("{}  {}", ago(&session.modified, now), cut(&session.title, ABOUT)))
    });
    candidates(typed, described)
}

/// The values that begin with the typed word, in their order.
fn candidates(typed: &OsStr, all: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    all.filter(|(value, _)| value.starts_with(&*typed))
        .enumerate()
        .map(|(at, (value, help))| {
            let help = one_line(&help);
            CompletionCandidate::new(value).help(Some(help.into())).display_order(Some(at))
        })
        .collect()
}

/// Asks the daemon; `None` without one, and when it is slow or refuses: a completion prints no errors.
fn ask<C: Call>(params: &C::Params) -> Option<C::Data> {
    timed(async {
        let connection = Endpoint::find().ok()?.connect().await.ok()??;
        connection.client.call::<C>(params).await.ok()
    })
}

/// Asks the daemon where one runs, else an agentd of our own, which ends with the answer.
fn ask_any<C: Call>(params: &C::Params) -> Option<C::Data> {
    timed(async {
        if let Some(connection) = Endpoint::find().ok()?.connect().await.ok()? {
            return connection.client.call::<C>(params).await.ok();
        }
        // What it says on stderr is no completion. Dropping it kills it.
        let unseen = Output::start_with(io::sink(), io::sink()).ok()?;
        let start = StartOptions {
            args: ["--no-session", "--no-mcp", "--no-extensions", "--offline"].map(str::to_owned).to_vec(),
            cwd: None,
        };
        let daemon = PrivateDaemon::start(start, unseen.sender()).ok()?;
        daemon.client.call::<C>(params).await.ok()
    })
}

fn timed<T>(work: impl Future<Output = Option<T>>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let done = runtime.block_on(async { tokio::time::timeout(ANSWER_TIMEOUT, work).await.ok()? });
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_as_typed_is_offered_in_order() {
        let all = [("ab-2", "two"), ("b", "other"), ("ab-1", "o\x1bne")];
        let all = all.map(|(value, help)| (value.to_owned(), help.to_owned()));
        let found = candidates(OsStr::new("ab"), all.into_iter());
        let found: Vec<(String, String)> = found
            .iter()
            .map(|one| (one.get_value().to_string_lossy().into(), one.get_help().unwrap().to_string()))
            .collect();
        assert_eq!(found, [("ab-2".into(), "two".into()), ("ab-1".into(), "o ne".into())]);
    }
}
