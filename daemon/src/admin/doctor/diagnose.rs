//! All checks, in their order.

use std::{path::Path, sync::Arc};

use agentd_auth::Auth;
use agentd_config::{
    AgentDir,
    models::ModelRegistry,
    settings::{self, LoadedSettings},
};
use agentd_protocol::doctor::{Check, Diagnosis};
use tokio::task::spawn_blocking;

use super::{
    finding::{Name, summary},
    folders, keys, models, processes, program, resources, servers, settings as settings_check, shell,
};
use crate::admin::Context;

/// What a session that started now would find.
pub(super) struct Found {
    pub(super) agent_dir: AgentDir,
    pub(super) settings: LoadedSettings,
    pub(super) registry: Arc<ModelRegistry>,
    pub(super) auth: Auth,
}

impl Found {
    /// Reads all files. Blocks.
    pub(super) fn read(context: &Context) -> Option<Self> {
        let agent_dir = context.agent_dir().ok()?;
        let settings = settings::load(&agent_dir, &context.cwd, &context.environment, None);
        let (registry, auth) = context.load().ok()?;
        Some(Self { agent_dir, settings, registry, auth })
    }
}

/// Does all checks. One that fails never keeps the others from being done. Nothing is changed on disk, and the only
/// network traffic is a model listing of servers on this machine.
///
/// Takes about as long as the slowest of shell and servers. Cancel safety: dropping it ends what runs.
pub(crate) async fn diagnose(context: Context) -> Diagnosis {
    let context = Arc::new(context);
    let reading = {
        let context = Arc::clone(&context);
        spawn_blocking(move || Found::read(&context).map(Arc::new))
    };
    let found = reading.await.unwrap_or_else(|error| {
        tracing::error!(%error, "reading the set-up failed");
        None
    });
    let files = {
        let (context, found) = (Arc::clone(&context), found.clone());
        spawn_blocking(move || files(&context, found.as_deref()))
    };
    let (shell, servers, files) = tokio::join!(
        shell::check(&context, found.as_ref().map(|found| &found.settings.settings)),
        servers::check(found.as_ref().map(|found| &found.agent_dir)),
        files
    );
    let mut checks = files.unwrap_or_else(|error| {
        let detail = format!("the checks of files broke off: {error}");
        vec![Name("files", "files").problem(detail, "This is a fault of agentd: please report it.")]
    });
    // The shell comes after the folder of sessions and before what owns its processes.
    let place = checks.iter().position(|check| check.id == processes::PROCESSES.0).unwrap_or(checks.len());
    checks.insert(place, shell);
    checks.extend(servers);
    checks.push(program::proxy(&context.environment));
    Diagnosis { summary: summary(&checks), checks }
}

/// Everything that is read from disk. Blocks.
fn files(context: &Context, found: Option<&Found>) -> Vec<Check> {
    let mut checks = vec![program::version()];
    match found {
        Some(found) => {
            let models_file = found.agent_dir.models_file();
            checks.push(folders::agent_dir(found.agent_dir.path()));
            checks.extend(settings_check::check(context, found));
            checks.extend(resources::check(context, found));
            checks.push(models::catalogue(&found.registry));
            checks.extend(models::file(&models_file, &found.registry));
            checks.extend(keys::check(context, found));
            checks.extend(keys::file(&found.agent_dir));
            checks.extend(keys::misspelt(found));
            checks.push(models::default_model(found));
            checks.push(folders::sessions(context, found));
        }
        None => checks.push(no_agent_dir(context)),
    }
    checks.push(processes::check());
    checks.push(folders::temp(&context.environment));
    checks
}

fn no_agent_dir(context: &Context) -> Check {
    let why = context
        .agent_dir()
        .err()
        .map_or_else(|| "the set-up could not be read".into(), |error| error.to_string());
    folders::AGENT_DIR.problem(why, "Set HOME, or AGENTD_DIR to a folder of yours.")
}

/// A path as people read it.
pub(super) fn show(path: &Path) -> String {
    path.display().to_string()
}
