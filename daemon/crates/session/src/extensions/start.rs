//! Loading the extensions of a session, before its actor runs.

use agentd_extensions::{
    ExtensionSource, ExtensionsSetup, HelloFacts, HostProgram, LoadError, SessionExtensions,
};
use agentd_protocol::settings::WhenDown;
use serde_json::Map;

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
}

/// Starts the hosts of a session and loads its extensions; `None` where it has none.
///
/// # Errors
/// [`LoadError`] of the first that cannot be loaded.
pub(crate) async fn load_extensions(
    context: &SessionContext,
    plan: ExtensionsPlan,
) -> Result<Option<SessionExtensions>, LoadError> {
    let ExtensionsPlan { sources, node, reason } = plan;
    if sources.is_empty() {
        return Ok(None);
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
        flags: Map::new(),
        runs_when_down: host.when_down == Some(WhenDown::Allow),
        launcher: context.services.launcher.clone(),
        tasks: context.services.tasks.clone(),
        log: context.services.program_logs.at(agent_dir.join(LOG)),
    };
    SessionExtensions::start(setup).await.map(Some)
}
