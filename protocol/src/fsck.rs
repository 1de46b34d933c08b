//! The request of `agentctl fsck` to `agentd` on its stdin, and the answer: a line of JSON for each file, as it is checked.

use serde::{Deserialize, Serialize};

/// The request: one line on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsckRequest {
    /// Session files, absolute.
    #[serde(default)]
    pub paths: Vec<String>,
    /// All sessions of the user in their place, and what lies beside them.
    #[serde(default)]
    pub all: bool,
    /// Whether each session file that is odd gets a repaired copy.
    #[serde(default)]
    pub repair: bool,
}

/// The findings about one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsckFile {
    /// The file, absolute; of `artifacts` the folder.
    pub path: String,
    /// Its kind.
    pub kind: FsckKind,
    /// Its state.
    pub state: FsckState,
    /// The session's id, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The entries that can be read.
    #[serde(default)]
    pub entries: u64,
    /// The size of the file.
    #[serde(default)]
    pub bytes: u64,
    /// The version of an old format that it is of. Opening the session brings it to the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_version: Option<u32>,
    /// Whether a process has the session open, so that its end may be on its way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// The oddities in the order of the file: the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<FsckOddity>,
    /// The number of further oddities.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Why the file cannot be read, or what is wrong with it as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The outcome of the requested repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<FsckRepair>,
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FsckKind {
    /// A session file.
    Session,
    /// A session's intent log.
    #[serde(rename = "ledger")]
    IntentLog,
    /// The folder of a session's long outputs.
    Artifacts,
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FsckState {
    /// All of it is as it should be.
    Clean,
    /// It can be read, and something about it is odd.
    Odd,
    /// It cannot be read.
    Unreadable,
}

/// An oddity in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsckOddity {
    /// Its kind, for programs.
    pub kind: String,
    /// The line, from 1.
    pub line: u64,
    /// Its first byte, from 0.
    pub byte: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its description.
    pub message: String,
}

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsckRepair {
    /// The repaired copy, a session of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its entries.
    #[serde(default)]
    pub entries: u64,
    /// Entries that got another id, since theirs was taken.
    #[serde(default)]
    pub renamed: u64,
    /// Entries that follow another one than they said.
    #[serde(default)]
    pub relinked: u64,
    /// Lines and zeros that are not in the copy.
    #[serde(default)]
    pub dropped: u64,
    /// Why there is no copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
