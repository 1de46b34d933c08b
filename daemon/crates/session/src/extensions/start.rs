//! Loading the extensions of a session, before its actor runs.

use agentd_extensions::{
    ExtensionSource, ExtensionsSetup, FlagError, GivenFlag, HelloFacts, HostProgram, SessionExtensions,
    StartError,
};
use agentd_protocol::settings::WhenDown;

use crate::{context::SessionContext, options::SessionMode};

/// What extensions say, below the agent directory.
const LOG: &str = "extensions.log";

/// What the extensions of a session are started with, besides its context.
pub(crate) struct ExtensionsPlan {
    /// The extensions, in load order.
    pub(crate) sources: Vec<ExtensionSource>,
    /// The program of the Node host.
    pub(crate) node: Option<HostProgram>,
    /// `startup`, `new`, `resume` or `fork`.
    pub(crate) reason: &'static str,
    /// Flags of the command line that are none of agentd's.
    pub(crate) flags: Vec<GivenFlag>,
}

/// Starts the hosts of a session and loads its extensions; `None` where it has none.
///
/// # Errors
/// The first extension that cannot be loaded, or the first flag that no extension has.
pub(crate) async fn load_extensions(
    context: &SessionContext,
    plan: ExtensionsPlan,
) -> Result<Option<SessionExtensions>, StartError> {
    let ExtensionsPlan { sources, mut node, reason, flags } = plan;
    if sources.is_empty() {
        // Nobody can have registered them.
        return match flags.into_iter().next() {
            Some(flag) => Err(FlagError::Unknown(flag.unknown).into()),
            None => Ok(None),
        };
    }
    // Some extensions look for their flags where pi has them: on the command line of the process.
    if let Some(node) = &mut node {
        node.command.extend(flags.iter().flat_map(GivenFlag::words));
    }
    let agent_dir = context.agent_dir.path();
    let host = context.settings.extension_host.clone().unwrap_or_default();
    let setup = ExtensionsSetup {
        sources,
        node,
        env: context.child_environment.to_vec(),
        facts: HelloFacts {
            session_id: context.session_id.clone(),
            cwd: context.cwd.display().to_string(),
            agent_dir: agent_dir.display().to_string(),
            mode: context.mode.name().to_owned(),
            has_ui: context.mode == SessionMode::Rpc,
            trusted: context.prompt.is_trusted(),
            cache_dir: agent_dir.join("cache").join("extensions").display().to_string(),
            ansi: host.ansi.unwrap_or(true),
        },
        reason,
        flags,
        runs_when_down: host.when_down == Some(WhenDown::Allow),
        launcher: context.services.launcher.clone(),
        tasks: context.services.tasks.clone(),
        log: context.services.program_logs.at(agent_dir.join(LOG)),
    };
    let extensions = SessionExtensions::start(setup).await?;
    if let Err(error) = extensions.check_flags() {
        extensions.shut_down("quit").await;
        return Err(error.into());
    }
    Ok(Some(extensions))
}
