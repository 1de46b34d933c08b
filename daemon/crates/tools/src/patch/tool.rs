//! The tool `patch`: its description and its calls.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    patch::PATCH_TOOL,
    tool::{ConstrainedSampling, ToolResult, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    parse::{DiffTarget, FileDiff, parse},
    prepare::{MAX_FILES, PatchedFile, PreparedFile, prepare},
    report,
};
use crate::{
    arguments, blocking,
    file_changes::{ChangeApproval, ChangePlace, ProposedChange},
    home::Home,
    undo::explain_gap,
};

/// What `patch` works with.
pub struct PatchOptions {
    /// The session's home directory, for `~`.
    pub home: PathBuf,
    /// Where files are changed.
    pub place: ChangePlace,
    /// Decides about each file.
    pub approval: Arc<dyn ChangeApproval>,
}

/// Applies unified diffs.
pub struct PatchTool {
    home: Home,
    place: ChangePlace,
    approval: Arc<dyn ChangeApproval>,
}

impl PatchTool {
    /// The tool of one session.
    #[must_use]
    pub fn new(options: PatchOptions) -> Self {
        let PatchOptions { home, place, approval } = options;
        Self { home: Home::new(home), place, approval }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let Invocation { call_id, arguments, cwd, cancel, .. } = invocation;
        let PatchArguments { diff } = arguments::parse(arguments)?;
        let prepared = self.prepared(&diff, &cwd, &cancel).await.map_err(with_outcome)?;
        for file in &prepared {
            for (path, content) in &file.judged {
                let change = ProposedChange { call_id: &call_id, path, cwd: &cwd, content };
                match cancel.run_until_cancelled(self.approval.approve(change, &cancel)).await {
                    Some(Ok(())) => {}
                    Some(Err(why)) => return Err(ToolError(format!("{why} Nothing was changed."))),
                    None => return Err(blocking::aborted()),
                }
            }
        }
        let result = report::result(&prepared);
        let steps = prepared.into_iter().flat_map(|file| file.steps).collect();
        let gap = self.place.apply(steps, (&call_id, PATCH_TOOL), &cancel).await?;
        explain_gap(Ok(result), gap)
    }

    /// The files of a diff, ready to be changed.
    async fn prepared(
        &self,
        diff: &str,
        cwd: &Path,
        cancel: &CancellationToken,
    ) -> Result<Vec<PreparedFile>, ToolError> {
        let diffs = parse(diff).map_err(ToolError)?;
        if diffs.len() > MAX_FILES {
            return Err(ToolError(format!(
                "The diff has {} files; a call changes at most {MAX_FILES}",
                diffs.len()
            )));
        }
        let patched: Result<Vec<PatchedFile>, ToolError> =
            diffs.into_iter().map(|diff| self.located(diff, cwd)).collect();
        let (files, patched) = (self.place.host.files(cancel), patched?);
        let (cwd, cancel) = (cwd.to_owned(), cancel.clone());
        blocking::run(move || prepare(&*files, &patched, &cwd, &|| cancel.is_cancelled())).await
    }

    fn located(&self, diff: FileDiff, cwd: &Path) -> Result<PatchedFile, ToolError> {
        let resolve = |name: &str| self.home.resolve(name, cwd, &*self.place.host);
        let path = resolve(diff.target.name())?;
        let to = match &diff.target {
            DiffTarget::Rename { to, .. } => Some(resolve(to)?),
            DiffTarget::Change(_) | DiffTarget::Create(_) | DiffTarget::Remove(_) => None,
        };
        Ok(PatchedFile { diff, path, to })
    }
}

/// An error before the first change says that nothing was changed.
fn with_outcome(ToolError(why): ToolError) -> ToolError {
    ToolError(format!("{}. Nothing was changed.", why.trim_end_matches('.')))
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: PATCH_TOOL.to_owned(),
        description: "Change, create, remove and rename files by a unified diff, as git diff and diff -u print it. Lines with a space or - \
                      must be in the file as they are; the numbers of lines may be somewhat off. All hunks of all files are applied, or \
                      nothing is."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "diff": {
                    "type": "string",
                    "description": "The diff. Each file begins with --- a/FILE and +++ b/FILE, relative to the working directory or \
                                    absolute; /dev/null stands for a file that is new or goes; rename from and rename to give another name",
                },
            },
            "required": ["diff"],
        }),
        constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
    })
});

#[derive(Deserialize)]
struct PatchArguments {
    diff: String,
}

impl Tool for PatchTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Apply a unified diff to one file or several, all of it or nothing")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "In the diffs of patch, put three unchanged lines around each change, and hunks in the order of the file.",
        ]
    }

    fn execution(&self) -> ExecutionMode {
        // Other calls of the batch may change the files that are read.
        ExecutionMode::Sequential
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

#[cfg(test)]
mod tests;
