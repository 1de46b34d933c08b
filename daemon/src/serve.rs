//! Serving stdin and stdout: one session, one client, the same parts as for many.

use std::{process::ExitCode, sync::Arc, time::Duration};

use agentd_protocol::lines::DEFAULT_MAX_LINE_BYTES;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::StdioOptions,
    complain, compose,
    connection::{self, Connection},
    hub::Registry,
    transport::stdio::{Output, read_lines},
};

/// Ends with this when starting or writing fails.
const FAILED: u8 = 1;

/// How long sessions have to store the end of their runs after a signal. Clients kill a second after SIGTERM.
const SIGNAL_GRACE: Duration = Duration::from_millis(700);

/// Threads that run tasks. The work is waiting, moving lines and encoding; more threads would only cost memory.
const WORKERS: usize = 2;

/// Runs until the input ends or a signal comes. The process ends with the exit code, whatever still reads stdin.
#[must_use]
pub fn stdio(options: StdioOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("Error: cannot start the runtime: {error}"));
            return ExitCode::from(FAILED);
        }
    };
    let code = runtime.block_on(run(options));
    // The thread that reads stdin may wait there for ever.
    runtime.shutdown_background();
    code
}

async fn run(options: StdioOptions) -> ExitCode {
    match start(options).await {
        Ok(code) => code,
        Err(message) => {
            complain(&message);
            ExitCode::from(FAILED)
        }
    }
}

async fn start(options: StdioOptions) -> Result<ExitCode, String> {
    let mut signals = Signals::listen().map_err(|error| format!("Error: cannot watch signals: {error}"))?;
    let registry = Arc::new(Registry::new(compose::services()));
    let opened = registry.open(options.session.clone()).await.map_err(|error| format!("Error: {error}"))?;
    for warning in &opened.warnings {
        complain(&format!("Warning: {warning}"));
    }
    // Reading starts only now: what a client wrote before has waited in the pipe.
    let pipes = read_lines(std::io::stdin(), DEFAULT_MAX_LINE_BYTES)
        .and_then(|lines| Ok((lines, Output::start(std::io::stdout())?)));
    let (lines, output) = pipes.map_err(|error| format!("Error: cannot start a thread: {error}"))?;
    let connection = Connection {
        registry: Arc::clone(&registry),
        session: opened.handle,
        options: options.session,
        on_eof: options.on_eof,
    };
    let ending = CancellationToken::new();
    let serving = connection::serve(connection, lines, output, ending.clone());
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
            // The client still gets the last events.
            let closing = async { tokio::join!(registry.close_all(), &mut serving) };
            tokio::select! {
                _ = tokio::time::timeout(SIGNAL_GRACE, closing) => {}
                // A second signal means now.
                _ = signals.next() => {}
            }
            Ok(ExitCode::from(code))
        }
    }
}

/// The signals that end the daemon.
struct Signals {
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, hang_up: signal(SignalKind::hangup())? })
    }

    /// Waits for one, and gives the exit code that it means.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
        }
    }
}
