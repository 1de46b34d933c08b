//! The signals that end the daemon.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for the signals that were asked for.
pub(super) struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Option<Signal>,
}

impl Signals {
    /// SIGTERM and SIGHUP: our host has the terminal, and says itself what Ctrl-C means.
    pub(super) fn of_a_host() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: None,
        })
    }

    /// The same and SIGINT.
    pub(super) fn of_a_daemon() -> std::io::Result<Self> {
        Ok(Self { interrupt: Some(signal(SignalKind::interrupt())?), ..Self::of_a_host()? })
    }

    /// Waits for one, and gives the exit code that it means by itself. Cancel safe.
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
