//! Packages that are not installed, and what extensions need to run.

use agentd_config::resources::ResourceFlags;
use agentd_packages::{DiscoveryQuery, ExtensionKind, PackageManager, discover, find_node, without_password};
use agentd_process::{GuardCommand, Launcher};
use agentd_protocol::{
    doctor::Check,
    package_request::names_a_path,
    resources::{Diagnostic, SourceScope},
};
use agentd_session::{ChildSources, child_environment};

use super::check::{CheckName, LoadedSetup, counted};
use crate::admin::Context;

const PACKAGES: CheckName = CheckName("packages", "packages");
const EXTENSIONS: CheckName = CheckName("extensions", "extensions");
const NODE: CheckName = CheckName("node", "Node.js");

/// What the packages and extensions of a session in this folder are.
pub(super) struct FoundPackages {
    pub(super) checks: Vec<Check>,
    /// Whether an extension needs Node.js.
    needs_node: bool,
}

/// One check with the number of packages, one for each that is not installed, and one with the number of extensions; none where there are
/// neither. Blocks.
pub(super) fn check(context: &Context, found: &LoadedSetup) -> FoundPackages {
    let query = DiscoveryQuery {
        agent_dir: &found.agent_dir,
        cwd: &context.cwd,
        folders: &found.settings.folders,
        trusted: found.settings.trust.trusted,
        environment: &context.environment,
        lists: &found.settings.resources,
        flags: &ResourceFlags::default(),
        no_mcp: false,
    };
    let mut checks = Vec::new();
    let packages = PackageManager { query: &query }.list();
    if !packages.is_empty() {
        checks.push(PACKAGES.ok(counted(packages.len(), "package")));
    }
    // A path that is not there is told below.
    let missing = packages.iter().filter(|it| it.installed.is_none() && !names_a_path(&it.source));
    checks.extend(missing.map(|package| {
        let local = if package.scope == SourceScope::Project { " --local" } else { "" };
        let source = without_password(&package.source);
        PACKAGES.warning(
            format!("{source} is not installed"),
            format!(
                "`agentctl install {source}{local}` installs it and says what goes wrong; `agentctl remove {source}{local}` takes it \
                 out of the settings."
            ),
        )
    }));
    let discovery = discover(&query);
    let is_node = |kind: &ExtensionKind| *kind == ExtensionKind::Node;
    let own = discovery.extensions.iter().filter(|it| !matches!(it.kind, ExtensionKind::Builtin(_)));
    let kinds: Vec<&ExtensionKind> = own.map(|extension| &extension.kind).collect();
    let needs_node = kinds.iter().any(|kind| is_node(kind));
    if !kinds.is_empty() {
        checks.push(EXTENSIONS.ok(counted(kinds.len(), "extension")));
    }
    checks.extend(discovery.diagnostics.into_iter().map(|it| {
        let advice = it.hint.clone().unwrap_or_else(|| "Correct the file or remove it.".into());
        EXTENSIONS.warning(Diagnostic { hint: None, ..it }.to_string(), advice)
    }));
    FoundPackages { checks, needs_node }
}

/// Whether there is a Node.js for the extensions; nothing where none needs it.
pub(super) async fn node(context: &Context, setup: &LoadedSetup, found: &FoundPackages) -> Option<Check> {
    if !found.needs_node {
        return None;
    }
    let settings = &setup.settings.settings;
    let programs = child_environment(&ChildSources {
        environment: &context.environment,
        keys: &setup.auth.key_variables(),
        settings: settings.child_environment.as_ref(),
        agent_dir: setup.agent_dir.path(),
        compat: context.compat,
    });
    // A launcher for this check alone: its guard ends with it.
    let launcher = Launcher::new(GuardCommand::this_program());
    let node =
        find_node(settings, &setup.agent_dir, &context.environment, programs.to_vec(), &launcher).await;
    Some(match node {
        Ok(node) => NODE.ok(format!("{} ({})", node.version, node.program.display())),
        Err(error) => NODE.warning(
            format!("extensions need it: {error}"),
            "Install Node.js, version 20 or later, or name it as extensionHost.node in settings.json.",
        ),
    })
}
