//! Drains output that nobody reads any more.

use std::time::Duration;

use tokio::{io::AsyncReadExt as _, time::sleep};

use crate::output::OutputPipe;

/// Bytes between two pauses.
const CHUNK: usize = 64 * 1024;

/// The pause after each chunk: a background process may write 1.3 MB a second, and a flood costs next to nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads `output` to its end and discards it.
///
/// Closing the pipe instead would kill a server that a command left running, at its next line of log.
pub(crate) async fn drain(mut output: OutputPipe) {
    let mut buffer = vec![0; 4096];
    let mut since_pause = 0;
    // A pipe that cannot be read counts as one at its end.
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        since_pause += count;
        if since_pause >= CHUNK {
            since_pause = 0;
            sleep(PAUSE).await;
        }
    }
}
