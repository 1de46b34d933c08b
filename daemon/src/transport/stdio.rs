//! Reads lines from stdin, on a thread of its own.
//!
//! The thread makes plain blocking calls: the descriptor is shared with the host, and switching a shared terminal or pipe to
//! non-blocking mode would break the host. A bounded channel carries the back pressure.

use std::{
    io::{self, ErrorKind, Read},
    thread,
};

use agentd_protocol::lines::{Line, LineSplitter};
use tokio::sync::mpsc;

use super::ClientLineBudget;
use crate::limits::WAITING_STDIN_LINES;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Starts reading lines of at most `max_line_bytes`, within `budget`. The channel ends at the end of the input. The host may pause
/// within a line for as long as it likes: no other client waits for the memory.
///
/// # Errors
/// When the system refuses another thread.
pub fn read_lines(
    input: impl Read + Send + 'static,
    max_line_bytes: usize,
    budget: ClientLineBudget,
) -> io::Result<mpsc::Receiver<Line>> {
    let (sender, receiver) = mpsc::channel(WAITING_STDIN_LINES);
    thread::Builder::new()
        .name("stdin".into())
        .spawn(move || read(input, max_line_bytes, &budget, &sender))?;
    Ok(receiver)
}

fn read(mut input: impl Read, max_line_bytes: usize, budget: &ClientLineBudget, lines: &mpsc::Sender<Line>) {
    let mut splitter = LineSplitter::new(max_line_bytes);
    let mut buffer = vec![0; READ_BYTES];
    let mut found = Vec::new();
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                splitter.push_within(&buffer[..count], &mut found, |bytes| budget.grow_to(bytes));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot read stdin; taking it as ended");
                break;
            }
        }
        let has_ended = !found.is_empty();
        for line in found.drain(..) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
        if has_ended {
            budget.hold(splitter.held_bytes());
        } else {
            budget.settle(splitter.held_bytes());
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = lines.blocking_send(line);
    }
}

#[cfg(test)]
mod tests {
    use agentd_memory::MemoryAccount;

    use super::*;
    use crate::transport::LineBudget;

    #[tokio::test]
    async fn lines_come_in_and_the_last_may_lack_its_end() {
        let budget = LineBudget::new(MemoryAccount::default(), None).client();
        let mut lines = read_lines(&b"{}\r\nlonger than that\n\xFF\nlast"[..], 10, budget).unwrap();
        let mut seen = Vec::new();
        while let Some(line) = lines.recv().await {
            seen.push(line);
        }
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(seen, [text("{}"), Line::TooLong, text("\u{fffd}"), text("last")]);
    }
}
