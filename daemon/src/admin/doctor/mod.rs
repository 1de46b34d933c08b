//! `diagnose`: checks everything that a session needs, and advises where something is missing.

mod check;
mod config_files;
mod folders;
mod hooks;
mod keys;
mod lsp;
mod mcp;
mod models;
mod packages;
mod program;
mod servers;
mod telemetry;

use std::sync::Arc;

use agentd_protocol::doctor::{Check, Diagnosis};
use tokio::task::spawn_blocking;

use self::check::{CheckName, LoadedSetup, summary};
use super::context::Context;

/// Runs all checks; one that fails never stops the others. Changes nothing on disk, and the only network request is a model
/// listing of servers on this machine.
///
/// Takes about as long as the slower of shell and servers. Cancel safety: dropping it ends what runs.
pub(crate) async fn diagnose(context: Context) -> Diagnosis {
    let context = Arc::new(context);
    let reading = {
        let context = Arc::clone(&context);
        spawn_blocking(move || LoadedSetup::read(&context).map(Arc::new))
    };
    let found = reading.await.unwrap_or_else(|error| {
        tracing::error!(%error, "reading the set-up failed");
        None
    });
    let files = {
        let (context, found) = (Arc::clone(&context), found.clone());
        spawn_blocking(move || files(&context, found.as_deref()))
    };
    let packages = async {
        let (context, found) = (Arc::clone(&context), found.clone()?);
        let setup = Arc::clone(&found);
        let looking = spawn_blocking({
            let context = Arc::clone(&context);
            move || packages::check(&context, &found)
        });
        let mut found = looking.await.ok()?;
        found.checks.extend(packages::node(&context, &setup, &found).await);
        Some(found.checks)
    };
    let (shell, servers, files, packages) = tokio::join!(
        program::shell(&context, found.as_ref().map(|found| &found.settings.settings)),
        servers::check(found.as_ref().map(|found| &found.agent_dir)),
        files,
        packages
    );
    let mut checks = files.unwrap_or_else(|error| {
        let detail = format!("the checks of files broke off: {error}");
        vec![CheckName("files", "files").problem(detail, "This is a fault of agentd: please report it.")]
    });
    // The shell comes between the folder of sessions and the processes.
    let position = checks.iter().position(|check| check.id == program::PROCESSES.0).unwrap_or(checks.len());
    checks.insert(position, shell);
    checks.extend(packages.into_iter().flatten());
    checks.extend(servers);
    checks.push(program::proxy(&context.environment));
    Diagnosis { summary: summary(&checks), checks }
}

/// The checks that read files. Blocks.
fn files(context: &Context, found: Option<&LoadedSetup>) -> Vec<Check> {
    let mut checks = vec![program::version()];
    match found {
        Some(found) => {
            let models_file = found.agent_dir.models_file();
            checks.push(folders::agent_dir(found.agent_dir.path()));
            checks.extend(config_files::settings(context, found));
            checks.extend(config_files::resources(context, found));
            checks.push(models::catalogue(&found.registry));
            checks.extend(models::file(&models_file, &found.registry));
            checks.extend(keys::check(context, found));
            checks.extend(keys::file(&found.agent_dir));
            checks.extend(keys::misspelt(found));
            checks.push(models::default_model(found));
            checks.push(folders::sessions(context, found));
            checks.extend(mcp::check(context, found));
            checks.extend(lsp::check(context, found));
            checks.extend(hooks::check(context, found));
            checks.extend(telemetry::check(context, found));
        }
        None => checks.push(no_agent_dir(context)),
    }
    checks.push(program::processes());
    checks.push(program::sandbox(found.map(|found| &found.settings.settings)));
    checks.extend(program::syntax(found.map(|found| &found.settings.settings)));
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
