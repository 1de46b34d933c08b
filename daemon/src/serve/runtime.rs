//! The process around a serving future: the runtime, the signals, the exit codes, and the messages on stderr.

use std::process::ExitCode;

use agentd_memory::AddressSpace;
use agentd_protocol::{
    chunked::Ready,
    event::Event,
    lines::write_line,
    resources::{Diagnostic, DiagnosticLevel},
};
use agentd_session::OpenError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    hub::{limit_arenas, resource_limits},
    limits::{BLOCKING_THREADS, MIN_FILES, RECOMMENDED_FILES, WORKER_THREADS},
    logging::complain,
};

/// The exit code when starting or writing fails.
pub(super) const FAILED: u8 = 1;

/// The stacks of threads that wait for files may take this part of a limited address space.
const STACKS_PART: u64 = 16;

/// The stack of a thread, in bytes.
const STACK_BYTES: u64 = 2 << 20;

/// The arenas from which all threads allocate. Threads that wait for files come and go, and an arena of its own for each keeps what they have
/// freed: a tenth of the memory of a session. With one, the runtime's threads wait for each other.
const ARENAS: u8 = 2;

/// Pure. How many threads may wait for files, in the address space that the system allows.
fn blocking_threads(address_space: Option<u64>) -> usize {
    let fit = address_space.map_or(u64::MAX, |limit| limit / STACKS_PART / STACK_BYTES);
    usize::try_from(fit.clamp(*BLOCKING_THREADS.start(), *BLOCKING_THREADS.end())).unwrap_or_default()
}

/// The threads that run tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workers {
    /// The thread of the caller. For one client: a prompt is passed from task to task about thirty times, and each time the tasks of a
    /// runtime with several threads wake another of them, which costs more than the work.
    CallingThread,
    /// [`WORKER_THREADS`]. For several clients, and for an editor, whose files are read while the model goes on.
    Several,
}

/// Runs `serving` on a new runtime, and reports its error on stderr. Tasks that still wait then are dropped.
pub(super) fn run(workers: Workers, serving: impl Future<Output = Result<ExitCode, String>>) -> ExitCode {
    let address_space = AddressSpace::of_this_process().limit();
    limit_arenas(if address_space.is_some() { 1 } else { ARENAS });
    let mut builder = match workers {
        Workers::CallingThread => tokio::runtime::Builder::new_current_thread(),
        Workers::Several => tokio::runtime::Builder::new_multi_thread(),
    };
    if workers == Workers::Several {
        builder.worker_threads(WORKER_THREADS);
    }
    let runtime = builder.max_blocking_threads(blocking_threads(address_space)).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("Error: cannot start the runtime: {error}"), FAILED),
    };
    let code = runtime.block_on(serving).unwrap_or_else(|message| fail(&message, FAILED));
    // Does not wait for a thread that reads stdin: it may wait for ever.
    runtime.shutdown_background();
    code
}

/// Does `serving` as a task of the runtime: to wake what a runtime blocks on takes two system calls each time, a task of its own thread none.
pub(super) async fn as_task(
    serving: impl Future<Output = Result<ExitCode, String>> + Send + 'static,
) -> Result<ExitCode, String> {
    tokio::spawn(serving).await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => Err(format!("Error: {error}")),
    })
}

/// Checks that the system lets this process open enough files.
///
/// # Errors
/// A sentence that says how many it needs, and how to raise the limit.
pub(super) fn check_file_limit() -> Result<(), String> {
    match resource_limits::file_limit() {
        Some(limit) if limit < MIN_FILES => Err(format!(
            "Error: the system lets agentd open {limit} files (`ulimit -n`), and it needs at least {}. Raise the limit before it is started: \
             `ulimit -n {}`.",
            MIN_FILES, RECOMMENDED_FILES,
        )),
        _ => Ok(()),
    }
}

/// The line that tells a host that commands are accepted (`--ready`).
pub(super) fn ready_line() -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    let event = serde_json::to_vec(&Event::from(Ready::default()))
        .map_err(|error| format!("Error: cannot write the first line: {error}"))?;
    write_line(&event, &mut line);
    Ok(line)
}

/// The message for a session that could not be opened, with its hint.
pub(super) fn not_opened(error: &OpenError) -> String {
    let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("Error: {error}{hint}")
}

/// The text with each line after the first indented: a name in it may contain a line break and must not pass for a line of ours.
fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

/// Prints the problems that opening a session found.
pub(super) fn tell_of(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics.iter().filter(|it| it.level > DiagnosticLevel::Info) {
        complain(&format!("Warning: {}", indented(&diagnostic.to_string())));
    }
}

/// Prints a message and gives the exit code.
pub(super) fn fail(message: &str, code: u8) -> ExitCode {
    complain(message);
    ExitCode::from(code)
}

/// Waits for the signals that end the process.
pub(super) struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Option<Signal>,
}

impl Signals {
    /// SIGTERM and SIGHUP. The host has the terminal and handles Ctrl-C itself.
    pub(super) fn of_a_host() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: None,
        })
    }

    /// SIGTERM, SIGHUP and SIGINT.
    pub(super) fn of_a_daemon() -> std::io::Result<Self> {
        Ok(Self { interrupt: Some(signal(SignalKind::interrupt())?), ..Self::of_a_host()? })
    }

    /// Waits for a signal, and gives the exit code of a process that it ends. Cancel safe.
    pub(super) async fn next(&mut self) -> u8 {
        let interrupt = async {
            match &mut self.interrupt {
                Some(interrupt) => interrupt.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
            _ = interrupt => 130,
        }
    }
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
