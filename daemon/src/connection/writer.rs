//! The writing half of a connection.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use agentd_protocol::{
    daemon::{Lagged, SessionClosed},
    error::{ErrorCode, Failure},
    event::Event,
    frame::Response,
    lines::write_line,
};
use agentd_session::FeedItem;
use bytes::Bytes;
use futures::{StreamExt, stream::SelectAll};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use super::{
    cumulative::Cumulative,
    following::{Batch, Following},
    view::View,
    watching::{Told, Watching},
};
use crate::transport::Output;

/// Lines that grow on their way are handed over when they are so many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// What the reading half tells the writing half.
pub(super) enum Out {
    /// An answer of the connection itself, without LF.
    Line(Bytes),
    /// From here on, follow this session too.
    Follow(Box<Following>),
    /// From here on, tell what happens to sessions.
    Watch(Watching),
    /// Write what is left of this session, which has ended, before anything else.
    AwaitEnd(Arc<str>),
    /// From here on, the client sees what sessions say so.
    View(View),
    /// Everything that was told before this counts from now on; nobody may be left to be told that.
    Settle(oneshot::Sender<()>),
}

/// Writes until the reading half has ended and every session that is followed has.
///
/// # Errors
/// When the client's end is gone, and when a plain client did not keep up, which could not understand being told.
pub(super) async fn write(mut out: mpsc::Receiver<Out>, mut output: Output) -> std::io::Result<()> {
    let mut feeds = SelectAll::new();
    let mut reading = true;
    let mut lines = Lines::default();
    while reading || !feeds.is_empty() {
        tokio::select! {
            told = out.recv(), if reading => match told {
                Some(Out::Line(line)) => write_line(&line, &mut lines.batch),
                Some(Out::View(view)) => lines.see(view),
                Some(Out::Settle(settled)) => {
                    let _ = settled.send(());
                }
                Some(Out::Follow(following)) => {
                    lines.join(&following);
                    *lines.open.entry(Arc::clone(&following.session)).or_default() += 1;
                    feeds.push(following.batches().boxed());
                }
                Some(Out::Watch(watching)) => {
                    lines.watchers += 1;
                    feeds.push(watching.batches().boxed());
                }
                Some(Out::AwaitEnd(session)) => {
                    while lines.open.contains_key(&session)
                        && let Some(batch) = feeds.next().await
                    {
                        if !lines.write(batch, &output).await {
                            return output.finish().await;
                        }
                    }
                }
                None => reading = false,
            },
            // It gives nothing when the last one is over: then the loop looks again whether anything is left.
            batch = feeds.next(), if !feeds.is_empty() => if let Some(batch) = batch
                && !lines.write(batch, &output).await
            {
                break;
            },
            // Noticed when it happens, not with the next line: there may be none.
            () = output.broken() => break,
        }
        if !lines.flush(&output).await || lines.is_over {
            break;
        }
    }
    output.finish().await
}

/// Lines that are about to be written.
#[derive(Default)]
struct Lines {
    batch: Vec<u8>,
    view: View,
    /// The answers that stream, for a client that wants them whole.
    cumulative: Option<Cumulative>,
    /// How many feeds of each session have not come to their end.
    open: HashMap<Arc<str>, usize>,
    /// Sessions of whose end one side has heard, the feed or the watcher: it is told once, after the feed's last line.
    half_told: HashSet<Arc<str>>,
    /// How many watchers have not come to their end: two for a moment, when one takes the place of another.
    watchers: usize,
    /// A plain client that lagged is told and left.
    is_over: bool,
}

impl Lines {
    /// What the client sees changes.
    fn see(&mut self, view: View) {
        self.view = view;
        if !view.is_cumulative {
            self.cumulative = None;
        } else if self.cumulative.is_none() {
            self.cumulative = Some(Cumulative::default());
        }
    }

    /// A session is followed from here on.
    fn join(&mut self, following: &Following) {
        if let (Some(cumulative), Some(so_far)) = (&mut self.cumulative, &following.so_far) {
            cumulative.joined(&following.session, so_far);
        }
    }

    /// Writes a batch; false when writing has failed. Memory stays bounded also where lines grow on their way.
    async fn write(&mut self, batch: Batch, output: &Output) -> bool {
        match batch {
            Batch::Items(session, items) if self.cumulative.is_some() => {
                for item in items {
                    self.item(&session, item);
                    if self.batch.len() >= BATCH_BYTES && !self.flush(output).await {
                        return false;
                    }
                }
            }
            batch => self.add(batch),
        }
        self.flush(output).await
    }

    fn add(&mut self, batch: Batch) {
        let (session, items) = match batch {
            Batch::Items(session, items) => (session, items),
            Batch::News(told) => return told.into_iter().for_each(|told| self.told(told)),
            Batch::Unwatched => {
                self.watchers -= 1;
                if self.watchers == 0 {
                    self.half_told.clear();
                }
                return;
            }
            Batch::End { session, has_ended } => return self.end(&session, has_ended),
        };
        let bytes: usize = items.iter().map(length).sum();
        self.batch.reserve(bytes);
        for item in items {
            self.item(&session, item);
        }
    }

    fn item(&mut self, session: &Arc<str>, item: FeedItem) {
        match item {
            FeedItem::Event { audience, .. } if !self.view.shows(audience) => {}
            FeedItem::Event { seq, line, .. } => {
                let from = self.batch.len();
                match &mut self.cumulative {
                    None => write_line(&line, &mut self.batch),
                    Some(cumulative) => match cumulative.event(session, &line) {
                        Some(line) => write_line(&line, &mut self.batch),
                        None => return,
                    },
                }
                if self.view.names_sessions {
                    name_session(&mut self.batch, from, session, seq);
                }
            }
            FeedItem::Reply { line } => match &self.cumulative {
                None => write_line(&line, &mut self.batch),
                Some(cumulative) => write_line(&cumulative.response(&line), &mut self.batch),
            },
            FeedItem::Addressed { line } => write_line(&line, &mut self.batch),
            FeedItem::Lagged { from_seq } => self.lagged(session, from_seq),
        }
    }

    /// A feed has come to its end.
    fn end(&mut self, session: &Arc<str>, has_ended: bool) {
        if let Entry::Occupied(mut open) = self.open.entry(Arc::clone(session)) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
                if let Some(cumulative) = &mut self.cumulative {
                    cumulative.left(session);
                }
            }
        }
        let waited_for = self.half_told.remove(session);
        if waited_for || (has_ended && self.view.names_sessions) {
            self.closed(session);
            if self.watchers > 0 && !waited_for {
                self.half_told.insert(Arc::clone(session));
            }
        }
    }

    /// What a watcher has heard.
    fn told(&mut self, told: Told) {
        match told {
            Told::Line(line) => write_line(&line, &mut self.batch),
            Told::Closed(session) if self.open.contains_key(&session) => {
                self.half_told.insert(session);
            }
            Told::Closed(session) => {
                if !self.half_told.remove(&session) {
                    self.closed(&session);
                }
            }
        }
    }

    fn closed(&mut self, session: &str) {
        self.put(&Event::from(SessionClosed { session_id: session.to_owned() }));
    }

    fn lagged(&mut self, session: &str, from_seq: u64) {
        if self.view.names_sessions {
            self.put(&Event::from(Lagged { session_id: session.to_owned(), from_seq }));
        } else {
            let text = "This client did not keep up with the session, which others follow too.";
            let failure = Failure::new(ErrorCode::Aborted, text).hint(
                "Connect again. After `hello` with the capability `sessions` a slow client is told and stays connected.",
            );
            self.put(&Response::<()>::failed(None, None, failure));
            self.is_over = true;
        }
    }

    fn put<T: Serialize>(&mut self, record: &T) {
        match serde_json::to_vec(record) {
            Ok(line) => write_line(&line, &mut self.batch),
            Err(error) => tracing::error!(%error, "cannot write a record"),
        }
    }

    /// Hands the lines over; false when writing has failed.
    async fn flush(&mut self, output: &Output) -> bool {
        self.batch.is_empty() || output.write(std::mem::take(&mut self.batch)).await
    }
}

/// What an item adds to the batch, about.
fn length(item: &FeedItem) -> usize {
    /// Room for the line break, and for the session's name.
    const MORE: usize = 80;
    match item {
        FeedItem::Event { line, .. } | FeedItem::Reply { line } | FeedItem::Addressed { line } => {
            line.len() + MORE
        }
        FeedItem::Lagged { .. } => MORE,
    }
}

/// Puts the session's id and the event's number before the closing brace of the line that begins at `from` and ends the
/// batch. Ids have no characters that JSON would escape.
fn name_session(batch: &mut Vec<u8>, from: usize, session: &str, seq: u64) {
    if batch[from..].ends_with(b"}\n") {
        batch.truncate(batch.len() - 2);
        batch.extend_from_slice(format!(",\"sessionId\":\"{session}\",\"seq\":{seq}}}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use agentd_session::{Audience, Feed, FeedLimits};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::connection::following::Pending;

    fn event(seq: u64, line: &'static str) -> FeedItem {
        FeedItem::Event { seq, audience: Audience::Everyone, line: Bytes::from_static(line.as_bytes()) }
    }

    #[test]
    fn events_name_their_session_when_asked_to() {
        let mut lines = Lines { view: View { names_sessions: true, ..View::default() }, ..Lines::default() };
        lines.add(Batch::Items("s".into(), vec![event(7, "{\"type\":\"x\"}")]));
        assert_eq!(
            String::from_utf8(lines.batch).unwrap(),
            "{\"type\":\"x\",\"sessionId\":\"s\",\"seq\":7}\n"
        );
        let mut plain = Lines::default();
        plain.add(Batch::Items("s".into(), vec![event(7, "{\"type\":\"x\"}")]));
        assert_eq!(String::from_utf8(plain.batch).unwrap(), "{\"type\":\"x\"}\n");
    }

    #[test]
    fn a_lag_is_told_or_ends_a_plain_client() {
        let mut lines = Lines { view: View { names_sessions: true, ..View::default() }, ..Lines::default() };
        lines.add(Batch::Items("s".into(), vec![FeedItem::Lagged { from_seq: 3 }]));
        let text = String::from_utf8(lines.batch).unwrap();
        assert_eq!(text, "{\"type\":\"lagged\",\"sessionId\":\"s\",\"fromSeq\":3}\n");
        assert!(!lines.is_over);
        let mut plain = Lines::default();
        plain.add(Batch::Items("s".into(), vec![FeedItem::Lagged { from_seq: 3 }]));
        assert!(plain.is_over && String::from_utf8(plain.batch).unwrap().contains("did not keep up"));
    }

    /// A session that ended by itself, while an answer of another one is under way.
    #[tokio::test]
    async fn nothing_is_awaited_of_a_session_that_is_over_already() {
        let (ended, other) = (Feed::new(FeedLimits::default()), Feed::new(FeedLimits::default()));
        let follow = |name: &str, feed: &Feed, pending: Pending| {
            let (feed, leaving) = (feed.attach(), CancellationToken::new());
            Out::Follow(Box::new(Following { session: name.into(), feed, pending, leaving, so_far: None }))
        };
        let (reader, pipe) = std::io::pipe().unwrap();
        let (outbox, out) = mpsc::channel(8);
        let writing = tokio::spawn(write(out, Output::start(pipe).unwrap()));
        let tell = async |told: Out| outbox.send(told).await.map_err(drop).unwrap();
        tell(follow("ended", &ended, Pending::default())).await;
        tell(follow("other", &other, Pending::default())).await;
        let (written, mut lines) = mpsc::channel(8);
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                written.blocking_send(line).unwrap();
            }
        });
        ended.publish([Bytes::from_static(b"last")]);
        ended.close();
        assert_eq!(lines.recv().await.unwrap(), "last");
        // What comes later is written later: by then the writer knows of the end.
        for text in ["a", "b", "c"] {
            other.publish([Bytes::from_static(text.as_bytes())]);
            assert_eq!(lines.recv().await.unwrap(), text);
        }
        tell(Out::AwaitEnd("ended".into())).await;
        tell(Out::Line(Bytes::from_static(b"answer"))).await;
        let answer = tokio::time::timeout(std::time::Duration::from_secs(10), lines.recv()).await;
        assert_eq!(answer.expect("the writer does not wait").unwrap(), "answer");
        other.close();
        drop(outbox);
        writing.await.unwrap().unwrap();
    }
}
