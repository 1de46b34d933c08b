//! `agentd --packages`: packages as users manage them, for `agentctl install` and its like. The request comes on stdin; stdout gets lines.

use std::{
    io::{self, BufRead, Write},
    path::Path,
};

use agentd_auth::AuthServices;
use agentd_config::{
    AgentDir, Environment, NoAgentDir,
    resources::ResourceFlags,
    settings::{LoadedSettings, load},
};
use agentd_packages::{
    DiscoveryQuery, InstallError, ManageError, PackageInstaller, PackageManager, SettingsChange,
};
use agentd_process::{GuardCommand, Launcher};
use agentd_protocol::package_request::{
    ListedPackage, PackageAnswer, PackageRequest, PackageTask, UpdatedPackage,
};
use agentd_session::{ChildSources, child_environment};

use crate::admin::Context;

/// Why nothing was done, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum PackageRequestError {
    /// The folder of the user's settings is unknown.
    #[error(transparent)]
    NoAgentDir(#[from] NoAgentDir),
    /// Stdin holds no request.
    #[error("--packages is for agentctl install and its like, which say on stdin what to do (line {line}, column {column})", line = .0.line(), column = .0.column())]
    Request(serde_json::Error),
    /// The task is refused, or failed.
    #[error(transparent)]
    Refused(#[from] ManageError),
    /// Stdin or stdout failed.
    #[error("the answer cannot be passed on: {0}")]
    Io(#[from] io::Error),
}

impl From<InstallError> for PackageRequestError {
    fn from(error: InstallError) -> Self {
        Self::Refused(error.into())
    }
}

/// Answers one request.
///
/// # Errors
/// [`PackageRequestError`].
pub fn run(environment: &Environment, compat: bool, cwd: &Path) -> Result<(), PackageRequestError> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: PackageRequest = serde_json::from_str(&line).map_err(PackageRequestError::Request)?;
    let agent_dir = AgentDir::find(environment, compat, cwd)?;
    let loaded = load(&agent_dir, cwd, environment, request.approve.then_some(true));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let context = Context {
        environment: environment.clone(),
        cwd: cwd.to_owned(),
        compat,
        auth_services: AuthServices::default(),
    };
    runtime.block_on(answer(&context, &agent_dir, &loaded, request.task))
}

async fn answer(
    context: &Context,
    agent_dir: &AgentDir,
    loaded: &LoadedSettings,
    task: PackageTask,
) -> Result<(), PackageRequestError> {
    let LoadedSettings { settings, folders, trust, resources, .. } = loaded;
    let (_, auth) = context.load()?;
    let query = DiscoveryQuery {
        agent_dir,
        cwd: &context.cwd,
        folders,
        trusted: trust.trusted,
        environment: &context.environment,
        lists: resources,
        flags: &ResourceFlags::default(),
        no_mcp: false,
    };
    let programs = child_environment(&ChildSources {
        environment: &context.environment,
        keys: &auth.key_variables(),
        settings: settings.child_environment.as_ref(),
        agent_dir: agent_dir.path(),
        compat: context.compat,
    });
    let launcher = Launcher::with_owners(GuardCommand::this_program(), agent_dir.owners_dir());
    let progress = |message: String| {
        // A client that is gone needs no progress; the result tells whether it is.
        let _ = print(&PackageAnswer::Progress { message });
    };
    let installer = PackageInstaller::new(&query, settings, &launcher, programs.to_vec(), &progress)?;
    let manager = PackageManager { query: &query };
    let changed = |SettingsChange { path, changed }: SettingsChange, local: bool| {
        // The file that was just written may be the first that needs trust.
        let used = !local || load(agent_dir, &context.cwd, &context.environment, None).trust.trusted;
        PackageAnswer::Settings { path: path.display().to_string(), changed, used }
    };
    let answer = match task {
        PackageTask::Install { source, local } => {
            progress(format!("Installing {}...", agentd_packages::without_password(&source)));
            changed(manager.install(&installer, &source, local).await?, local)
        }
        PackageTask::Remove { source, local } => {
            progress(format!("Removing {}...", agentd_packages::without_password(&source)));
            changed(manager.remove(&installer, &source, local).await?, local)
        }
        PackageTask::List => {
            let listed = manager.list().into_iter().map(|package| ListedPackage {
                source: package.source,
                scope: package.scope,
                filtered: package.filtered,
                installed_path: package.installed.map(|path| path.display().to_string()),
            });
            PackageAnswer::Packages { packages: listed.collect() }
        }
        PackageTask::Update { source } => {
            let updated = manager.update(&installer, source.as_deref()).await?;
            let updated = updated.into_iter().map(|package| UpdatedPackage {
                source: package.source,
                scope: package.scope,
                from: package.from,
                to: package.to,
            });
            PackageAnswer::Updated { updated: updated.collect(), offline: installer.is_offline() }
        }
    };
    Ok(print(&answer)?)
}

fn print(answer: &PackageAnswer) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, answer).map_err(io::Error::from)?;
    out.write_all(b"\n").and_then(|()| out.flush())
}
