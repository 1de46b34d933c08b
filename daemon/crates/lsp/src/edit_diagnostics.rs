//! Diagnostics in the results of `edit` and `write`: those that were not there before, of the files that were changed and of others that
//! the change broke.
//!
//! A server that runs is given the file before the change, so that what it said before is known. After the change, and while the server
//! still has the old text, it is asked where the changed symbols are used: many servers check only the files that they have. Then it
//! gets the new text, and what it says within the time is compared. What comes later is told with the next change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    client::Client,
    config::ServerConfig,
    diagnostics::{Diagnostic, LineShift, Severity, new_ones},
    session::{SessionServers, Snapshot},
    table::language_of,
};

mod dependents;
mod outcome;
mod settling;

use dependents::{Dependent, open_dependents};
pub(crate) use outcome::{EditReport, with_report};
use settling::first_report;
pub(crate) use settling::settle;

/// Time that a server may exceed its half before a change, to say that it has exceeded it.
const GRACE: Duration = Duration::from_millis(200);

/// A server before a change.
struct Watched {
    client: Arc<Client>,
    server: ServerConfig,
    baseline: Snapshot,
    old_text: Option<Arc<str>>,
    /// Whether it had spoken of the file, or the file is new.
    is_known: bool,
}

/// A file before a change.
pub(crate) struct BeforeEdit {
    path: PathBuf,
    pub(crate) language: String,
    watched: Vec<Watched>,
    /// The time that is left for servers.
    left: Duration,
}

impl BeforeEdit {
    /// Whether a server runs that has something to say of the file.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watched.is_empty()
    }
}

impl SessionServers {
    /// Notes what the servers that run say before a file is changed.
    pub(crate) async fn before_edit(self: &Arc<Self>, path: &Path, cancel: &CancellationToken) -> BeforeEdit {
        let began = Instant::now();
        let language = language_of(&path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default());
        let half = self.parts.options.wait / 2;
        let mut watched = Vec::new();
        for target in self.targets(path).await.found {
            let Some(client) = self.slot(&target).running() else { continue };
            let noting = self.note_before(&client, path, &language, began + half, cancel);
            let Ok(old_text) = timeout_at(began + half + GRACE, noting).await else {
                tracing::debug!(server = client.name, "a language server takes too long before an edit");
                continue;
            };
            let baseline = self.take_unsettled(&client).unwrap_or_else(|| client.all_diagnostics());
            let is_known = old_text.is_none() || client.reports(path) > 0;
            watched.push(Watched { client, server: target.server, baseline, old_text, is_known });
        }
        let left = self.parts.options.wait.saturating_sub(began.elapsed());
        BeforeEdit { path: path.to_owned(), language, watched, left }
    }

    /// Gives the server the file as it is; its text.
    async fn note_before(
        &self,
        client: &Client,
        path: &Path,
        language: &str,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Option<Arc<str>> {
        client.refresh().await;
        let synced = client.sync(path, language).await.ok()?;
        if synced.is_new || client.reports(path) == 0 {
            first_report(client, path, synced.reports, until, cancel).await;
        }
        Some(synced.text)
    }

    /// What the servers say of a change, compared with what they said before it.
    pub(crate) async fn after_edit(&self, before: BeforeEdit, cancel: &CancellationToken) -> EditReport {
        let BeforeEdit { path, language, watched, left } = before;
        let began = Instant::now();
        let until = began + left;
        let asked = watched.into_iter().map(|watched| self.compare(watched, &path, &language, until, cancel));
        let mut report = EditReport { is_complete: true, ..EditReport::default() };
        for (name, new, is_complete) in join_all(asked).await {
            report.servers.push(name);
            report.is_complete &= is_complete;
            report.new.extend(new);
        }
        let is_other = |file: &PathBuf| *file != path;
        report.new.sort_by(|(one, first), (other, second)| {
            (is_other(one), first.severity, one, first.range).cmp(&(
                is_other(other),
                second.severity,
                other,
                second.range,
            ))
        });
        report.new.dedup();
        report.waited = began.elapsed();
        report
    }

    async fn compare(
        &self,
        watched: Watched,
        path: &Path,
        language: &str,
        until: Instant,
        cancel: &CancellationToken,
    ) -> (String, Vec<(PathBuf, Diagnostic)>, bool) {
        let Watched { client, server, mut baseline, old_text, is_known } = watched;
        let name = client.name.clone();
        let new_text =
            crate::client::read_text(&self.place.host, path, cancel).await.ok().map(|read| read.text);
        let shift = match (&old_text, &new_text) {
            (Some(old), Some(new)) => LineShift::between(old, new),
            _ => LineShift::default(),
        };
        // Files whose errors before the change are not known, and the lines that the change can break.
        let mut unknown: HashMap<PathBuf, Vec<u64>> = HashMap::new();
        if old_text.is_some() && !server.checks_project && !server.is_linter {
            let third = Instant::now() + until.saturating_duration_since(Instant::now()) / 3;
            let looking = open_dependents(self, &client, path, shift, third, cancel);
            if let Ok(opened) = timeout_at(third + GRACE, looking).await {
                for Dependent { path, lines } in opened {
                    if client.reports(&path) == 0 {
                        unknown.insert(path, lines);
                        continue;
                    }
                    baseline.entry(path.clone()).or_insert_with(|| client.diagnostics_of(&path).all());
                }
            }
        }
        let settled = async {
            let synced = client.sync(path, language).await.ok()?;
            settle(&client, path, (synced.reports, synced.version), until, cancel).await;
            Some(())
        };
        let is_complete = matches!(timeout_at(until, settled).await, Ok(Some(()))) && !client.is_busy();
        let now = client.all_diagnostics();
        let none = Vec::new();
        let mut new = Vec::new();
        for (file, after) in &now {
            let (is_changed, before) = (file == path, baseline.get(file).unwrap_or(&none));
            let shift = if is_changed { shift } else { LineShift::default() };
            let told = new_ones(before, after, shift).into_iter().filter(|it| match is_changed {
                true => it.severity <= Severity::Warning && (is_known || shift.is_new(it.range.start.line)),
                false => {
                    let may_be_new = |lines: &Vec<u64>| lines.contains(&it.range.start.line);
                    it.severity == Severity::Error && unknown.get(file).is_none_or(may_be_new)
                }
            });
            new.extend(told.map(|it| (file.clone(), it)));
        }
        if !is_complete {
            self.keep_unsettled(&client, now);
        }
        (name, new, is_complete)
    }
}
