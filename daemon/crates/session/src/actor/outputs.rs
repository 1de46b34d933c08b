//! Output of a session beside its answers: long outputs, the session as a page, the ends of its background processes.

use std::{io, path::Path, time::Duration};

use agentd_config::resolve_path;
use agentd_export_html::{ExportError, default_file_name, write_file};
use agentd_process::{ArtifactFolder, ArtifactPart as Part, BackgroundProcess, EndedBy};
use agentd_protocol::{
    command::{ExportHtmlParams, Exported, Work, WorkKind},
    error::{ErrorCode, Failure},
    event::{Event, ProcessEnd, ProcessEndedBy},
    storage::{ArtifactInfo, ArtifactList, ArtifactPart, GetArtifactParams},
};

use super::session_actor::Actor;
use crate::reply::Reply;

/// The default length of one part: 256 KiB.
const DEFAULT_BYTES: u64 = 256 * 1024;

/// The most that one answer has: 1 MiB.
const MAX_BYTES: u64 = 1024 * 1024;

/// The time for the ends of killed processes, whose output is read first.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Actor {
    /// Reads a part on a blocking thread; the session waits, as for other answers from its files.
    pub(super) async fn get_artifact(&self, params: GetArtifactParams, reply: Reply) {
        let result = self.with_artifacts(move |folder| part(folder.as_ref(), &params)).await;
        reply.result(&self.feed, result);
    }

    pub(super) async fn list_artifacts(&self, reply: Reply) {
        let result = self.with_artifacts(|folder| list(folder.as_ref())).await;
        reply.result(&self.feed, result);
    }

    async fn with_artifacts<T: Send + 'static>(
        &self,
        work: impl FnOnce(Option<ArtifactFolder>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let folder = self.context.artifacts.clone();
        tokio::task::spawn_blocking(move || work(folder)).await.unwrap_or_else(|error| {
            Err(Failure::new(ErrorCode::Internal, format!("cannot read artifacts: {error}")))
        })
    }

    /// Writes the page on a blocking thread. The session waits for it, as for other long answers, so that there is one at a
    /// time; an abort does not wait.
    pub(super) async fn export_html(&self, params: ExportHtmlParams, reply: Reply) {
        let target = match self.journal.file() {
            None => Err(in_memory()),
            Some(_) if self.journal.is_unsaved() => Err(nothing_yet()),
            Some(file) => Ok(target(params, file)),
        };
        let path = match target {
            Ok(path) => path,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let resolved = resolve_path(&path, &self.context.cwd, &self.context.environment);
        // Entries share their texts with this copy.
        let (tree, report) = (self.journal.tree().clone(), self.journal.report().clone());
        let written = tokio::task::spawn_blocking(move || write_file(&tree, &report, &resolved)).await;
        let result = match written {
            Ok(written) => written.map(|()| Exported { path }).map_err(not_written),
            Err(error) => {
                Err(Failure::new(ErrorCode::Internal, format!("cannot export the session: {error}")))
            }
        };
        reply.result(&self.feed, result);
    }

    /// Tells those who said hello.
    pub(super) fn tell_process_end(&self, process: &BackgroundProcess) {
        let Some(end) = process.end() else { return };
        let event = Event::from(ProcessEnd {
            process_id: process.id().to_owned(),
            command: process.label().to_owned(),
            exit_code: end.exit.code,
            signal: end.exit.signal,
            ended_by: end.by.map(|by| match by {
                EndedBy::Timeout => ProcessEndedBy::Timeout,
                EndedBy::Request => ProcessEndedBy::Model,
                EndedBy::User => ProcessEndedBy::User,
                EndedBy::Restart => ProcessEndedBy::Restart,
                EndedBy::Limit(_) => ProcessEndedBy::Limit,
            }),
            duration_ms: u64::try_from(end.wall_time.as_millis()).unwrap_or(u64::MAX),
            output_bytes: process.total_bytes(),
        });
        self.publish_to_introduced(&event);
    }

    /// Tells of the processes that ended with the session, once they were killed.
    pub(super) async fn tell_last_ends(&mut self) {
        let background = self.context.background.clone();
        background.settled(LAST_WORDS).await;
        while let Some(process) = background.take_end() {
            self.on_process_end(&process).await;
        }
    }

    /// The background processes that run.
    pub(super) fn background_works(&self) -> Vec<Work> {
        let processes = self.context.background.list();
        let running = processes.iter().filter(|process| process.end().is_none());
        let work = |process: &std::sync::Arc<BackgroundProcess>| Work {
            kind: WorkKind::Background,
            id: Some(process.id().into()),
            name: Some(process.label().to_owned()),
        };
        running.map(work).collect()
    }

    /// The number of other commands that have ended and left processes running.
    pub(super) fn left_by_others(&self) -> usize {
        self.context.processes.background_of(|work| work.kind != WorkKind::Background)
    }
}

fn part(folder: Option<&ArtifactFolder>, params: &GetArtifactParams) -> Result<ArtifactPart, Failure> {
    let GetArtifactParams { artifact_id: id, offset, limit } = params;
    let offset = offset.unwrap_or_default();
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_BYTES).min(MAX_BYTES)).unwrap_or_default();
    let found = folder
        .map_or(Ok(None), |folder| folder.read(id, offset, limit))
        .map_err(|error| unreadable(&error))?;
    let Part { artifact, text, next } = found.ok_or_else(|| {
        let text = format!("The session has no artifact \"{id}\".");
        Failure::new(ErrorCode::InvalidField, text).hint("list_artifacts lists them.")
    })?;
    Ok(ArtifactPart {
        artifact_id: artifact.id,
        path: artifact.path.display().to_string(),
        total_bytes: artifact.bytes,
        offset,
        data: text,
        next_offset: next,
        eof: next >= artifact.bytes,
    })
}

fn list(folder: Option<&ArtifactFolder>) -> Result<ArtifactList, Failure> {
    let found = folder.map_or(Ok(Vec::new()), ArtifactFolder::list).map_err(|error| unreadable(&error))?;
    let artifacts = found.into_iter().map(|artifact| ArtifactInfo {
        artifact_id: artifact.id,
        path: artifact.path.display().to_string(),
        total_bytes: artifact.bytes,
    });
    Ok(ArtifactList { artifacts: artifacts.collect() })
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::new(ErrorCode::Io, format!("cannot read artifacts: {error}"))
}

/// Where the page goes, as it is given back.
fn target(params: ExportHtmlParams, session_file: &Path) -> String {
    params.output_path.filter(|path| !path.is_empty()).unwrap_or_else(|| default_file_name(session_file))
}

fn in_memory() -> Failure {
    Failure::new(ErrorCode::Unsupported, "Cannot export in-memory session to HTML")
        .hint("Sessions that are started without --no-session (ephemeral) have a file, and can be exported.")
}

fn nothing_yet() -> Failure {
    Failure::new(ErrorCode::Unsupported, "Nothing to export yet - start a conversation first")
}

fn not_written(error: ExportError) -> Failure {
    Failure::new(ErrorCode::Io, error.to_string()).hint(error.hint())
}
