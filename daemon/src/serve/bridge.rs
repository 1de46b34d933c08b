//! `--stdio --shared`: a session of the user's daemon on stdin and stdout of this process. Only bytes are moved here; the session
//! lives in the daemon, and goes on when this process ends.

use std::{ffi::OsString, process::ExitCode};

use agentd_connect::{
    ConnectError, ConnectErrorKind, Endpoint, LaunchOptions, OpenedSession, PassThroughError, ReachedDaemon,
    SessionOpening, environment, pass_through, standard_streams,
};
use agentd_protocol::daemon::{ClientCapabilities, ClientInfo, OpenSessionParams};

use super::runtime::{FAILED, Signals, fail, ready_line};
use crate::{cli::BridgeOptions, logging::complain};

/// The exit code when the daemon cannot be reached or started, or the connection to it is lost.
const UNREACHABLE: u8 = 3;

/// Bridges until the input ends and all earlier commands are answered, or a signal comes. A signal ends the bridge and not the
/// session.
#[must_use]
pub fn bridge(options: BridgeOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    // One thread suffices: it only waits.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("Error: cannot start the runtime: {error}"), FAILED),
    };
    runtime.block_on(async {
        let mut signals = match Signals::of_a_daemon() {
            Ok(signals) => signals,
            Err(error) => return fail(&format!("Error: cannot watch signals: {error}"), FAILED),
        };
        tokio::select! {
            code = serve(options) => code,
            code = signals.next() => ExitCode::from(code),
        }
    })
}

async fn serve(options: BridgeOptions) -> ExitCode {
    let first = match options.ready.then(ready_line).transpose() {
        Ok(line) => line.unwrap_or_default(),
        Err(error) => return fail(&error, FAILED),
    };
    let reported = options.warnings.clone();
    let opened = match open(options).await {
        Ok(opened) => opened,
        Err(error) => {
            let code = if error.kind() == ConnectErrorKind::Unreachable { UNREACHABLE } else { FAILED };
            return fail(&format!("Error: {error}"), code);
        }
    };
    // The daemon repeats the warnings about flags that were printed already.
    let warnings = opened.warnings.iter().map(|warning| format!("Warning: {warning}"));
    warnings.filter(|warning| !reported.contains(warning)).for_each(|warning| complain(&warning));
    // Reading starts only now: earlier commands have waited in the pipe.
    let passed = match standard_streams() {
        Ok((input, output)) => {
            pass_through(opened.stream, [first, opened.rest].concat(), input, output).await
        }
        Err(error) => Err(error),
    };
    match passed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ (PassThroughError::Closed | PassThroughError::Lost(_))) => {
            fail(&format!("Error: {error}"), UNREACHABLE)
        }
        Err(error @ (PassThroughError::Output(_) | PassThroughError::Start(_))) => {
            fail(&format!("Error: {error}"), FAILED)
        }
    }
}

async fn open(options: BridgeOptions) -> Result<OpenedSession, ConnectError> {
    let endpoint = Endpoint::find(options.compat)?;
    let program =
        std::env::current_exe().map_err(|source| ConnectError::Spawn { program: "agentd".into(), source })?;
    // The daemon has to use the same directories as this process.
    let compat = ["--compat", "pi"].map(OsString::from);
    let launch = LaunchOptions { program, args: if options.compat { compat.into() } else { Vec::new() } };
    let ReachedDaemon { stream, .. } = endpoint.connect_or_start(&launch).await?;
    let client =
        ClientInfo { name: "agentd --stdio".into(), version: Some(env!("CARGO_PKG_VERSION").into()) };
    let params = OpenSessionParams {
        cwd: options.cwd.display().to_string(),
        args: options.args,
        env: Some(environment()),
        ..OpenSessionParams::default()
    };
    SessionOpening { client, capabilities: ClientCapabilities::default(), params }
        .open(&endpoint, stream)
        .await
}
