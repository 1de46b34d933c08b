//! The `edit` tool: its description and its calls.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_checkpoints::SessionCheckpoints;
use agentd_protocol::tool::{ConstrainedSampling, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    apply::{apply, changes},
    diff::{Shown, show},
    line_endings,
    matching::{Edit, EditProblem, find},
    prepare,
    text_file::{TextFile, unreachable_file},
};
use crate::{
    arguments, blocking,
    file_queue::FileQueue,
    home::Home,
    operations::{FileHost, FileSystem, LocalHost, WriteError},
    session_folder::{SessionFolder, Use, own_file},
    undo::explain_gap,
};

/// Replaces parts of a file.
pub struct EditTool {
    queue: FileQueue,
    home: Home,
    host: Arc<dyn FileHost>,
    undo: Option<Arc<SessionCheckpoints>>,
    own: Option<SessionFolder>,
}

impl EditTool {
    /// The tool of the session that `queue` belongs to, with the home directory of the process for `~`.
    #[must_use]
    pub fn new(queue: FileQueue) -> Self {
        Self { queue, home: Home::default(), host: Arc::new(LocalHost), undo: None, own: None }
    }

    /// Sets the session's home directory, which `~` means in paths.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Home::new(home);
        self
    }

    /// Sets the host of the files; the default is this machine.
    #[must_use]
    pub fn with_host(mut self, host: Arc<dyn FileHost>) -> Self {
        self.host = host;
        self
    }

    /// Sets the folder of the session's own files, for `local://NAME`.
    #[must_use]
    pub fn with_own_files(mut self, folder: SessionFolder) -> Self {
        self.own = Some(folder);
        self
    }

    /// Sets what keeps the changes of files; by default nothing does.
    #[must_use]
    pub fn with_undo(mut self, undo: Option<Arc<SessionCheckpoints>>) -> Self {
        self.undo = undo;
        self
    }
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| Arc::new(spec()));

fn spec() -> ToolSpec {
    ToolSpec {
        name: "edit".to_owned(),
        description: "Change one file by replacing exact pieces of its text. Each oldText must occur once in the file \
                      as it is now, and no two may overlap. All edits of a call see the original file, never the \
                      result of each other."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
                "edits": {
                    "type": "array",
                    "description": "The replacements; put changes close to each other into one",
                    "items": {
                        "type": "object",
                        "properties": {
                            "oldText": {
                                "type": "string",
                                "description": "The text to replace, exactly as in the file and unique there",
                            },
                            "newText": {"type": "string", "description": "The text to put there instead"},
                        },
                        "required": ["oldText", "newText"],
                    },
                },
            },
            "required": ["path", "edits"],
        }),
        constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
    }
}

#[derive(Deserialize)]
pub(super) struct EditArguments {
    path: String,
    pub(super) edits: Vec<Replacement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replacement {
    pub(super) old_text: String,
    pub(super) new_text: String,
}

impl Tool for EditTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Replace exact pieces of text in a file, several separate ones in one call")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "Make all changes to one file in one edit call with several entries in edits.",
            "Keep each oldText of edit as short as it can be while it is exact and unique in the file, and let no two \
             overlap.",
        ]
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        prepare::prepare(arguments)
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        // Take the place in the queue now, not when the future first runs.
        let ticket = self.queue.ticket();
        Box::pin(async move {
            let arguments: EditArguments = arguments::parse(invocation.arguments)?;
            let (mut host, mut undo) = (Arc::clone(&self.host), self.undo.clone());
            let path = match own_file(self.own.as_ref(), &arguments.path, Use::Changed).await? {
                Some(path) => {
                    // They are on this machine, wherever the tools work, and are no part of the project.
                    (host, undo) = (Arc::new(LocalHost), None);
                    path
                }
                None => self.home.resolve(&arguments.path, &invocation.cwd, &*host)?,
            };
            if arguments.edits.is_empty() {
                let message = "Edit tool input is invalid. edits must contain at least one replacement.";
                return Err(ToolError(message.to_owned()));
            }
            let cancel = invocation.cancel;
            let unreachable = |error: &_| unreachable_file(&arguments.path, error);
            let turn = blocking::enter(ticket, &*host, &path, &cancel, unreachable).await?;
            let files = host.files(&cancel);
            let call_id = invocation.call_id;
            blocking::run(move || {
                let edit = || edit(&*files, &path, &arguments, &cancel);
                let (done, gap) = match &undo {
                    Some(undo) => undo.change_file(Some(&call_id), "edit", turn.real_path(), edit),
                    None => (edit(), None),
                };
                drop(turn);
                explain_gap(done, gap)
            })
            .await
        })
    }
}

fn edit(
    files: &dyn FileSystem,
    path: &Path,
    arguments: &EditArguments,
    cancel: &CancellationToken,
) -> Result<ToolResult, ToolError> {
    let stop = || cancel.is_cancelled();
    let given = &arguments.path;
    let problem = |problem: EditProblem| ToolError(problem.message(given, arguments.edits.len()));
    if stop() {
        return Err(problem(EditProblem::Aborted));
    }
    files.may_write(path).map_err(|error| ToolError(error.to_string()))?;
    let file = TextFile::read(files, path, given)?;
    let original = file.text();
    let old = line_endings::normalize(original);
    let plain = |text: &str| line_endings::normalize(file.without_mark(text)).into_owned();
    let edits: Vec<Edit> = arguments
        .edits
        .iter()
        .map(|edit| Edit { old: plain(&edit.old_text), new: plain(&edit.new_text) })
        .collect();
    let matches = find(&old, &edits, stop).map_err(problem)?;
    let changes = changes(&old, &edits, &matches);
    let edited = line_endings::apply(original, &changes);
    if edited == original {
        return Err(problem(EditProblem::NoChange));
    }
    if stop() {
        return Err(problem(EditProblem::Aborted));
    }
    files.replace(path, file.with_text(edited).as_bytes(), Some(&file.before())).map_err(
        |error| match error {
            WriteError::Changed(_) => problem(EditProblem::Changed),
            error => ToolError(error.to_string()),
        },
    )?;
    Ok(result(arguments, show(given, &old, &apply(&old, &changes), &changes)))
}

fn result(arguments: &EditArguments, shown: Shown) -> ToolResult {
    let mut details = Map::new();
    details.insert("diff".to_owned(), shown.diff.into());
    if let Some(patch) = shown.patch {
        details.insert("patch".to_owned(), patch.into());
    }
    if let Some(line) = shown.first_changed_line {
        details.insert("firstChangedLine".to_owned(), line.into());
    }
    let text = format!("Successfully replaced {} block(s) in {}.", arguments.edits.len(), arguments.path);
    ToolResult { details: Some(Value::Object(details)), ..ToolResult::text(text) }
}

#[cfg(test)]
mod tests;
