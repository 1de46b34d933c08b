//! A host with a daemon of its own, in this process: nothing outlives the host.

use std::{process::ExitCode, sync::Arc};

use agentd_tools::operations::EditorAccess;
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        output_sweeper::{FirstSweep, sweep_in_background},
        runtime::{Signals, check_file_limit},
    },
    daemon_link::DaemonLink,
    move_lines::{HostPipes, RelayEnd, move_lines},
    translator::Translator,
};
use crate::{
    cli::{HostOptions, OnEof},
    compose,
    connection::{self, Connection, ConnectionFlags, Origin},
    daemon_limits::DaemonLimits,
    hub::{DaemonContext, SessionRegistry, ShutdownSwitch, hosting_subagents},
    limits::{STDIO_SIGNAL_GRACE, TELEMETRY_FLUSH},
    telemetry::DaemonTelemetry,
    transport::{LineBudget, Output, in_process_pair, read_stdin},
};

/// Serves, with telemetry until the end where it is on. `editor` is the host's, for the tools of its sessions.
pub(in crate::serve) async fn own(
    options: HostOptions,
    editor: Option<EditorAccess>,
    translator: impl Translator,
) -> Result<ExitCode, String> {
    let base = &options.base;
    let telemetry = DaemonTelemetry::start(&base.environment, base.compat, &base.cwd);
    let ended = serve(options, editor, translator, &telemetry).await;
    telemetry.shut_down(TELEMETRY_FLUSH).await;
    ended
}

async fn serve(
    options: HostOptions,
    editor: Option<EditorAccess>,
    translator: impl Translator,
    telemetry: &DaemonTelemetry,
) -> Result<ExitCode, String> {
    check_file_limit()?;
    let mut signals =
        Signals::of_a_host().map_err(|error| format!("Error: cannot watch signals: {error}"))?;
    let base = &options.base;
    let limits = DaemonLimits::load(&base.environment, base.compat, &base.cwd).private();
    let memory = limits.memory();
    let services = compose::services(
        &base.environment,
        base.compat,
        &base.cwd,
        limits.max_commands,
        &memory,
        telemetry.observers(),
        editor,
    )?;
    let daemon = DaemonContext::new(hosting_subagents(SessionRegistry::new(
        limits.session,
        limits.resources,
        services,
    )));
    telemetry.watch(&daemon);
    let registry = &daemon.sessions;
    let place = (&base.environment, base.compat, &*base.cwd);
    let _sweeping = sweep_in_background(limits.outputs, registry.outputs(), place, FirstSweep::Later);
    let budget = LineBudget::new(memory, limits.line_idle).client();
    let pipes = read_stdin(limits.max_line_bytes, budget).and_then(|lines| Ok((lines, Output::to_stdout()?)));
    let (lines, output) = pipes.map_err(|error| format!("Error: cannot start a thread: {error}"))?;
    let host = HostPipes { lines, output, max_line_bytes: limits.max_line_bytes };
    let (client, commands, events) = in_process_pair();
    let connection = Connection {
        daemon: Arc::clone(&daemon),
        origin: Origin::Host {
            session: None,
            on_eof: OnEof::Abort,
            flags: ConnectionFlags::default(),
            answers: true,
            hears_the_end: true,
        },
        options: options.base,
        // The host ends this process by the end of the input; no other client can.
        shutdown: ShutdownSwitch::default(),
        shutdown_deadline: limits.shutdown_deadline,
        max_line_bytes: limits.max_line_bytes,
        limits: limits.client,
        reserved: None,
    };
    let (ending, signalled) = (CancellationToken::new(), CancellationToken::new());
    let count = daemon.connections.count_connection();
    let serving = connection::serve(connection, count, commands, events, ending.clone());
    let moving = move_lines(translator, host, DaemonLink::own(client), signalled.clone());
    let both = async { tokio::join!(moving, serving) };
    tokio::pin!(both);
    let (end, code) = tokio::select! {
        (end, _) = &mut both => (Some(end), ExitCode::SUCCESS),
        code = signals.next() => {
            signalled.cancel();
            tokio::select! {
                ended = tokio::time::timeout(STDIO_SIGNAL_GRACE, &mut both) => {
                    (ended.ok().map(|(end, _)| end), ExitCode::from(code))
                }
                // A second signal ends the process at once.
                _ = signals.next() => (None, ExitCode::from(code)),
            }
        }
    };
    ending.cancel();
    // The sessions store the end of what was aborted.
    let _ = tokio::time::timeout(STDIO_SIGNAL_GRACE, registry.close_all()).await;
    match end {
        Some(RelayEnd::Output) => Err("Error: cannot write to stdout".to_owned()),
        Some(RelayEnd::Daemon) => Err("Error: the sessions ended before the host's input".to_owned()),
        Some(RelayEnd::Unusable(reason)) => Err(format!("Error: {reason}")),
        Some(RelayEnd::Input) | None => Ok(code),
    }
}
