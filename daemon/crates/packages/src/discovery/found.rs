//! What a discovery finds.

use std::path::PathBuf;

use agentd_config::resources::{PackageFile, PackageResources};
use agentd_protocol::resources::{Diagnostic, SourceInfo};

use crate::entries::ExtensionKind;

/// The built-in extensions of pi, by their names.
pub const BUILTIN_EXTENSIONS: [&str; 4] = ["llama.cpp", "codemode", "tool-search", "mcp"];

/// What begins the name of a built-in extension where a path could stand.
pub(super) const BUILTIN_PREFIX: &str = "builtin:";

/// Who named an extension. Extensions are loaded in this order; those of one rank in the order in which they were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadRank {
    /// `--extension`.
    Flag,
    /// The setting `extensions` of the project.
    ProjectSettings,
    /// A folder of extensions of the project.
    ProjectFolder,
    /// The setting `extensions` of the user.
    UserSettings,
    /// The folder of extensions of the agent directory.
    UserFolder,
    /// A package of the settings.
    Package,
    /// agentd itself.
    Builtin,
}

/// An extension to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundExtension {
    /// What errors name: its file, or the folder that is a module, with symbolic links as they are; `builtin:NAME`.
    pub path: String,
    /// What is loaded: the same without symbolic links. Of a built-in extension its name.
    pub entry: PathBuf,
    /// The folder that the extension's own relative paths count from; empty for a built-in one.
    pub base_dir: PathBuf,
    /// Its source, as `get_commands` has it for its commands.
    pub source_info: SourceInfo,
    /// Its place in the order of loading.
    pub rank: LoadRank,
    /// Whether it only counts because the project is trusted.
    pub needs_trust: bool,
    /// What runs it.
    pub kind: ExtensionKind,
}

/// An extension that was asked for and cannot be loaded. With one of these pi does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Failed to load extension \"{path}\": {reason}")]
pub struct ExtensionError {
    /// What was asked for.
    pub path: String,
    /// Why it cannot be loaded, in pi's words.
    pub reason: String,
}

/// The result of [`discover`](crate::discover).
#[derive(Debug, Default, PartialEq)]
pub struct Discovery {
    /// In the order of loading.
    pub extensions: Vec<FoundExtension>,
    /// Skills and prompt templates of packages.
    pub resources: PackageResources,
    /// Themes of packages.
    pub themes: Vec<PackageFile>,
    /// Extensions of flags that are not there.
    pub errors: Vec<ExtensionError>,
    /// What is wrong with settings, manifests and packages.
    pub diagnostics: Vec<Diagnostic>,
}
