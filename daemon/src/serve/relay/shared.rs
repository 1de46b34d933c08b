//! A host with sessions of the user's daemon, which is started if none runs. Its sessions go on when the host leaves.

use std::{ffi::OsString, process::ExitCode};

use agentd_connect::{ConnectError, ConnectErrorKind, Endpoint, LaunchOptions, ReachedDaemon};
use agentd_memory::MemoryAccount;
use agentd_protocol::lines::DEFAULT_MAX_LINE_BYTES;
use tokio_util::sync::CancellationToken;

use super::{
    super::runtime::{FAILED, Signals, fail},
    daemon_link::DaemonLink,
    move_lines::{HostPipes, RelayEnd, move_lines},
    translator::Translator,
};
use crate::{
    cli::HostOptions,
    transport::{LineBudget, Output, read_stdin},
};

/// The exit code when the daemon cannot be reached or started, or the connection to it is lost.
const UNREACHABLE: u8 = 3;

/// Serves until the input ends or a signal comes.
pub(in crate::serve) fn shared(options: &HostOptions, translator: impl Translator) -> ExitCode {
    // One thread suffices: it waits, and moves lines.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("Error: cannot start the runtime: {error}"), FAILED),
    };
    let code = runtime.block_on(serve(options, translator));
    // Does not wait for the thread that reads stdin.
    runtime.shutdown_background();
    code
}

async fn serve(options: &HostOptions, translator: impl Translator) -> ExitCode {
    let mut signals = match Signals::of_a_host() {
        Ok(signals) => signals,
        Err(error) => return fail(&format!("Error: cannot watch signals: {error}"), FAILED),
    };
    let reached = tokio::select! {
        reached = connect(options.base.compat) => reached,
        code = signals.next() => return ExitCode::from(code),
    };
    let ReachedDaemon { stream, .. } = match reached {
        Ok(reached) => reached,
        Err(error) => {
            let code = if error.kind() == ConnectErrorKind::Unreachable { UNREACHABLE } else { FAILED };
            return fail(&format!("Error: {error}"), code);
        }
    };
    // The daemon limits what it sends, and the host's lines are limited one by one.
    let budget = || LineBudget::new(MemoryAccount::default(), None).client();
    let pipes =
        read_stdin(DEFAULT_MAX_LINE_BYTES, budget()).and_then(|lines| Ok((lines, Output::to_stdout()?)));
    let (lines, output) = match pipes {
        Ok(pipes) => pipes,
        Err(error) => return fail(&format!("Error: cannot start a thread: {error}"), FAILED),
    };
    let host = HostPipes { lines, output, max_line_bytes: DEFAULT_MAX_LINE_BYTES };
    let signalled = CancellationToken::new();
    let moving = move_lines(translator, host, DaemonLink::shared(stream, budget()), signalled.clone());
    tokio::pin!(moving);
    let (end, code) = tokio::select! {
        end = &mut moving => (end, ExitCode::SUCCESS),
        code = signals.next() => {
            signalled.cancel();
            (moving.await, ExitCode::from(code))
        }
    };
    match end {
        RelayEnd::Input => code,
        RelayEnd::Daemon => {
            fail("Error: agentd closed the connection; `agentctl logs` may say why", UNREACHABLE)
        }
        RelayEnd::Unusable(reason) => fail(&format!("Error: {reason}"), UNREACHABLE),
        RelayEnd::Output => fail("Error: cannot write to stdout", FAILED),
    }
}

async fn connect(compat: bool) -> Result<ReachedDaemon, ConnectError> {
    let endpoint = Endpoint::find(compat)?;
    let program =
        std::env::current_exe().map_err(|source| ConnectError::Spawn { program: "agentd".into(), source })?;
    // The daemon has to use the same directories as this process.
    let compat_args = ["--compat", "pi"].map(OsString::from);
    let launch = LaunchOptions { program, args: if compat { compat_args.into() } else { Vec::new() } };
    endpoint.connect_or_start(&launch).await
}
