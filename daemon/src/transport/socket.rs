//! Moves lines in from a client of the socket and bytes out to it: two tasks, which hold no buffer while they wait.

use std::io;

use agentd_protocol::lines::{Line, LineSplitter, SMALL_LINE_BYTES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{
    net::{UnixStream, unix::OwnedReadHalf},
    sync::mpsc,
    task::yield_now,
};
use tokio_util::sync::CancellationToken;

use super::{ClientLineBudget, Output, client_stream::ClientStream};
use crate::limits::WAITING_SOCKET_LINES;

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// A line of this many bytes waits until those before it have been taken, so that few long ones wait.
const LONG_LINE_BYTES: usize = SMALL_LINE_BYTES;

/// Starts moving lines of at most `max_line_bytes` in, within `budget`, and batches out. The lines end when the client closes its
/// writing side or is gone; reading ends when the receiver is dropped.
#[must_use]
pub fn split(
    stream: UnixStream,
    max_line_bytes: usize,
    budget: ClientLineBudget,
) -> (mpsc::Receiver<Line>, Output) {
    let (input, output) = stream.into_split();
    let (lines, receiver) = mpsc::channel(WAITING_SOCKET_LINES);
    let output = Output::to_stream(ClientStream::Socket(output));
    tokio::spawn(read(input, max_line_bytes, budget, lines, output.gone()));
    (receiver, output)
}

async fn read(
    input: OwnedReadHalf,
    max_line_bytes: usize,
    budget: ClientLineBudget,
    lines: mpsc::Sender<Line>,
    gone: CancellationToken,
) {
    let mut splitter = LineSplitter::new(max_line_bytes);
    loop {
        let ready = tokio::select! {
            ready = input.readable() => ready,
            () = lines.closed() => return,
            failure = budget.given_up(), if splitter.has_begun() => {
                splitter.give_up();
                budget.hold(0);
                if lines.send(Line::Refused(Box::new(failure))).await.is_err() {
                    return;
                }
                continue;
            }
        };
        let mut found = Vec::new();
        match ready.and_then(|()| take(&input, &mut splitter, &budget, &mut found)) {
            // A full read: more is waiting, perhaps without end, and other tasks come first.
            Ok(READ_BYTES) => yield_now().await,
            Ok(1..) => {}
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // A client that was killed with unread bytes causes this.
                tracing::debug!(%error, "cannot read from a client; taking its input as ended");
                break;
            }
        }
        if found.is_empty() {
            // A line that is too long is no longer kept, though it has no end yet.
            budget.settle(splitter.held_bytes());
        }
        for line in found {
            let is_long = is_long(&line);
            if !hand_over(line, &lines).await {
                return;
            }
            if is_long {
                // The line is charged until it is taken.
                if lines.reserve_many(WAITING_SOCKET_LINES).await.is_err() {
                    return;
                }
                budget.hold(splitter.held_bytes());
            }
        }
    }
    if is_closed(&input) {
        gone.cancel();
    }
    if let Some(line) = splitter.finish() {
        // The receiver may be gone.
        let _ = lines.send(line).await;
    }
}

/// Whether a line is charged until it is taken.
fn is_long(line: &Line) -> bool {
    match line {
        Line::Text(text) => text.len() >= LONG_LINE_BYTES,
        Line::TooLong | Line::Refused(_) => true,
    }
}

/// Hands a line over; false when the receiver is gone.
async fn hand_over(line: Line, lines: &mpsc::Sender<Line>) -> bool {
    match &line {
        Line::Text(text) if text.len() >= LONG_LINE_BYTES => {
            let Ok(mut places) = lines.reserve_many(WAITING_SOCKET_LINES).await else { return false };
            places.next().map(|place| place.send(line)).is_some()
        }
        _ => lines.send(line).await.is_ok(),
    }
}

/// Whether the client has closed both directions, and not only its writing side.
fn is_closed(input: &OwnedReadHalf) -> bool {
    let mut socket = [PollFd::new(input.as_ref(), PollFlags::empty())];
    poll(&mut socket, Some(&Timespec::default())).is_ok()
        && socket[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Reads the available bytes and gives their number; 0 at the end. The buffer is freed before the task waits: many clients are
/// silent for hours.
fn take(
    input: &OwnedReadHalf,
    splitter: &mut LineSplitter,
    budget: &ClientLineBudget,
    found: &mut Vec<Line>,
) -> io::Result<usize> {
    let mut buffer = [0; READ_BYTES];
    let count = input.try_read(&mut buffer)?;
    splitter.push_within(&buffer[..count], found, |bytes| budget.grow_to(bytes));
    if splitter.held_bytes() > SMALL_LINE_BYTES {
        budget.note_growth();
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use agentd_memory::MemoryAccount;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::transport::LineBudget;

    fn split(stream: UnixStream, max_line_bytes: usize) -> (mpsc::Receiver<Line>, Output) {
        super::split(stream, max_line_bytes, LineBudget::new(MemoryAccount::default(), None).client())
    }

    #[tokio::test]
    async fn lines_come_in_and_the_last_may_lack_its_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut lines, _output) = split(ours, 10);
        theirs.write_all(b"{}\r\nlonger than that\n\xFF\nla").await.unwrap();
        assert_eq!(lines.recv().await, Some(Line::Text("{}".into())));
        theirs.write_all(b"st").await.unwrap();
        theirs.shutdown().await.unwrap();
        let mut seen = Vec::new();
        while let Some(line) = lines.recv().await {
            seen.push(line);
        }
        assert_eq!(seen, [Line::TooLong, Line::Text("\u{fffd}".into()), Line::Text("last".into())]);
    }

    #[tokio::test]
    async fn everything_is_written_before_the_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (lines, output) = split(ours, 10);
        // More than the system holds: it is written only while the other side reads.
        let batch = vec![b'x'; 1 << 20];
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.map(|_| all.len())
        });
        for _ in 0..3 {
            assert!(output.write(batch.clone()).await);
        }
        output.finish().await.unwrap();
        drop(lines);
        assert_eq!(reading.await.unwrap().unwrap(), 3 << 20);
    }

    #[tokio::test]
    async fn a_client_that_is_gone_is_noticed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut lines, mut output) = split(ours, 10);
        drop(theirs);
        assert_eq!(lines.recv().await, None);
        output.write(b"hello\n".to_vec()).await;
        output.broken().await;
        assert_eq!(output.finish().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn giving_up_closes_the_connection() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (lines, output) = split(ours, 10);
        // The other side does not read: this is never written whole.
        assert!(output.write(vec![b'x'; 4 << 20]).await);
        drop((lines, output));
        // The end comes, and comes before the whole.
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).await.unwrap();
        assert!(all.len() < 4 << 20, "{}", all.len());
    }

    #[tokio::test]
    async fn a_client_that_is_gone_differs_from_one_that_only_reads() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut lines, output) = split(ours, 10);
        theirs.shutdown().await.unwrap();
        assert_eq!(lines.recv().await, None);
        assert!(!output.gone().is_cancelled());
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_lines, output) = split(ours, 10);
        drop(theirs);
        output.gone().cancelled().await;
    }
}
