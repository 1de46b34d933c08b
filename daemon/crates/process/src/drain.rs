//! What becomes of output that nobody wants any more.

use std::time::Duration;

use tokio::{io::AsyncReadExt as _, time::sleep};

use crate::output::OutputPipe;

/// Bytes that are taken at once.
const CHUNK: usize = 64 * 1024;

/// The pause after a full chunk: a background process may write 1.3 MB a second, and a flood costs next to nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads `output` to its end and forgets it.
///
/// If the pipe were closed instead, a server that a command left running would be killed by its next line of log.
pub(crate) async fn drain(mut output: OutputPipe) {
    let mut buffer = vec![0; 4096];
    let mut since_pause = 0;
    // A pipe that cannot be read is as good as one at its end.
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        since_pause += count;
        if since_pause >= CHUNK {
            since_pause = 0;
            sleep(PAUSE).await;
        }
    }
}
