//! Serving stdin and stdout: one session, one client, the same parts as for many.

use std::{process::ExitCode, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    limits::DaemonLimits,
    once_free::once_free,
    outputs::{First, keep_within},
    run,
    signals::Signals,
    tell_of,
};
use crate::{
    cli::StdioOptions,
    complain, compose,
    connection::{self, Connection, Origin},
    hub::{DaemonContext, SessionRegistry, ShutdownSwitch},
    transport::{Output, room::LineRoom, stdio::read_lines},
};

/// How long sessions have to store the end of their runs after a signal. Clients kill a second after SIGTERM.
const SIGNAL_GRACE: Duration = Duration::from_millis(700);

/// Runs until the input ends or a signal comes. The process ends with the exit code, whatever still reads stdin.
#[must_use]
pub fn stdio(options: StdioOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    run(serve(options))
}

async fn serve(options: StdioOptions) -> Result<ExitCode, String> {
    super::check_file_limit()?;
    let mut signals =
        Signals::of_a_host().map_err(|error| format!("Error: cannot watch signals: {error}"))?;
    let limits = {
        let session = &options.session;
        DaemonLimits::load(&session.environment, session.compat, &session.cwd).private()
    };
    let memory = limits.memory();
    let services = {
        let session = &options.session;
        compose::services(&session.environment, session.compat, &session.cwd, limits.max_commands, &memory)?
    };
    let daemon = DaemonContext::new(SessionRegistry::new(limits.session, limits.resources, services));
    let registry = &daemon.sessions;
    let opened = tokio::select! {
        opened = once_free(|| registry.open(options.session.clone())) => {
            opened.map_err(|error| super::not_opened(&error))?
        }
        code = signals.next() => return Ok(ExitCode::from(code)),
    };
    tell_of(&opened.diagnostics);
    let _sweeping = {
        let session = &options.session;
        let place = (&session.environment, session.compat, &*session.cwd);
        keep_within(limits.outputs, registry.outputs(), place, First::Later)
    };
    // Reading starts only now: what a client wrote before has waited in the pipe.
    let room = LineRoom::new(memory, limits.line_idle).enter();
    let pipes = read_lines(std::io::stdin(), limits.max_line_bytes, room)
        .and_then(|lines| Ok((lines, Output::start(std::io::stdout())?)));
    let (lines, output) = pipes.map_err(|error| format!("Error: cannot start a thread: {error}"))?;
    if options.ready {
        // A reader that is gone already is noticed by the connection.
        output.write(super::ready_line()?).await;
    }
    let connection = Connection {
        daemon: Arc::clone(&daemon),
        origin: Origin::Host {
            session: opened.session,
            on_eof: options.on_eof,
            cumulative: options.cumulative,
            answers: true,
            hears_the_end: false,
        },
        options: options.session,
        // The host ends us by the end of the input; over this wire nobody else can.
        shutdown: ShutdownSwitch::default(),
        shutdown_deadline: limits.shutdown_deadline,
        max_line_bytes: limits.max_line_bytes,
        limits: limits.client,
        reserved: None,
    };
    // Nobody else can end it; from now on it is this connection's alone.
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
            // Nothing more is said, as by the reference; what a broken stdout was doing does not count any more.
            let closing = async {
                let _ = (&mut serving).await;
                registry.close_all().await;
            };
            tokio::select! {
                _ = tokio::time::timeout(SIGNAL_GRACE, closing) => {}
                // A second signal means now.
                _ = signals.next() => {}
            }
            Ok(ExitCode::from(code))
        }
    }
}
