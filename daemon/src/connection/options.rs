//! What a connection starts with: where it comes from, what it may use.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agentd_process::Peer;
use agentd_protocol::{
    command::{Command, DaemonCommand},
    error::Failure,
};
use agentd_session::SessionOptions;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    cli::OnEof,
    hub::{DaemonContext, SessionSlot, ShutdownSwitch},
    limits::ClientLimits,
};

/// How long a connection in a reserved slot may stay silent: others want the slot too.
const RESERVED_SILENCE: Duration = Duration::from_secs(5);

/// The inputs of a connection.
pub struct Connection {
    /// What it shares with the daemon's other connections.
    pub daemon: Arc<DaemonContext>,
    /// The other end.
    pub origin: Origin,
    /// The defaults of the sessions that it opens: environment, folder, compatibility.
    pub options: SessionOptions,
    /// Takes the request to end the daemon.
    pub shutdown: ShutdownSwitch,
    /// The time that work has to finish when the daemon ends and the request names none.
    pub shutdown_deadline: Duration,
    /// The longest line that is accepted, in bytes.
    pub max_line_bytes: usize,
    /// What the client may use.
    pub limits: ClientLimits,
    /// Set for a connection beyond the limit of clients.
    pub reserved: Option<ReservedSlot>,
}

/// The other end of a connection.
pub enum Origin {
    /// The host that started this process for itself: nothing outlives the host.
    Host {
        /// The session that it starts with; `None` for a host that opens its sessions itself.
        session: Option<Arc<SessionSlot>>,
        /// Whether the end of the input aborts unfinished work or waits for it.
        on_eof: OnEof,
        /// Flags about the connection.
        flags: ConnectionFlags,
        /// Whether the host shows dialogs and answers them.
        answers: bool,
        /// Whether the host still gets lines while the daemon is ending.
        hears_the_end: bool,
    },
    /// A client of the socket, which comes and goes.
    Socket {
        /// The socket.
        path: PathBuf,
        /// The process at the other end, until it is identified.
        peer: Option<Peer>,
    },
}

/// The flags of a command line that are about the connection and not about its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionFlags {
    /// `--cumulative-updates`: updates carry the answer so far.
    pub cumulative: bool,
    /// `--ready`: the client gets what those get that said `hello` with `promptResult` and `messageIds`.
    pub ready: bool,
}

/// The slot of a connection beyond the limit of clients. It can manage the daemon itself and nothing else.
#[derive(Debug)]
pub struct ReservedSlot {
    failure: Failure,
    _permit: OwnedSemaphorePermit,
}

impl ReservedSlot {
    /// A slot, for a connection that `failure` refuses everything else to.
    #[must_use]
    pub fn new(permit: OwnedSemaphorePermit, failure: Failure) -> Self {
        Self { failure, _permit: permit }
    }

    /// Checks that a command is about the daemon itself.
    ///
    /// # Errors
    /// Why there is no place for the client, for every other command.
    pub(super) fn check(&self, command: &Command) -> Result<(), Failure> {
        match command {
            Command::Daemon(
                DaemonCommand::Hello(_) | DaemonCommand::DaemonStatus(_) | DaemonCommand::Shutdown(_),
            ) => Ok(()),
            _ => Err(self.failure.clone()),
        }
    }

    /// Waits until the client has been silent for too long; gives why there is no place for it. Cancel safe: a further call starts the
    /// time anew.
    pub(super) async fn is_silent(&self) -> Failure {
        tokio::time::sleep(RESERVED_SILENCE).await;
        self.failure.clone()
    }
}
