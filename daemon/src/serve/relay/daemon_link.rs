//! The daemon's end: a connection within this process, or over the socket.

use agentd_protocol::lines::{DEFAULT_MAX_LINE_BYTES, Line};
use tokio::{net::UnixStream, sync::mpsc};

use crate::{
    limits::WAITING_IN_PROCESS_LINES,
    transport::{ClientLineBudget, InProcessClient, Output, split},
};

/// The longest line of a daemon: the event at the end of a run repeats all of its messages.
const MAX_LINE_BYTES: usize = 4 * DEFAULT_MAX_LINE_BYTES;

/// A connection to a daemon.
pub(super) struct DaemonLink {
    /// Takes commands; dropped, the connection's input ends.
    pub(super) commands: Option<mpsc::Sender<Line>>,
    pub(super) lines: DaemonLines,
}

/// What comes from the daemon.
pub(super) enum DaemonLines {
    /// From a connection in this process: many lines at a time.
    Own(InProcessClient),
    /// From the socket.
    Shared(mpsc::Receiver<Line>),
}

impl DaemonLink {
    /// A connection in this process.
    pub(super) fn own(mut client: InProcessClient) -> Self {
        let commands = client.sender();
        client.hang_up();
        Self { commands, lines: DaemonLines::Own(client) }
    }

    /// A connection to the user's daemon. Must be called within the runtime.
    pub(super) fn shared(stream: UnixStream, budget: ClientLineBudget) -> Self {
        let (lines, output) = split(stream, MAX_LINE_BYTES, budget);
        let (commands, receiver) = mpsc::channel(WAITING_IN_PROCESS_LINES);
        tokio::spawn(write(receiver, output));
        Self { commands: Some(commands), lines: DaemonLines::Shared(lines) }
    }
}

impl DaemonLines {
    /// The next whole lines, each with its LF; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Own(client) => client.next().await,
            Self::Shared(lines) => match lines.recv().await? {
                Line::Text(line) => {
                    let mut line = line.into_bytes();
                    line.push(b'\n');
                    Some(line)
                }
                // A line that was not kept tells nothing; what is missing shows as events that were not seen.
                Line::TooLong | Line::Refused(_) => Some(Vec::new()),
            },
        }
    }
}

/// Writes commands to the socket until they end or the daemon is gone; its lines end then, too.
async fn write(mut commands: mpsc::Receiver<Line>, output: Output) {
    while let Some(Line::Text(line)) = commands.recv().await {
        let mut line = line.into_bytes();
        line.push(b'\n');
        if !output.write(line).await {
            return;
        }
    }
    // The daemon may have ended already.
    let _ = output.finish().await;
}
