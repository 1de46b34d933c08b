//! Checkpoints: what each tool call changed, how it is listed, shown and undone.

use serde::{Deserialize, Serialize};

/// What one tool call, or one restoring, changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Its id in the session, such as `c1`, never used for another one; `lost-…` for one that could not be stored.
    pub id: String,
    /// What made the changes.
    pub kind: CheckpointKind,
    /// The entry of the user's message that the changes belong to; absent for changes before any message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub time: i64,
    /// Files, folders and links that were created.
    pub created: u64,
    /// Those that were changed.
    pub modified: u64,
    /// Those that were deleted.
    pub deleted: u64,
    /// The first of their paths, at most 20.
    pub paths: Vec<String>,
    /// Whether another command ran at the same time, so that some changes may be of that one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Changed files that are not kept, and why; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathReason>,
    /// For a restoring: the checkpoints that it undid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<String>,
    /// Whether its changes are undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

/// What made the changes of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckpointKind {
    /// A tool call.
    Tool,
    /// `restore_checkpoint`, going back.
    Undo,
    /// `restore_checkpoint`, undoing an undo.
    Redo,
}

/// A path, and what is the matter with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathReason {
    /// The path: absolute.
    pub path: String,
    /// The reason, for people.
    pub why: String,
}

/// The answer to `list_checkpoints`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckpointList {
    /// The session's checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// The first checkpoint of the prompt that `undo` would undo; absent when there is nothing to undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// The checkpoint that `redo` would undo; absent when there is nothing to redo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redo: Option<String>,
}

/// The fields of `diff_checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffCheckpointParams {
    /// The checkpoint whose changes to show, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// Without `checkpointId`: since when; default `prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DiffSince>,
    /// Only these files, or what is below them: absolute paths, or relative to the session's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
}

/// Since when changes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DiffSince {
    /// The last of the user's messages whose changes are not undone.
    Prompt,
    /// The session's start.
    Session,
}

/// The answer to `diff_checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointDiff {
    /// The changed files, by path.
    pub files: Vec<FileDiff>,
    /// Changed files that are not kept, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathReason>,
}

/// How one file changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileDiff {
    /// Its path: relative to the session's folder where it is below it, else absolute.
    pub path: String,
    /// What happened to it.
    pub change: ChangeKind,
    /// Lines that were added.
    pub added: u64,
    /// Lines that were removed.
    pub removed: u64,
    /// What is shown of the change: a unified diff with its header; for what has no lines, a sentence in its place.
    pub diff: String,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// It was changed.
    Modified,
    /// It was deleted.
    Deleted,
}

/// The fields of `restore_checkpoint`: exactly one of `checkpointId` and `step`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RestoreCheckpointParams {
    /// Goes back to before this checkpoint: it and all later ones of the session are undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// Goes one prompt back, or forward again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<RestoreStep>,
    /// Only these files, or what is below them: absolute paths, or relative to the session's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// Whether to say only what would be done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preview: bool,
}

/// A step of undoing by prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RestoreStep {
    /// Undoes the changes of the last prompt that has any that are not undone.
    Undo,
    /// Undoes the last undo, as long as no tool call has changed anything since.
    Redo,
}

/// The answer to `restore_checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoredCheckpoint {
    /// The checkpoint of the restoring; absent for a preview, and when nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// What was restored, or would be.
    pub restored: Vec<RestoredPath>,
    /// What was left as it is, and why: changed since by somebody else, or not possible.
    pub conflicts: Vec<PathReason>,
    /// Files that the undone checkpoints changed and that are not kept, and why: left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathReason>,
}

/// A path that was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoredPath {
    /// The path: absolute.
    pub path: String,
    /// What restoring it does to it.
    pub change: ChangeKind,
}

/// The part of undo in `get_state`; absent where undo is off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UndoState {
    /// Always true.
    pub enabled: bool,
    /// Why changes of shell commands are not kept; absent while they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncovered: Option<String>,
}
