//! `agentd`: arguments in, exit code out.

use std::{io::Write, path::Path, process::ExitCode};

use agentd::{
    bug_report,
    cli::{self, Invocation},
    export, fsck, hardening, list_models, logging, serve,
};
use agentd_config::{AgentDir, Environment};
use agentd_protocol::terminal_text::harmless;
use agentd_safe_open::{FolderFault, check_own_folder, open_folder_around};

/// Ends with this when the command line or the session makes starting impossible.
const STARTUP_FAILED: u8 = 1;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    // The guard of child processes is this program under another first argument. It must be up in a millisecond and
    // stay small, so nothing else is started before it.
    if args.next().is_some_and(|first| first == "guard") {
        return agentd_process::run_guard();
    }
    let program =
        std::path::Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let environment = Environment::from_process();
    logging::start(environment.get("AGENTD_LOG"));
    hardening::apply(&environment);
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

/// Whether the agent directory is this user's alone, where the program uses one.
fn check_agent_dir(
    invocation: &Invocation,
    environment: &Environment,
    cwd: &Path,
) -> Result<(), FolderFault> {
    let compat = match invocation {
        Invocation::Help | Invocation::Version { .. } | Invocation::Export { .. } => return Ok(()),
        Invocation::ListModels { compat, .. }
        | Invocation::BugReport { compat }
        | Invocation::Fsck { compat } => *compat,
        Invocation::Stdio(options) => options.session.compat,
        Invocation::OneShot(options) => options.session.compat,
        Invocation::Bridge(options) => options.compat,
        Invocation::Serve(options) => options.base.compat,
    };
    // That there is none is told by whoever needs it.
    let Ok(agent_dir) = AgentDir::find(environment, compat, cwd) else { return Ok(()) };
    check_own_folder(agent_dir.path())?;
    if let Some(folder) = open_folder_around(agent_dir.path()) {
        agentd::complain(&format!(
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
                    notes.iter().for_each(|note| agentd::complain(note));
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
        Invocation::Stdio(options) => serve::stdio(*options),
        Invocation::OneShot(options) => serve::one_shot(*options),
        Invocation::Bridge(options) => serve::bridge(*options),
        Invocation::Serve(options) => serve::daemon(*options),
    }
}

/// Under the reference's name only the version of the wire, which some of its clients compare.
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

/// Names in it are others' as well.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(harmless(text).as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(STARTUP_FAILED),
    }
}

fn fail(message: &str) -> ExitCode {
    agentd::complain(message);
    ExitCode::from(STARTUP_FAILED)
}
