//! What a session's sandbox enforces.

use serde::{Deserialize, Serialize};

use crate::settings::{NamespaceMaker, NetworkAccess, SandboxMode};

/// A way in which the system confines commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SandboxLayer {
    /// A mount namespace: writable folders, protected and denied paths, devices.
    Mounts,
    /// Landlock: writable folders again, TCP, signals and tracing of other processes.
    Landlock,
    /// A filter of system calls: sockets, namespaces, io_uring and the like.
    Seccomp,
}

impl SandboxLayer {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mounts, Self::Landlock, Self::Seccomp];

    /// The name, as on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
        }
    }
}

/// What the system offers, as a process found that tried it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxSupport {
    /// The layers that work.
    pub layers: Vec<SandboxLayer>,
    /// The version of landlock; 0 without it.
    pub landlock_abi: u32,
    /// Why each of the others does not work: sentences for people.
    pub missing: Vec<String>,
}

impl SandboxSupport {
    /// What the layers that work do not stop, though they should: sentences for people, [`Self::missing`] among them.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = self.missing.clone();
        let has = |layer| self.layers.contains(&layer);
        if !has(SandboxLayer::Mounts) {
            gaps.push(
                "protected and denied paths, and modes and times of files outside, are not kept from commands"
                    .to_owned(),
            );
        }
        if has(SandboxLayer::Landlock) && self.landlock_abi < 6 {
            gaps.push(format!(
                "commands can send signals to other processes of the user (landlock has version {}; 6 stops it)",
                self.landlock_abi
            ));
        }
        gaps
    }
}

/// The sandbox of a session: what is enforced, never more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SandboxState {
    /// What was asked for.
    pub mode: SandboxMode,
    /// How commands are confined. File tools obey the same rules in any case.
    pub enforced: Vec<SandboxLayer>,
    /// What makes the mounts.
    pub namespaces: NamespaceMaker,
    /// The version of landlock; 0 without it.
    pub landlock_abi: u32,
    /// The folders that may be written.
    pub writable_roots: Vec<String>,
    /// The folder for temporary files, one of `writableRoots`; commands find it in `TMPDIR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary_folder: Option<String>,
    /// What stays read-only in them.
    pub read_only_paths: Vec<String>,
    /// What cannot be read or written.
    pub denied_paths: Vec<String>,
    /// Whether commands may use the network.
    pub network: NetworkAccess,
    /// Whether commands may use local sockets that have a name.
    pub unix_sockets: NetworkAccess,
    /// What is not stopped, though it was asked for: sentences for people. Empty where everything is enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}
