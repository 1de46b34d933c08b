//! Waiting for what a server has to say of a text.

use std::{path::Path, time::Duration};

use futures::future::join_all;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::client::Client;

/// A server that is silent for this long has said what it has to say.
const QUIET: Duration = Duration::from_millis(150);

/// The same for one that does not say which text it speaks of: it may be the one before.
const QUIET_UNVERSIONED: Duration = Duration::from_millis(500);

/// The same for one that has just begun, and for how long that counts: it has a project to read.
const QUIET_AT_START: Duration = Duration::from_secs(1);
const STARTING: Duration = Duration::from_secs(5);

/// Other files of a server whose diagnostics are asked for.
const MAX_OTHERS: usize = 16;

/// Waits until a server has spoken of a file that it was just given.
pub(crate) async fn first_report(
    client: &Client,
    path: &Path,
    reports: u64,
    until: Instant,
    cancel: &CancellationToken,
) {
    let left = until.saturating_duration_since(Instant::now());
    match client.pull(path, left, cancel).await {
        Ok(true) => return,
        Ok(false) => {}
        Err(error) => return tracing::debug!(%error, "a language server gives no diagnostics"),
    }
    let mut news = client.news();
    let spoken = async {
        while client.reports(path) <= reports {
            if client.pulls() {
                // It has told only now that it answers such questions; one that does not then gives no diagnostics.
                let left = until.saturating_duration_since(Instant::now());
                let _ = client.pull(path, left, cancel).await;
                return;
            }
            if news.changed().await.is_err() {
                return;
            }
        }
    };
    // Without an answer the comparison has nothing to begin with, and that is all.
    let _ = cancel.run_until_cancelled(timeout_at(until, spoken)).await;
}

/// Waits until a server has spoken of a text that it was just given, has finished its work, and is silent.
pub(crate) async fn settle(
    client: &Client,
    path: &Path,
    (reports, version): (u64, i64),
    until: Instant,
    cancel: &CancellationToken,
) {
    let mut news = client.news();
    let mut has_pulled = pull_all(client, path, until, cancel).await;
    let mut was_busy = client.is_busy();
    let waiting = async {
        loop {
            let file = client.diagnostics_of(path);
            let has_spoken = file.reports > reports && file.version.is_none_or(|told| told >= version);
            was_busy |= client.is_busy();
            if !has_pulled && !has_spoken && client.pulls() {
                // It has told only now that it answers such questions.
                has_pulled = pull_all(client, path, until, cancel).await;
            }
            if !(has_pulled || has_spoken) || client.is_busy() {
                if news.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let quiet = match (client.age() < STARTING, has_pulled || file.version.is_some()) {
                (true, _) => QUIET_AT_START,
                (false, true) => QUIET,
                (false, false) => QUIET_UNVERSIONED,
            };
            // Some speak several times: of what they see at once, and of what takes longer.
            match timeout(quiet, news.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                // What it answered before it had finished may not be all.
                Err(_) if has_pulled && was_busy => {
                    was_busy = false;
                    has_pulled = pull_all(client, path, until, cancel).await;
                }
                Err(_) => return,
            }
        }
    };
    cancel.run_until_cancelled(waiting).await;
}

/// Asks a server for the diagnostics of a file and of others that it has; false where it answers no such questions.
async fn pull_all(client: &Client, path: &Path, until: Instant, cancel: &CancellationToken) -> bool {
    let left = || until.saturating_duration_since(Instant::now());
    match client.pull(path, left(), cancel).await {
        Ok(true) => {}
        Ok(false) => return false,
        Err(error) => {
            tracing::debug!(%error, "a language server gives no diagnostics");
            return false;
        }
    }
    let others = client.open_files().await;
    let others = others.iter().filter(|(other, _)| other != path).take(MAX_OTHERS);
    // One that fails is one whose diagnostics stay as they were.
    join_all(others.map(|(other, _)| client.pull(other, left(), cancel))).await;
    true
}
