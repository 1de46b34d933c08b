//! The setting `sandbox`.

use serde::{Deserialize, Serialize};

/// The confinement of shell commands and file tools. Only read from the user's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// What may be written (as `--sandbox`); default `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SandboxMode>,
    /// Folders that may be written beside the session's own (as `--writable-root`). `~` is the home directory; other paths that are
    /// not absolute are below the session's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writable_roots: Option<Vec<String>>,
    /// Paths in writable folders that stay read-only, beside `.git/hooks`, `.git/config`, `.agentd` and `.pi`; written as in
    /// `writableRoots`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_paths: Option<Vec<String>>,
    /// Paths that can be neither read nor written, such as `~/.ssh`; written as in `writableRoots`. What the agent directory has of
    /// keys is always denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_paths: Option<Vec<String>>,
    /// Whether commands may use the network (as `--network`); default `on`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkAccess>,
    /// Whether commands may connect to local sockets that have a name, such as those of ssh-agent and docker, and offer some; default
    /// `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_sockets: Option<NetworkAccess>,
    /// What makes the mounts of commands; default `own`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<NamespaceMaker>,
    /// Whether a session is refused where the system cannot enforce all of it; default true. Otherwise it opens with what there is,
    /// and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub required: Option<bool>,
}

/// What may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// No sandbox: whatever the user may write.
    #[default]
    Off,
    /// The session's folder, a folder for temporary files, and the writable roots.
    WorkspaceWrite,
    /// A folder for temporary files, and the writable roots.
    ReadOnly,
}

impl SandboxMode {
    /// The name, as in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::WorkspaceWrite => "workspace-write",
            Self::ReadOnly => "read-only",
        }
    }

    /// The mode with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Off, Self::WorkspaceWrite, Self::ReadOnly].into_iter().find(|mode| mode.name() == name)
    }
}

/// What makes the mounts of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NamespaceMaker {
    /// agentd itself.
    #[default]
    Own,
    /// The program `bwrap` (bubblewrap), found on the search path: some systems let it make namespaces and nobody else.
    Bwrap,
}

/// Whether something of the network may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NetworkAccess {
    /// It may be used.
    On,
    /// It may not.
    Off,
}

impl NetworkAccess {
    /// Whether it may be used.
    #[must_use]
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

impl From<bool> for NetworkAccess {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}
