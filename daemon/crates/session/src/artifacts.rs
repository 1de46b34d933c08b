//! Long outputs, read again.

use std::io;

use agentd_process::{ArtifactFolder, ArtifactPart as Part};
use agentd_protocol::{
    artifact::{ArtifactInfo, ArtifactList, ArtifactPart, GetArtifactParams},
    error::{ErrorCode, Failure},
};

use crate::{actor::Actor, reply::Reply};

/// How much one answer has when nobody says: 256 KiB.
const DEFAULT_BYTES: u64 = 256 * 1024;

/// The most that one answer has: 1 MiB.
const MAX_BYTES: u64 = 1024 * 1024;

impl Actor {
    /// Reads a part on a blocking thread; the session waits, as for other answers from its files.
    pub(crate) async fn get_artifact(&self, params: GetArtifactParams, reply: Reply) {
        let result = self.with_artifacts(move |folder| part(folder.as_ref(), &params)).await;
        reply.result(&self.feed, result);
    }

    pub(crate) async fn list_artifacts(&self, reply: Reply) {
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
