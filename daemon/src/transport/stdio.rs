//! Lines in from stdin, bytes out to stdout, each on a thread of its own.
//!
//! Both are plain blocking calls: the descriptors are shared with whoever started us, and switching a shared terminal or
//! pipe to non-blocking mode would break the other side. Bounded channels carry the back pressure.

use std::{
    io::{self, ErrorKind, Read, Write},
    thread,
};

use agentd_protocol::lines::{Line, LineSplitter};
use tokio::sync::mpsc;

use super::{Output, room::ClientRoom};

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// How many lines wait to be handled before reading pauses.
const WAITING_LINES: usize = 64;

/// Starts reading lines of at most `max_line_bytes`, as far as there is `room` for them. The channel ends at the end of the
/// input. The host may pause in a line for as long as it likes: nobody else waits for it.
///
/// # Errors
/// When the system refuses another thread.
pub fn read_lines(
    input: impl Read + Send + 'static,
    max_line_bytes: usize,
    room: ClientRoom,
) -> io::Result<mpsc::Receiver<Line>> {
    let (sender, receiver) = mpsc::channel(WAITING_LINES);
    thread::Builder::new().name("stdin".into()).spawn(move || read(input, max_line_bytes, &room, &sender))?;
    Ok(receiver)
}

fn read(mut input: impl Read, max_line_bytes: usize, room: &ClientRoom, lines: &mpsc::Sender<Line>) {
    let mut splitter = LineSplitter::new(max_line_bytes);
    let mut buffer = vec![0; READ_BYTES];
    let mut found = Vec::new();
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                splitter.push_within(&buffer[..count], &mut found, |bytes| room.grow_to(bytes));
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
            room.hold(splitter.held_bytes());
        } else {
            room.settle(splitter.held_bytes());
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = lines.blocking_send(line);
    }
}

impl Output {
    /// Starts writing on a thread of its own.
    ///
    /// # Errors
    /// When the system refuses another thread.
    pub fn start(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (handle, (batches, end)) = Self::new();
        thread::Builder::new().name("stdout".into()).spawn(move || {
            // Nobody listens any more only when the daemon ends.
            let _ = end.send(write(output, batches));
        })?;
        Ok(handle)
    }
}

fn write(mut output: impl Write, mut batches: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(batch) = batches.blocking_recv() {
        output.write_all(&batch)?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentd_memory::MemoryAccount;

    use super::*;
    use crate::transport::room::LineRoom;

    #[tokio::test]
    async fn lines_come_in_and_the_last_may_lack_its_end() {
        let room = LineRoom::new(MemoryAccount::default(), None).enter();
        let mut lines = read_lines(&b"{}\r\nlonger than that\n\xFF\nlast"[..], 10, room).unwrap();
        let mut seen = Vec::new();
        while let Some(line) = lines.recv().await {
            seen.push(line);
        }
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(seen, [text("{}"), Line::TooLong, text("\u{fffd}"), text("last")]);
    }

    #[tokio::test]
    async fn a_closed_reader_is_reported() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut output = Output::start(writer).unwrap();
        output.write(b"hello\n".to_vec()).await;
        output.broken().await;
        let error = output.finish().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
}
