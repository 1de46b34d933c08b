//! Whether shell commands can be run.

use std::time::Duration;

use agentd_config::resolve_path;
use agentd_process::{
    CommandStreams, GuardCommand, Launcher, ShellCommand, ShellError, ShellRun, StopCause, resolve_shell,
};
use agentd_protocol::{doctor::Check, settings::Settings};
use tokio_util::sync::CancellationToken;

use super::finding::Name;
use crate::admin::Context;

const SHELL: Name = Name("shell", "shell");

/// How long the shell may take for nothing.
const LIMIT: Duration = Duration::from_secs(2);

/// Finds the shell as a session does, and has it run nothing.
pub(super) async fn check(context: &Context, settings: Option<&Settings>) -> Check {
    let setting = settings.and_then(|settings| settings.shell_path.as_deref());
    let setting = setting.map(|path| resolve_path(path, &context.cwd, &context.environment));
    let env: Vec<_> =
        context.environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let advice = match &setting {
        Some(_) => "Correct shellPath in settings.json, or remove it to use bash or sh.",
        None => "Install bash, or name another shell as shellPath in settings.json.",
    };
    let shell = match resolve_shell(setting.as_deref(), &env).await {
        Ok(shell) => shell,
        Err(error) => return SHELL.problem(error.to_string(), advice),
    };
    let shown = shell.display().to_string();
    let command = ShellCommand {
        shell,
        command: "exit 0".into(),
        cwd: context.cwd.clone(),
        env,
        timeout: Some(LIMIT),
        cancel: CancellationToken::new(),
        streams: CommandStreams::Output,
    };
    // A launcher of our own: its guard ends with this check.
    let launcher = Launcher::new(GuardCommand::this_program());
    match run(&launcher, command).await {
        Ok(None) => SHELL.ok(shown),
        Ok(Some(what)) => SHELL.problem(format!("{shown} {what}"), advice),
        Err(error) => SHELL.problem(format!("{shown} cannot be run: {error}"), advice),
    }
}

/// `None` when all went well, else what went wrong.
async fn run(launcher: &Launcher, command: ShellCommand) -> Result<Option<String>, ShellError> {
    let mut run = ShellRun::start(&launcher.group(), command).await?;
    while run.next().await.is_some() {}
    let outcome = run.finish();
    Ok(match (outcome.stopped, outcome.exit) {
        (Some(StopCause::TimedOut), _) => Some(format!("did not run `exit 0` within {} s", LIMIT.as_secs())),
        (_, Some(exit)) if exit.success() => None,
        (_, Some(exit)) => Some(format!("ended `exit 0` with code {}", exit.code)),
        (_, None) => Some("could not be ended".into()),
    })
}
