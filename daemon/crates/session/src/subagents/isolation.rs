//! Subagents in copies of their own: the copy is made before one begins, and what it changed is brought back when it has ended.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_isolation::{
    CaptureOptions, Captured, Git, IsolatedCopy, Isolation, IsolationOptions, MessageFuture, MessageWriter,
    discard, merge,
};
use agentd_protocol::{
    isolation::{IsolationBackend, IsolationMerge, IsolationMode},
    message::Usage,
};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::files;
use crate::subagent_place::ChildState;

/// Writes the messages of the commits for what subagents have not committed themselves.
pub(crate) trait CommitAuthor: Send + Sync {
    /// The message for changes that were made for a task, and what it took. The error is why there is none, in a clause.
    fn message(&self, task: &str, changes: &str) -> BoxFuture<'_, (Usage, Result<String, String>)>;
}

/// The work of a subagent in a copy, when it has ended.
pub(super) struct IsolatedWork<'a> {
    pub(super) id: &'a str,
    pub(super) task: &'a str,
    pub(super) state: &'a Arc<ChildState>,
    /// Fires when it is stopped.
    pub(super) cancel: &'a CancellationToken,
    pub(super) has_succeeded: bool,
}

/// The changes of one subagent, whose state counts what messages take.
struct ChildAuthor {
    author: Arc<dyn CommitAuthor>,
    task: String,
    state: Arc<ChildState>,
    cancel: CancellationToken,
}

impl MessageWriter for ChildAuthor {
    fn message(&self, changes: String) -> MessageFuture<'_> {
        Box::pin(async move {
            let asked = self.author.message(&self.task, &changes);
            let Some((usage, message)) = self.cancel.run_until_cancelled(asked).await else {
                return Err("the subagent was stopped".to_owned());
            };
            self.state.add_usage(&usage);
            message
        })
    }
}

/// How the changes of subagents are isolated in a session.
#[derive(Clone)]
pub(crate) struct IsolationPlace {
    pub(crate) git: Git,
    /// The settings `isolation.backend` and `isolation.links`.
    pub(crate) backend: IsolationBackend,
    pub(crate) links: Vec<String>,
    /// The setting `task.isolation.merge`.
    pub(crate) mode: IsolationMode,
    /// The setting `task.isolation.apply`.
    pub(crate) applies: bool,
    /// Writes the messages of commits; `None` where the setting `task.isolation.commits` is not `ai`.
    pub(crate) author: Option<Arc<dyn CommitAuthor>>,
    /// The folder of the copies.
    pub(crate) base_dir: PathBuf,
    /// The beginning of the session's id, which makes ids of copies unique.
    pub(crate) session: String,
}

impl IsolationPlace {
    /// Copies the repository that a folder is in.
    ///
    /// # Errors
    /// A sentence.
    pub(super) async fn begin(&self, cwd: &Path, id: &str) -> Result<IsolatedCopy, String> {
        let options = IsolationOptions {
            git: self.git.clone(),
            cwd: cwd.to_owned(),
            id: format!("{id}-{}", self.session),
            backend: self.backend,
            links: self.links.clone(),
            base_dir: self.base_dir.clone(),
        };
        Isolation::begin(options).await.map_err(|error| error.to_string())
    }

    /// Captures what was changed in a copy, removes the copy, and brings the changes back where that is asked for. `folder` keeps the patch,
    /// and what `apply_patch` needs.
    ///
    /// # Errors
    /// A sentence; nothing of the changes is lost.
    pub(super) async fn finish(
        &self,
        mut copy: IsolatedCopy,
        work: IsolatedWork<'_>,
        folder: &Path,
    ) -> Result<IsolationMerge, String> {
        let IsolatedWork { id, task, state, cancel, has_succeeded } = work;
        let said = |error: agentd_isolation::IsolationError| error.to_string();
        let made = folder.to_owned();
        tokio::task::spawn_blocking(move || agentd_store::create_dirs(&made))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        let first_line = task.lines().next().unwrap_or_default();
        let message: String = format!("{id}: {first_line}").chars().take(72).collect();
        // What is not going to be merged by itself is not worth a request.
        let author = self.author.as_ref().filter(|_| has_succeeded);
        let writer = author.map(|author| {
            let (author, state) = (Arc::clone(author), Arc::clone(state));
            let of_child = ChildAuthor { author, task: task.to_owned(), state, cancel: cancel.clone() };
            Arc::new(of_child) as Arc<dyn MessageWriter>
        });
        let patch_path = folder.join(format!("{id}.patch"));
        let options = CaptureOptions { mode: self.mode, patch_path, message, writer };
        let captured = copy.capture(&options).await.map_err(said)?;
        copy.remove().await.map_err(said)?;
        if self.applies && has_succeeded || captured.is_empty() {
            let merged = merge(&self.git, &captured).await.map_err(said)?;
            if merged.applied {
                return Ok(merged);
            }
            keep(folder, id, &captured).await?;
            return Ok(merged);
        }
        keep(folder, id, &captured).await?;
        Ok(unmerged(&captured))
    }

    /// Brings changes back that were captured before.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) async fn apply(&self, folder: &Path, id: &str) -> Result<IsolationMerge, String> {
        let captured = kept(folder, id).await?;
        let merged = merge(&self.git, &captured).await.map_err(|error| error.to_string())?;
        if merged.applied {
            forget(folder, id).await;
        }
        Ok(merged)
    }

    /// Throws changes away that were captured before.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) async fn discard(&self, folder: &Path, id: &str) -> Result<(), String> {
        let captured = kept(folder, id).await?;
        discard(&self.git, &captured).await.map_err(|error| error.to_string())?;
        forget(folder, id).await;
        Ok(())
    }
}

/// Changes that were captured and not brought back.
fn unmerged(captured: &Captured) -> IsolationMerge {
    let outer = captured.units.iter().find(|unit| unit.below().as_os_str().is_empty());
    let (patch_path, branch) = match outer.map(|unit| &unit.change) {
        Some(agentd_isolation::UnitChange::Patch { path }) => (Some(path.display().to_string()), None),
        Some(agentd_isolation::UnitChange::Branch { name, .. }) => (None, Some(name.clone())),
        None => (None, None),
    };
    IsolationMerge {
        id: captured.id.clone(),
        mode: captured.mode,
        applied: false,
        changed: !captured.is_empty(),
        patch_path,
        branch,
        conflict: None,
        nested: Vec::new(),
        notices: captured.notices.clone(),
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.changes.json"))
}

/// Keeps what `apply_patch` and `discard_patch` need.
async fn keep(folder: &Path, id: &str, captured: &Captured) -> Result<(), String> {
    let path = file(folder, id);
    let text = serde_json::to_vec(captured).map_err(|error| error.to_string())?;
    let written = tokio::task::spawn_blocking(move || files::write_private(&path, &text)).await;
    written.map_err(|error| error.to_string())?.map_err(|error: io::Error| error.to_string())
}

async fn kept(folder: &Path, id: &str) -> Result<Captured, String> {
    let path = file(folder, id);
    let read =
        tokio::task::spawn_blocking(move || fs::read(path)).await.map_err(|error| error.to_string())?;
    match read {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("The subagent {id} has no changes that wait."))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The changes are where they belong, or gone.
async fn forget(folder: &Path, id: &str) {
    let path = file(folder, id);
    let removed = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, id, "what is known of merged changes could not be removed");
    }
}
