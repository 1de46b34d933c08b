//! `agentd`: arguments in, exit code out.

use std::{io::Write, path::Path, process::ExitCode};

use agentd::{
    bug_report,
    cli::{self, HostProtocol, Invocation},
    export, fsck, list_models, logging, mcp_edit, packages, policy_check, serve, usage,
};
use agentd_config::{AgentDir, Environment};
use agentd_protocol::terminal_text::harmless;
use agentd_safe_open::{FolderFault, check_own_folder, open_folder_around};
use rustix::{fs::Mode, process::umask};

/// The exit code when the program cannot start.
const STARTUP_FAILED: u8 = 1;

/// A non-empty value lets debuggers and `/proc` look into the daemon as into other programs of the user.
const DUMPABLE: &str = "AGENTD_DUMPABLE";

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    // The guard of child processes is this program with another first argument. It has to start within a millisecond and stay small,
    // so nothing else is started before it.
    if args.next().is_some_and(|first| first == "guard") {
        return agentd_process::run_guard();
    }
    // What a sandbox can use is tried in a process with one thread, of which nothing is left.
    if std::env::args_os().nth(1).is_some_and(|first| first == agentd_session::PROBE_ARGUMENT) {
        return tell_sandbox_support();
    }
    // The reader of one PDF file, with one thread.
    if std::env::args_os().nth(1).is_some_and(|first| first == agentd_web::PDF_ARGUMENT) {
        return agentd_web::run_pdf_text();
    }
    // Within the mounts that bwrap made for a command.
    if std::env::args_os().nth(1).is_some_and(|first| first == agentd_sandbox::EXEC_ARGUMENT) {
        let error = agentd_sandbox::exec_confined(std::env::args_os().skip(2));
        return fail(&format!("the command did not run, because its sandbox could not be set up: {error}"));
    }
    let program =
        std::path::Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let environment = Environment::from_process();
    logging::start(environment.get("AGENTD_LOG"));
    harden(&environment);
    if let Err(error) = agentd_files::fail_point::arm() {
        return fail(&format!("Error: {error}"));
    }
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(error) => return fail(&format!("Error: the working directory cannot be used: {error}")),
    };
    match cli::parse(&program, &args, &cwd, environment.clone()) {
        Ok(invocation) => match check_agent_dir(&invocation, &environment, &cwd) {
            Ok(()) => run(invocation, &environment, &cwd),
            Err(error) => fail(&format!("Error: {error}")),
        },
        Err(message) => fail(&message),
    }
}

/// Writes what this system offers for sandboxes, as JSON.
fn tell_sandbox_support() -> ExitCode {
    let bwrap = std::env::args_os().nth(2);
    let support = serde_json::to_vec(&agentd_sandbox::probe(bwrap.as_deref().map(Path::new)));
    match support.map_err(std::io::Error::from).and_then(|support| std::io::stdout().write_all(&support)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Hardens the process against other programs, before there are other threads.
///
/// * No other program of the user can read the daemon's memory or initial environment, and no core dump is written: both hold keys.
///   Programs that the daemon starts are not affected. Linux only; the variable `AGENTD_DUMPABLE` turns it off.
/// * The umask never removes the user's own rights: files that cannot be read again are useless. Its other bits stay, for the files
///   that tools write.
fn harden(environment: &Environment) {
    keep_own_rights();
    if environment.non_empty(DUMPABLE).is_none() {
        be_opaque();
    }
}

fn keep_own_rights() {
    let own = Mode::RWXU;
    let given = umask(Mode::RWXG | Mode::RWXO);
    umask(given - own);
}

#[cfg(target_os = "linux")]
fn be_opaque() {
    // A sandbox may forbid it; the daemon works without.
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::debug!(%error, "other programs can read this process");
    }
}

#[cfg(not(target_os = "linux"))]
fn be_opaque() {}

/// Checks that the agent directory is this user's alone, where the program uses one.
fn check_agent_dir(
    invocation: &Invocation,
    environment: &Environment,
    cwd: &Path,
) -> Result<(), FolderFault> {
    let compat = match invocation {
        Invocation::Help
        | Invocation::Version { .. }
        | Invocation::Export { .. }
        | Invocation::LogIn { .. } => return Ok(()),
        Invocation::ListModels { compat, .. }
        | Invocation::BugReport { compat }
        | Invocation::Fsck { compat }
        | Invocation::PolicyCheck { compat }
        | Invocation::McpEdit { compat }
        | Invocation::Packages { compat }
        | Invocation::Usage { compat } => *compat,
        Invocation::Stdio(options) => options.session.compat,
        Invocation::OneShot(options) => options.session.compat,
        Invocation::Bridge(options) => options.compat,
        Invocation::Host(_, options) => options.base.compat,
        Invocation::Serve(options) => options.base.compat,
    };
    // Code that needs an agent directory reports that there is none.
    let Ok(agent_dir) = AgentDir::find(environment, compat, cwd) else { return Ok(()) };
    check_own_folder(agent_dir.path())?;
    if let Some(folder) = open_folder_around(agent_dir.path()) {
        logging::complain(&format!(
            "Warning: everybody can put another folder in the place of the agent directory {}, since {} is open to all: \
             `chmod o-w {}`",
            agent_dir.path().display(),
            folder.display(),
            folder.display()
        ));
    }
    Ok(())
}

fn run(invocation: Invocation, environment: &Environment, cwd: &Path) -> ExitCode {
    match invocation {
        Invocation::Help => print(cli::HELP),
        Invocation::Version { bare } => print(&version(bare)),
        Invocation::ListModels { search, compat } => {
            match list_models::table(search.as_deref(), environment, compat, cwd) {
                Ok((table, notes)) => {
                    notes.iter().for_each(|note| logging::complain(note));
                    print(&table)
                }
                Err(error) => fail(&format!("Error: {error}")),
            }
        }
        Invocation::Export { input, output } => {
            match export::run(&input, output.as_deref(), environment, cwd) {
                Ok(told) => print(&told),
                Err(error) => fail(&format!("Error: {error}")),
            }
        }
        Invocation::BugReport { compat } => match bug_report::run(environment, compat, cwd) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Error: {error}")),
        },
        Invocation::Fsck { compat } => match fsck::run(environment, compat, cwd, now_ms()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Error: {error}")),
        },
        Invocation::PolicyCheck { compat } => match policy_check::run(environment, compat, cwd) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Error: {error}")),
        },
        Invocation::McpEdit { compat } => match mcp_edit::run(environment, compat, cwd) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Error: {error}")),
        },
        Invocation::Packages { compat } => match packages::run(environment, compat, cwd) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Error: {error}")),
        },
        Invocation::Usage { compat } => match usage::run(environment, compat, cwd) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Error: {error}")),
        },
        Invocation::Stdio(options) => serve::stdio(*options),
        Invocation::OneShot(options) => serve::one_shot(*options),
        Invocation::Bridge(options) => serve::bridge(*options),
        Invocation::LogIn { words } => serve::log_in(words),
        Invocation::Host(HostProtocol::Acp, options) => serve::acp(*options),
        Invocation::Host(HostProtocol::Mcp, options) => serve::mcp(*options),
        Invocation::Serve(options) => serve::daemon(*options),
    }
}

/// The version to print; under the name `pi` only that of pi's protocol, which some of pi's clients compare.
fn version(bare: bool) -> String {
    let wire = agentd_protocol::WIRE_VERSION;
    if bare {
        format!("{wire}\n")
    } else {
        format!("agentd {} (pi wire {wire})\n", env!("CARGO_PKG_VERSION"))
    }
}

/// Unix time in milliseconds.
fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Prints a text without control characters: names in it come from others.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(harmless(text).as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(STARTUP_FAILED),
    }
}

fn fail(message: &str) -> ExitCode {
    logging::complain(message);
    ExitCode::from(STARTUP_FAILED)
}
