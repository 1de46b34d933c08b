//! The hooks that a session is opened with.

use std::path::{Path, PathBuf};

use agentd_config::{AgentDir, Environment, ProjectFolders, StartingFiles};
use agentd_hooks::{HookOptions, HookSet, HookSources, load};
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind},
    settings::Settings,
};

/// Where the hooks of a session are looked for.
pub(crate) struct HookPlace<'a> {
    pub(crate) agent_dir: &'a AgentDir,
    pub(crate) environment: &'a Environment,
    pub(crate) cwd: &'a Path,
    pub(crate) folders: &'a ProjectFolders,
    /// The project's files that trust is for; `None` where it is not trusted.
    pub(crate) trusted: Option<&'a StartingFiles>,
    pub(crate) settings: &'a Settings,
}

/// Reads the hooks. Blocks.
///
/// Those of a project are left out where its files are not the ones that it is trusted with: they are compared once more after they
/// were read.
pub(crate) fn load_hooks(place: &HookPlace<'_>, found: &mut Vec<Diagnostic>) -> HookSet {
    let HookPlace { agent_dir, environment, cwd, folders, trusted, settings } = *place;
    let home = environment.non_empty("HOME").map(PathBuf::from);
    let mut sources = HookSources {
        agent_dir,
        cwd,
        project: trusted.map(|_| folders),
        home: home.as_deref(),
        is_in_settings: settings.hooks.is_some(),
        options: HookOptions::of(settings),
    };
    let before = found.len();
    let set = load(&sources, found);
    let Some(trusted) = trusted.filter(|_| set.all().any(|hook| hook.origin().is_of_project)) else {
        return set;
    };
    let now = StartingFiles::of(cwd, folders, agent_dir, environment);
    let changed = now.differing(trusted, cwd);
    let Some(file) = changed.first() else { return set };
    found.truncate(before);
    let text = "the hooks of the project are not run: its files are not those that it is trusted with";
    let hint = "open the session anew, and you are asked again";
    found.push(Diagnostic::warning(DiagnosticKind::Trust, text).at(file).hint(hint));
    sources.project = None;
    load(&sources, found)
}
