//! Serving: a runtime, ways in, connections, and an orderly end.

mod bridge;
mod daemon;
mod limits;
mod once_free;
mod one_shot;
mod outputs;
mod signals;
mod stdio;

use std::{future::Future, path::Path, process::ExitCode};

use agentd_config::Environment;
use agentd_memory::AddressSpace;
use agentd_process::OutputRetention;
use agentd_protocol::{
    event::{Event, Ready},
    lines::write_line,
    resources::{Diagnostic, DiagnosticLevel},
};
use agentd_session::OpenError;

pub use self::{bridge::bridge, daemon::daemon, one_shot::one_shot, stdio::stdio};
use crate::{
    complain,
    hub::{resource_limits, share_one_arena},
};

/// Ends with this when starting or writing fails.
const FAILED: u8 = 1;

/// Threads that run tasks. The work is waiting, moving lines and encoding; more threads would only cost memory.
const WORKERS: usize = 2;

/// What the user's settings say that long outputs may take of the disk. Reads files.
pub(crate) fn output_bounds(environment: &Environment, compat: bool, cwd: &Path) -> OutputRetention {
    limits::DaemonLimits::load(environment, compat, cwd).outputs
}

/// What part of a limited address space threads that wait for files may take with their stacks.
const STACKS_PART: u64 = 16;

/// How many threads wait for files where nothing limits them, and at least.
const BLOCKING: std::ops::RangeInclusive<u64> = 4..=512;

/// The stack of a thread, in bytes.
const STACK_BYTES: u64 = 2 << 20;

/// How many threads may wait for files, in the address space that the system allows.
fn blocking_threads(address_space: Option<u64>) -> usize {
    let fit = address_space.map_or(u64::MAX, |limit| limit / STACKS_PART / STACK_BYTES);
    // At most 512.
    usize::try_from(fit.clamp(*BLOCKING.start(), *BLOCKING.end())).unwrap_or_default()
}

/// Runs to the end on a new runtime, and tells what went wrong. Tasks that still wait then are dropped.
fn run(serving: impl Future<Output = Result<ExitCode, String>>) -> ExitCode {
    let address_space = AddressSpace::of_this_process().limit();
    if address_space.is_some() {
        share_one_arena();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(blocking_threads(address_space))
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("Error: cannot start the runtime: {error}"), FAILED),
    };
    let code = runtime.block_on(serving).unwrap_or_else(|message| fail(&message, FAILED));
    // A thread that reads stdin may wait there for ever.
    runtime.shutdown_background();
    code
}

/// Sees to it that the system lets this process open enough files.
///
/// # Errors
/// Says how many it has to be, and how to get there.
fn check_file_limit() -> Result<(), String> {
    match resource_limits::file_limit() {
        Some(limit) if limit < resource_limits::MIN_FILES => Err(format!(
            "Error: the system lets agentd open {limit} files (`ulimit -n`), and it needs at least {}. Raise the limit before it is started: \
             `ulimit -n {}`.",
            resource_limits::MIN_FILES,
            resource_limits::RECOMMENDED_FILES,
        )),
        _ => Ok(()),
    }
}

/// The line that says that commands are taken, for hosts that wait for it (`--ready`).
fn ready_line() -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    let event = serde_json::to_vec(&Event::from(Ready {}))
        .map_err(|error| format!("Error: cannot write the first line: {error}"))?;
    write_line(&event, &mut line);
    Ok(line)
}

/// Why a session could not be opened, and what to do about it.
fn not_opened(error: &OpenError) -> String {
    let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("Error: {error}{hint}")
}

/// The text with what follows a line break indented: a name in it can have one, and is to pass for no line of ours.
fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

/// Tells the user what is wrong with what a session was opened from.
fn tell_of(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics.iter().filter(|it| it.level > DiagnosticLevel::Info) {
        complain(&format!("Warning: {}", indented(&diagnostic.to_string())));
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    complain(message);
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_fit_into_the_address_space() {
        assert_eq!(blocking_threads(None), 512);
        assert_eq!(blocking_threads(Some(200 << 20)), 6);
        assert_eq!(blocking_threads(Some(1)), 4);
    }
}
