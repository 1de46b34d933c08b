//! `--stdio`: one session for one client on stdin and stdout, with the parts of a daemon for many.

use std::{process::ExitCode, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::{
    output_sweeper::{FirstSweep, sweep_in_background},
    retry_locked_open::retry_locked_open,
    runtime::{Signals, Workers, as_task, check_file_limit, not_opened, ready_line, run, tell_of},
};
use crate::{
    cli::StdioOptions,
    compose,
    connection::{self, Connection, ConnectionFlags, Origin},
    daemon_limits::DaemonLimits,
    hub::{DaemonContext, SessionRegistry, ShutdownSwitch, hosting_subagents},
    limits::{STDIO_SIGNAL_GRACE, STDIO_TELEMETRY_FLUSH, TELEMETRY_FLUSH},
    logging::complain,
    telemetry::DaemonTelemetry,
    transport::{LineBudget, Output, read_stdin},
};

/// Serves until the input ends or a signal comes. The process then ends, even while a thread still reads stdin.
#[must_use]
pub fn stdio(options: StdioOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    run(Workers::CallingThread, as_task(observe(options)))
}

/// Serves, with telemetry until the end where it is on.
async fn observe(options: StdioOptions) -> Result<ExitCode, String> {
    let session = &options.session;
    let telemetry = DaemonTelemetry::start(&session.environment, session.compat, &session.cwd);
    let ended = serve(options, &telemetry).await;
    telemetry.shut_down(TELEMETRY_FLUSH).await;
    ended
}

async fn serve(options: StdioOptions, telemetry: &DaemonTelemetry) -> Result<ExitCode, String> {
    check_file_limit()?;
    let mut signals =
        Signals::of_a_host().map_err(|error| format!("Error: cannot watch signals: {error}"))?;
    let limits = {
        let session = &options.session;
        DaemonLimits::load(&session.environment, session.compat, &session.cwd).private()
    };
    let memory = limits.memory();
    let services = {
        let session = &options.session;
        compose::services(
            &session.environment,
            session.compat,
            &session.cwd,
            limits.max_commands,
            &memory,
            telemetry.observers(),
            None,
        )?
    };
    let daemon = DaemonContext::new(hosting_subagents(SessionRegistry::new(
        limits.session,
        limits.resources,
        services,
    )));
    telemetry.watch(&daemon);
    let registry = &daemon.sessions;
    let opened = tokio::select! {
        opened = retry_locked_open(|| registry.open(options.session.clone())) => {
            opened.map_err(|error| not_opened(&error))?
        }
        code = signals.next() => return Ok(ExitCode::from(code)),
    };
    tell_of(&opened.diagnostics);
    let _sweeping = {
        let session = &options.session;
        let place = (&session.environment, session.compat, &*session.cwd);
        sweep_in_background(limits.outputs, registry.outputs(), place, FirstSweep::Later)
    };
    // Reading starts only now: earlier commands have waited in the pipe.
    let budget = LineBudget::new(memory, limits.line_idle).client();
    let pipes = read_stdin(limits.max_line_bytes, budget).and_then(|lines| Ok((lines, Output::to_stdout()?)));
    let (lines, output) = pipes.map_err(|error| format!("Error: cannot start a thread: {error}"))?;
    if options.ready {
        // The connection notices a host that has closed stdout already.
        output.write(ready_line()?).await;
    }
    let connection = Connection {
        daemon: Arc::clone(&daemon),
        origin: Origin::Host {
            session: Some(opened.session),
            on_eof: options.on_eof,
            flags: ConnectionFlags { cumulative: options.cumulative, ready: options.ready },
            answers: true,
            hears_the_end: false,
        },
        options: options.session,
        // The host ends this process by the end of the input; no other client can.
        shutdown: ShutdownSwitch::default(),
        shutdown_deadline: limits.shutdown_deadline,
        max_line_bytes: limits.max_line_bytes,
        limits: limits.client,
        reserved: None,
    };
    // From now on the connection alone keeps the session open.
    drop(opened.expected);
    let ending = CancellationToken::new();
    let serving =
        connection::serve(connection, daemon.connections.count_connection(), lines, output, ending.clone());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => match served {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => {
                registry.close_all().await;
                Err(format!("Error: cannot write to stdout: {error}"))
            }
        },
        code = signals.next() => {
            ending.cancel();
            // Nothing more is written, as by pi; an error of stdout does not count any more.
            let closing = async {
                let _ = (&mut serving).await;
                registry.close_all().await;
            };
            tokio::select! {
                _ = tokio::time::timeout(STDIO_SIGNAL_GRACE, closing) => {}
                // A second signal ends the process at once.
                _ = signals.next() => {}
            }
            telemetry.shut_down(STDIO_TELEMETRY_FLUSH).await;
            Ok(ExitCode::from(code))
        }
    }
}
