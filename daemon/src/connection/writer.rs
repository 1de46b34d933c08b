//! The writing half of a connection: merges the connection's own answers with the streams of its sessions.

use std::sync::Arc;

use agentd_protocol::chunked::FrameVersion;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, SelectAll},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    client::ClientView,
    event_filter::EventTypes,
    feeds::{FollowedFeed, SessionWatch},
    output_lines::OutputLines,
};
use crate::{hub::ConnectionStats, transport::Output};

/// A message from the reading half to the writing half.
pub(super) enum WriterCommand {
    /// An answer of the connection itself, without LF.
    Line(Bytes),
    /// Follow this session, too.
    Follow(Box<FollowedFeed>),
    /// Write the changes of all sessions, too.
    Watch(SessionWatch),
    /// Write the remaining lines of this session, which has ended, before anything else.
    AwaitEnd(Arc<str>),
    /// From here on, write the lines that this view shows.
    View(ClientView),
    /// From here on, write only these events of sessions; `None` for all.
    Filter(Option<EventTypes>),
    /// From here on, write long lines in this form.
    Frames(FrameVersion),
    /// Confirm that all messages before this one are applied. The receiver may be gone.
    Settle(oneshot::Sender<()>),
}

/// Writes until the reading half and all streams have ended. Lags of the client are counted in `connections`.
///
/// # Errors
/// When the client is gone.
pub(super) async fn write(
    mut commands: mpsc::Receiver<WriterCommand>,
    mut output: Output,
    connections: Arc<ConnectionStats>,
) -> std::io::Result<()> {
    let mut feeds = SelectAll::new();
    // One stream alone would wake this task again each time that it has been polled: `FuturesUnordered` lets others go first once it
    // has polled as many futures as it holds.
    feeds.push(stream::pending().boxed());
    let mut reading = true;
    let mut lines = OutputLines::new(connections);
    while reading || lines.has_streams() {
        tokio::select! {
            command = commands.recv(), if reading => match command {
                Some(WriterCommand::Line(line)) => lines.line(&line),
                Some(WriterCommand::View(view)) => lines.set_view(view),
                Some(WriterCommand::Filter(types)) => lines.set_filter(types),
                Some(WriterCommand::Frames(version)) => lines.set_frames(version),
                Some(WriterCommand::Settle(settled)) => {
                    let _ = settled.send(());
                }
                Some(WriterCommand::Follow(following)) => {
                    lines.follow(&following);
                    feeds.push(following.batches().boxed());
                }
                Some(WriterCommand::Watch(watching)) => {
                    lines.watch();
                    feeds.push(watching.batches().boxed());
                }
                Some(WriterCommand::AwaitEnd(session)) => {
                    while lines.follows(&session)
                        && let Some(batch) = feeds.next().await
                    {
                        if !lines.write(batch, &output).await {
                            return output.finish().await;
                        }
                    }
                }
                None => reading = false,
            },
            Some(batch) = feeds.next() => if !lines.write(batch, &output).await {
                break;
            },
            // Noticed at once, not with the next line, which may never come.
            () = output.broken() => break,
        }
        if !lines.flush(&output).await || lines.is_over() {
            break;
        }
    }
    output.finish().await
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        io::{BufRead, BufReader},
        sync::atomic::{AtomicUsize, Ordering},
    };

    use agentd_session::{Feed, FeedLimits};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::connection::feeds::OwedReplies;

    fn follow(name: &str, feed: &Feed, owed: OwedReplies) -> WriterCommand {
        let (feed, leaving) = (feed.attach(), CancellationToken::new());
        WriterCommand::Follow(Box::new(FollowedFeed {
            session: name.into(),
            feed,
            owed,
            leaving,
            so_far: None,
        }))
    }

    /// The lines that are written into a pipe.
    fn lines_of(pipe: std::io::PipeReader) -> mpsc::Receiver<String> {
        let (written, lines) = mpsc::channel(8);
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                written.blocking_send(line).unwrap();
            }
        });
        lines
    }

    #[tokio::test]
    async fn a_batch_wakes_the_writer_once() {
        const BATCHES: usize = 50;
        let feed = Feed::new(FeedLimits::default());
        let (read_end, pipe) = std::io::pipe().unwrap();
        let (outbox, out) = mpsc::channel(8);
        let mut writing = Box::pin(write(out, Output::on_thread(pipe).unwrap(), Arc::default()));
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let writing = tokio::spawn(poll_fn(move |context| {
            counted.fetch_add(1, Ordering::Relaxed);
            writing.as_mut().poll(context)
        }));
        let followed = outbox.send(follow("s", &feed, OwedReplies::default())).await;
        followed.map_err(drop).unwrap();
        let mut lines = lines_of(read_end);
        for _ in 0..BATCHES {
            feed.publish([Bytes::from_static(b"event")]);
            assert_eq!(lines.recv().await.unwrap(), "event");
        }
        let polls = polls.load(Ordering::Relaxed);
        // Beside them: its start, and the session that it follows.
        assert!(polls < BATCHES + 5, "{polls}");
        feed.close();
        drop(outbox);
        writing.await.unwrap().unwrap();
    }

    /// A session that ended by itself, while an answer of another one is under way.
    #[tokio::test]
    async fn the_end_of_a_session_that_is_over_already_is_not_awaited() {
        let (ended, other) = (Feed::new(FeedLimits::default()), Feed::new(FeedLimits::default()));
        let (read_end, pipe) = std::io::pipe().unwrap();
        let (outbox, out) = mpsc::channel(8);
        let writing = tokio::spawn(write(out, Output::on_thread(pipe).unwrap(), Arc::default()));
        let tell = async |command: WriterCommand| outbox.send(command).await.map_err(drop).unwrap();
        tell(follow("ended", &ended, OwedReplies::default())).await;
        tell(follow("other", &other, OwedReplies::default())).await;
        let mut lines = lines_of(read_end);
        ended.publish([Bytes::from_static(b"last")]);
        ended.close();
        assert_eq!(lines.recv().await.unwrap(), "last");
        // Once a later line is written, the writer knows of the end.
        for text in ["a", "b", "c"] {
            other.publish([Bytes::from_static(text.as_bytes())]);
            assert_eq!(lines.recv().await.unwrap(), text);
        }
        tell(WriterCommand::AwaitEnd("ended".into())).await;
        tell(WriterCommand::Line(Bytes::from_static(b"answer"))).await;
        let answer = tokio::time::timeout(std::time::Duration::from_secs(10), lines.recv()).await;
        assert_eq!(answer.expect("the writer does not wait").unwrap(), "answer");
        other.close();
        drop(outbox);
        writing.await.unwrap().unwrap();
    }
}
