//! The writing half of a connection.

use agentd_session::FeedReader;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::transport::stdio::Output;

/// What the reading half tells the writing half.
pub(super) enum Out {
    /// An answer of the connection itself, without LF.
    Line(Bytes),
    /// From here on, follow this session; first write what the one before still has to say.
    Follow(FeedReader),
    /// Write answers only: the client has ended its input, and with it its interest in events.
    Mute,
}

/// Writes until the reading half has ended and the feed is closed.
///
/// # Errors
/// When the client's end is gone.
pub(super) async fn write(
    mut feed: FeedReader,
    mut out: mpsc::Receiver<Out>,
    mut output: Output,
) -> std::io::Result<()> {
    let (mut reading, mut following) = (true, true);
    let mut batch = Vec::new();
    while reading || following {
        tokio::select! {
            told = out.recv(), if reading => match told {
                Some(Out::Line(line)) => agentd_protocol::lines::write_line(&line, &mut batch),
                Some(Out::Mute) => feed.mute(),
                Some(Out::Follow(next)) => {
                    // The old session is closed by now: what it left is all there is.
                    while feed.take(&mut batch) {
                        if !output.write(std::mem::take(&mut batch)).await {
                            return output.finish().await;
                        }
                    }
                    (feed, following) = (next, true);
                }
                None => reading = false,
            },
            more = feed.next(&mut batch), if following => following = more,
            // Noticed when it happens, not with the next line: there may be none.
            () = output.broken() => break,
        }
        if !batch.is_empty() && !output.write(std::mem::take(&mut batch)).await {
            break;
        }
    }
    output.finish().await
}
