//! Reads lines from stdin: in a task where it is a pipe or a socket, else on a thread of its own.
//!
//! The thread makes plain blocking calls: the descriptor is shared with the host, and switching a shared terminal to non-blocking mode would
//! break the host. A bounded channel carries the back pressure.

use std::{
    io::{self, ErrorKind, Read},
    thread,
};

use agentd_protocol::lines::{Line, LineSplitter};
use tokio::sync::mpsc;

use super::{ClientLineBudget, standard_stream::StandardStream};
use crate::limits::WAITING_STDIN_LINES;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Starts reading lines of at most `max_line_bytes` from stdin, within `budget`. The channel ends at the end of the input. The host may
/// pause within a line for as long as it likes: no other client waits for the memory.
///
/// # Errors
/// When the system refuses another thread.
///
/// # Panics
/// Outside of a runtime.
pub fn read_stdin(max_line_bytes: usize, budget: ClientLineBudget) -> io::Result<mpsc::Receiver<Line>> {
    let input = io::stdin();
    match StandardStream::reading(&input) {
        Some(input) => Ok(read_in_task(input, max_line_bytes, budget)),
        None => read_on_thread(input, max_line_bytes, budget),
    }
}

fn read_in_task(
    input: StandardStream,
    max_line_bytes: usize,
    budget: ClientLineBudget,
) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(WAITING_STDIN_LINES);
    tokio::spawn(async move {
        let mut reader = LineReader::new(max_line_bytes, budget);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let lines = reader.took(input.read(&mut buffer).await.map(|count| &buffer[..count]));
            for line in lines.found {
                if sender.send(line).await.is_err() {
                    return;
                }
            }
            if lines.is_last {
                return;
            }
            reader.settle();
        }
    });
    receiver
}

fn read_on_thread(
    input: impl Read + Send + 'static,
    max_line_bytes: usize,
    budget: ClientLineBudget,
) -> io::Result<mpsc::Receiver<Line>> {
    let (sender, receiver) = mpsc::channel(WAITING_STDIN_LINES);
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut reader = LineReader::new(max_line_bytes, budget);
        read(input, &mut reader, &sender);
    })?;
    Ok(receiver)
}

fn read(mut input: impl Read, reader: &mut LineReader, sender: &mpsc::Sender<Line>) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = match input.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read,
        };
        let lines = reader.took(count.map(|count| &buffer[..count]));
        for line in lines.found {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
        if lines.is_last {
            return;
        }
        reader.settle();
    }
}

/// The lines of what was read so far.
struct LineReader {
    splitter: LineSplitter,
    budget: ClientLineBudget,
    /// Whether a line ended in what was read last.
    has_ended: bool,
}

/// The lines that ended in what was read last.
struct EndedLines {
    found: Vec<Line>,
    /// Whether there are no others.
    is_last: bool,
}

impl LineReader {
    fn new(max_line_bytes: usize, budget: ClientLineBudget) -> Self {
        Self { splitter: LineSplitter::new(max_line_bytes), budget, has_ended: false }
    }

    /// Takes what was read. Nothing is the end of the input.
    fn took(&mut self, read: io::Result<&[u8]>) -> EndedLines {
        let bytes = read.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read stdin; taking it as ended");
            &[]
        });
        if bytes.is_empty() {
            let last = std::mem::replace(&mut self.splitter, LineSplitter::new(0)).finish();
            return EndedLines { found: last.into_iter().collect(), is_last: true };
        }
        let (mut found, budget) = (Vec::new(), &self.budget);
        self.splitter.push_within(bytes, &mut found, |bytes| budget.grow_to(bytes));
        self.has_ended = !found.is_empty();
        EndedLines { found, is_last: false }
    }

    /// The lines were passed on: holds the memory of the next one.
    fn settle(&self) {
        let held = self.splitter.held_bytes();
        if self.has_ended { self.budget.hold(held) } else { self.budget.settle(held) }
    }
}

#[cfg(test)]
mod tests {
    use agentd_memory::MemoryAccount;

    use super::*;
    use crate::transport::LineBudget;

    fn budget() -> ClientLineBudget {
        LineBudget::new(MemoryAccount::default(), None).client()
    }

    #[tokio::test]
    async fn a_socket_is_read_without_a_thread() {
        let (ours, host) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut lines = read_in_task(StandardStream::reading(&ours).unwrap(), 10, budget());
        for part in ["{}\r\nlon", "ger than that\nla", "st"] {
            io::Write::write_all(&mut &host, part.as_bytes()).unwrap();
            tokio::task::yield_now().await;
        }
        drop(host);
        let mut seen = Vec::new();
        while let Some(line) = lines.recv().await {
            seen.push(line);
        }
        assert_eq!(seen, [Line::Text("{}".into()), Line::TooLong, Line::Text("last".into())]);
    }

    #[tokio::test]
    async fn lines_come_in_and_the_last_may_lack_its_end() {
        let mut lines = read_on_thread(&b"{}\r\nlonger than that\n\xFF\nlast"[..], 10, budget()).unwrap();
        let mut seen = Vec::new();
        while let Some(line) = lines.recv().await {
            seen.push(line);
        }
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(seen, [text("{}"), Line::TooLong, text("\u{fffd}"), text("last")]);
    }
}
