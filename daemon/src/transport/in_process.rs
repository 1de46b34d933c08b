//! A client in this process: lines and batches pass through channels, everything else is as for any client.

use std::io;

use agentd_protocol::lines::Line;
use tokio::sync::{mpsc, oneshot};

use super::{Output, output::Writing};

/// How many lines wait to be handled.
const WAITING_LINES: usize = 1;

/// The client's side.
pub struct InProcess {
    /// `None` when nothing more is to be said.
    lines: Option<mpsc::Sender<Line>>,
    batches: mpsc::Receiver<Vec<u8>>,
    /// Told when everything was taken.
    end: Option<oneshot::Sender<io::Result<()>>>,
}

/// Both ends: the client's, and what a connection is served with.
#[must_use]
pub fn pair() -> (InProcess, mpsc::Receiver<Line>, Output) {
    let (lines, receiver) = mpsc::channel(WAITING_LINES);
    let (output, (batches, end)): (_, Writing) = Output::new();
    (InProcess { lines: Some(lines), batches, end: Some(end) }, receiver, output)
}

impl InProcess {
    /// Sends a line, without LF. False when nobody reads any more.
    pub async fn send(&self, line: String) -> bool {
        match &self.lines {
            Some(lines) => lines.send(Line::Text(line)).await.is_ok(),
            None => false,
        }
    }

    /// Ends the input of the connection.
    pub fn hang_up(&mut self) {
        self.lines = None;
    }

    /// The next whole lines, each with its LF; `None` when the connection has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        let batch = self.batches.recv().await;
        if batch.is_none()
            && let Some(end) = self.end.take()
        {
            // The connection may be given up already.
            let _ = end.send(Ok(()));
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_go_in_and_batches_come_out_until_both_ends_are_done() {
        let (mut client, mut lines, output) = pair();
        assert!(client.send("{}".into()).await);
        assert_eq!(lines.recv().await, Some(Line::Text("{}".into())));
        client.hang_up();
        assert!(!client.send("{}".into()).await);
        assert_eq!(lines.recv().await, None);
        assert!(output.write(b"a\nb\n".to_vec()).await);
        let finishing = tokio::spawn(output.finish());
        assert_eq!(client.next().await.as_deref(), Some(&b"a\nb\n"[..]));
        assert_eq!(client.next().await, None);
        finishing.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_leaves_early_is_noticed() {
        let (client, _lines, mut output) = pair();
        drop(client);
        output.broken().await;
        assert!(output.finish().await.is_err());
    }
}
