//! The program itself, the processes of its commands, the shell, and the proxy of its requests.

use std::time::Duration;

use agentd_config::{Environment, resolve_path};
use agentd_process::{
    CommandStreams, GuardCommand, Launcher, ProcessSupport, ShellCommand, ShellError, ShellRun, StopCause,
    resolve_shell,
};
use agentd_protocol::{
    WIRE_VERSION,
    doctor::Check,
    sandbox::SandboxSupport,
    settings::{SandboxMode, Settings},
};
use agentd_session::SupportCache;
use agentd_tools::SyntaxProgram;
use tokio_util::sync::CancellationToken;

use super::check::CheckName;
use crate::admin::Context;

const VERSION: CheckName = CheckName("version", "agentd");
const PROXY: CheckName = CheckName("proxy", "proxy");
const SHELL: CheckName = CheckName("shell", "shell");
const SYNTAX: CheckName = CheckName("syntax", "syntax");
pub(super) const PROCESSES: CheckName = CheckName("processes", "processes");
const SANDBOX: CheckName = CheckName("sandbox", "sandbox");

/// The time that the shell has to run `exit 0`.
const SHELL_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn version() -> Check {
    let version = format!("{} (pi wire {WIRE_VERSION})", env!("CARGO_PKG_VERSION"));
    match std::env::current_exe() {
        Ok(path) => VERSION.ok(format!("{version}, {}", path.display())),
        Err(error) => VERSION.warning(
            format!("{version}; where the program is cannot be told: {error}"),
            "Shell commands are started by the program itself: start agentd again.",
        ),
    }
}

/// Names the proxy variables that are set. Their values are not shown, since they can hold passwords.
pub(super) fn proxy(environment: &Environment) -> Check {
    let set = |names: &[&'static str]| {
        names
            .iter()
            .copied()
            .filter(|name| environment.get_os(name).is_some_and(|value| !value.is_empty()))
            .collect::<Vec<_>>()
    };
    let proxies = set(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"]);
    let except = set(&["NO_PROXY", "no_proxy"]);
    // Requests to remote providers use https.
    let catches = |name: &&str| !name.eq_ignore_ascii_case("http_proxy");
    match (proxies.is_empty(), proxies.iter().any(catches)) {
        (true, _) => PROXY.ok("none is set"),
        (false, true) => {
            let except = if except.is_empty() {
                String::new()
            } else {
                format!(", but for the hosts in {}", except.join(" and "))
            };
            PROXY.ok(format!(
                "{} set: requests to remote providers go through it{except}; servers on this machine are asked directly",
                are(&proxies)
            ))
        }
        (false, false) => {
            PROXY.ok(format!("{} set: only for http, which remote providers do not use", are(&proxies)))
        }
    }
}

fn are(names: &[&str]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "is" } else { "are" })
}

/// The program that parses for the tools `ast_grep` and `ast_edit`, where it is missing and not declined by the settings. Blocks.
pub(super) fn syntax(settings: Option<&Settings>) -> Option<Check> {
    let path = SyntaxProgram::path_beside_this_program()?;
    let wanted = settings.and_then(|settings| settings.syntax.as_ref()?.enabled);
    if path.is_file() || wanted == Some(false) {
        return None;
    }
    let detail = format!("{} is missing: sessions have no ast_grep and ast_edit", path.display());
    let advice = "Install it beside agentd, or set syntax.enabled to false.";
    Some(if wanted == Some(true) { SYNTAX.warning(detail, advice) } else { SYNTAX.ok_but(detail, advice) })
}

/// By which means commands are owned and limited on this system. Blocks for a moment.
pub(super) fn processes() -> Check {
    support(ProcessSupport::of_this_system())
}

fn support(ProcessSupport { lists_children, lasting_marks }: ProcessSupport) -> Check {
    let measured = if lists_children {
        "each command's supervisor measures limits"
    } else {
        "each command's supervisor measures limits by way of all processes, since this kernel does not list children"
    };
    let marked = if lasting_marks {
        "marks in environment and resource limits tell what a killed daemon left"
    } else {
        "marks in the environment alone tell what a killed daemon left, since its resource limits are lowered here"
    };
    PROCESSES.ok(format!("a guard owns commands; {measured}; {marked}"))
}

/// What this system enforces of a sandbox. Blocks for some milliseconds.
pub(super) fn sandbox(settings: Option<&Settings>) -> Check {
    let setting = settings.and_then(|settings| settings.sandbox.clone()).unwrap_or_default();
    let is_asked_for = setting.mode.unwrap_or_default() != SandboxMode::Off;
    match SupportCache::default().get(None) {
        Ok(support) => judge_sandbox(&support, is_asked_for, setting.required.unwrap_or(true)),
        Err(error) => SANDBOX.problem(
            format!("what this system offers cannot be found out: {error}"),
            "Reinstall agentd if its file was removed while it ran.",
        ),
    }
}

fn judge_sandbox(support: &SandboxSupport, is_asked_for: bool, is_required: bool) -> Check {
    let names: Vec<&str> = support.layers.iter().map(|layer| layer.name()).collect();
    let mode = if is_asked_for { "" } else { "; off by the settings" };
    let gaps = support.gaps();
    let here = match names.is_empty() {
        true => "nothing can be enforced here".to_owned(),
        false => format!("{} work here (landlock {})", names.join(", "), support.landlock_abi),
    };
    if gaps.is_empty() {
        return SANDBOX.ok(format!("{here}{mode}"));
    }
    let detail = format!("{here}{mode}; missing: {}", gaps.join("; "));
    let advice = "See docs/sandbox.md for what each part needs.";
    match (is_asked_for, is_required) {
        (false, _) => SANDBOX.ok(detail),
        (true, false) => SANDBOX.warning(detail, advice),
        (true, true) => SANDBOX.problem(
            format!("{detail}: sessions with a sandbox are refused"),
            "See docs/sandbox.md for what each part needs, or set sandbox.required to false to go on with what there is.",
        ),
    }
}

/// Finds the shell as a session does, and has it run `exit 0`.
pub(super) async fn shell(context: &Context, settings: Option<&Settings>) -> Check {
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
        timeout: Some(SHELL_TIMEOUT),
        cancel: CancellationToken::new(),
        streams: CommandStreams::Output,
        sandbox: None,
    };
    // A launcher for this check alone: its guard ends with it.
    let launcher = Launcher::new(GuardCommand::this_program());
    match run(&launcher, command).await {
        Ok(None) => SHELL.ok(shown),
        Ok(Some(what)) => SHELL.problem(format!("{shown} {what}"), advice),
        Err(error) => SHELL.problem(format!("{shown} cannot be run: {error}"), advice),
    }
}

/// `None` when the command succeeded, else why not.
async fn run(launcher: &Launcher, command: ShellCommand) -> Result<Option<String>, ShellError> {
    let mut run = ShellRun::start(&launcher.group(), command).await?;
    while run.next().await.is_some() {}
    let outcome = run.finish();
    Ok(match (outcome.stopped, outcome.exit) {
        (Some(StopCause::TimedOut), _) => {
            Some(format!("did not run `exit 0` within {} s", SHELL_TIMEOUT.as_secs()))
        }
        (_, Some(exit)) if exit.success() => None,
        (_, Some(exit)) => Some(format!("ended `exit 0` with code {}", exit.code)),
        (_, None) => Some("could not be ended".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_named_and_never_shown() {
        let of = |variables: &[(&str, &str)]| proxy(&variables.iter().copied().collect()).detail;
        assert_eq!(of(&[("HTTPS_PROXY", "")]), "none is set");
        let one = of(&[("HTTPS_PROXY", "http://u:hush@proxy"), ("no_proxy", "hush.example")]);
        assert!(one.starts_with("HTTPS_PROXY is set: ") && one.contains("hosts in no_proxy"), "{one}");
        assert!(!one.contains("hush"), "{one}");
        assert!(of(&[("http_proxy", "x")]).starts_with("http_proxy is set: only for http"));
        assert!(
            of(&[("ALL_PROXY", "x"), ("http_proxy", "x")]).starts_with("ALL_PROXY and http_proxy are set")
        );
    }

    #[test]
    fn the_program_is_named() {
        let version = version();
        assert!(
            version.detail.starts_with(env!("CARGO_PKG_VERSION")) && version.detail.contains('/'),
            "{version:?}"
        );
    }

    #[test]
    fn a_sandbox_that_cannot_be_enforced_is_a_problem_where_it_is_asked_for() {
        use agentd_protocol::{doctor::CheckStatus, sandbox::SandboxLayer};
        let whole = SandboxSupport {
            layers: SandboxLayer::ALL.to_vec(),
            landlock_abi: 7,
            ..SandboxSupport::default()
        };
        let check = judge_sandbox(&whole, true, true);
        assert_eq!(
            (check.status, check.detail.as_str()),
            (CheckStatus::Ok, "mounts, landlock, seccomp work here (landlock 7)")
        );
        assert!(judge_sandbox(&whole, false, true).detail.ends_with("; off by the settings"));
        let part = SandboxSupport {
            layers: vec![SandboxLayer::Landlock, SandboxLayer::Seccomp],
            landlock_abi: 4,
            missing: vec!["mounts: no namespaces".to_owned()],
        };
        for (asked, required, status) in [
            (true, true, CheckStatus::Problem),
            (true, false, CheckStatus::Warning),
            (false, true, CheckStatus::Ok),
        ] {
            let check = judge_sandbox(&part, asked, required);
            assert_eq!(check.status, status, "{check:?}");
            assert!(
                check.detail.contains("mounts: no namespaces") && check.detail.contains("signals"),
                "{check:?}"
            );
        }
        let nothing = judge_sandbox(&SandboxSupport::default(), true, true);
        assert!(nothing.detail.starts_with("nothing can be enforced here"), "{nothing:?}");
    }

    #[test]
    fn each_means_is_named() {
        let detail =
            |lists_children, lasting_marks| support(ProcessSupport { lists_children, lasting_marks }).detail;
        assert_eq!(
            detail(true, true),
            "a guard owns commands; each command's supervisor measures limits; marks in environment and resource limits \
             tell what a killed daemon left"
        );
        assert!(
            detail(false, false).contains("does not list children") && detail(false, false).contains("alone")
        );
    }
}
