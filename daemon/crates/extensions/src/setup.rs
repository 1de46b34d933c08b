//! What the extensions of a session are started with, and what comes of that.

use agentd_process::Launcher;
use agentd_program_log::ProgramLog;
use tokio_util::task::TaskTracker;

use crate::{
    flags::GivenFlag,
    host::{HelloFacts, HostRunner},
    kept::KeptHosts,
    source::ExtensionSource,
};

/// What extensions are started with.
pub struct ExtensionsSetup {
    /// The extensions, in load order.
    pub sources: Vec<ExtensionSource>,
    /// What runs the Node host; unused where there is no extension for it.
    pub node: Option<HostRunner>,
    /// The environment of native extensions.
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// What hosts are told of the session.
    pub facts: HelloFacts,
    /// Why the session begins: `startup`, `new`, `resume`, `fork` or `reload`.
    pub reason: &'static str,
    /// Flags of the command line that are none of agentd's.
    pub flags: Vec<GivenFlag>,
    /// Hosts of the extensions before these.
    pub kept: KeptHosts,
    /// Whether tool calls run while a host with a handler of `tool_call` is down.
    pub runs_when_down: bool,
    /// Starts processes.
    pub launcher: Launcher,
    /// Owns the tasks.
    pub tasks: TaskTracker,
    /// Takes what extensions say.
    pub log: ProgramLog,
}

/// An extension that could not be loaded. The text is pi's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Failed to load extension \"{path}\": {reason}")]
pub struct LoadError {
    /// The extension.
    pub path: String,
    /// What was the matter.
    pub reason: String,
}

/// A file of skills or prompt templates that an extension named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// What it is.
    pub kind: DiscoveredKind,
    /// The file or folder, as the extension gave it.
    pub path: String,
    /// The extension.
    pub extension: String,
}

/// A kind of resource that extensions name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveredKind {
    /// A skill, or a folder of skills.
    Skill,
    /// A prompt template, or a folder of templates.
    Prompt,
}
