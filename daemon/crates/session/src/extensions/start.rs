//! Loading the extensions of a session, before its actor runs.

use agentd_extensions::{
    ExtensionSource, ExtensionsSetup, FlagError, GivenFlag, HelloFacts, HostRunner, KeptHosts, LoadError,
    SessionExtensions, StartError,
};
use agentd_protocol::settings::WhenDown;

use super::surroundings::ExtensionSurroundings;
use crate::options::SessionMode;

/// What extensions say, below the agent directory.
const LOG: &str = "extensions.log";

/// What the extensions of a session are started with, besides its context.
pub(crate) struct ExtensionsPlan {
    /// The extensions, in load order.
    pub(crate) sources: Vec<ExtensionSource>,
    /// What runs the Node host.
    pub(crate) node: Option<HostRunner>,
    /// `startup`, `new`, `resume`, `fork` or `reload`.
    pub(crate) reason: &'static str,
    /// Flags of the command line that are none of agentd's.
    pub(crate) flags: Vec<GivenFlag>,
    /// Hosts of the extensions before.
    pub(crate) kept: KeptHosts,
}

/// Starts the hosts of a session and loads its extensions; `None` where it has none.
///
/// # Errors
/// The first extension that cannot be loaded, or the first flag that no extension has.
pub(crate) async fn load_extensions(
    surroundings: ExtensionSurroundings<'_>,
    plan: ExtensionsPlan,
) -> Result<Option<SessionExtensions>, StartError> {
    if plan.sources.is_empty() {
        // Nobody can have registered them.
        return match plan.flags.into_iter().next() {
            Some(flag) => Err(FlagError::Unknown(flag.unknown).into()),
            None => Ok(None),
        };
    }
    let extensions = SessionExtensions::start(setup(surroundings, plan)).await?;
    if let Err(error) = extensions.check_flags() {
        extensions.end().await;
        return Err(error.into());
    }
    Ok(Some(extensions))
}

/// The same in a session that is open: extensions that cannot be loaded are left out, and told of.
pub(crate) async fn load_extensions_again(
    surroundings: ExtensionSurroundings<'_>,
    plan: ExtensionsPlan,
) -> (Option<SessionExtensions>, Vec<LoadError>) {
    if plan.sources.is_empty() {
        return (None, Vec::new());
    }
    match SessionExtensions::start_again(setup(surroundings, plan)).await {
        Ok((extensions, failures)) => (Some(extensions), failures),
        Err(failure) => (None, vec![failure]),
    }
}

/// What extensions are started with in these surroundings.
pub(crate) fn setup(surroundings: ExtensionSurroundings<'_>, plan: ExtensionsPlan) -> ExtensionsSetup {
    let ExtensionsPlan { sources, mut node, reason, flags, kept } = plan;
    // Some extensions look for their flags where pi has them: on the command line of the process.
    if let Some(HostRunner::Process(node)) = &mut node {
        node.command.extend(flags.iter().flat_map(GivenFlag::words));
    }
    let ExtensionSurroundings { services, mode, .. } = surroundings;
    let agent_dir = surroundings.agent_dir.path();
    let host = surroundings.settings.extension_host.clone().unwrap_or_default();
    ExtensionsSetup {
        sources,
        node,
        env: surroundings.child_environment.to_vec(),
        facts: HelloFacts {
            session_id: surroundings.session_id.to_owned(),
            cwd: surroundings.cwd.display().to_string(),
            agent_dir: agent_dir.display().to_string(),
            mode: mode.name().to_owned(),
            has_ui: mode == SessionMode::Rpc,
            trusted: surroundings.trusted,
            cache_dir: agent_dir.join("cache").join("extensions").display().to_string(),
            ansi: host.ansi.unwrap_or(true),
        },
        reason,
        flags,
        kept,
        runs_when_down: host.when_down == Some(WhenDown::Allow),
        launcher: services.launcher.clone(),
        tasks: services.tasks.clone(),
        log: services.program_logs.at(agent_dir.join(LOG)),
    }
}
