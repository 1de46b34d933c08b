//! The lines of a connection, as its client wants them: which events, in which form, with what added.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt,
    io::Write as _,
    sync::Arc,
};

use agentd_protocol::{
    chunked::FrameVersion,
    daemon::{Lagged, SessionClosed},
    error::{ErrorCode, Failure},
    event::Event,
    frame::Response,
    lines::write_line,
};
use agentd_session::{FeedItem, LongReply, MessageId};
use serde::Serialize;

use super::{
    client::ClientView,
    cumulative::CumulativeView,
    event_filter::EventTypes,
    feeds::{FollowedFeed, OutputBatch, WatchOutput},
    long_lines::LongLines,
};
use crate::{hub::ConnectionStats, transport::Output};

/// Cumulative updates grow here; a batch of them is written once it has this many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// Room for the message that ends a piece of a long answer.
const PIECE_MARGIN: usize = 16 << 10;

/// The lines that are about to be written, and the state that they depend on.
#[derive(Default)]
pub(super) struct OutputLines {
    batch: Vec<u8>,
    view: ClientView,
    /// The streaming answers, for a client with cumulative updates.
    cumulative: Option<CumulativeView>,
    /// The events that the client wants; `None` for all.
    filter: Option<EventTypes>,
    /// Set for a client that wants long lines in parts.
    long_lines: Option<LongLines>,
    /// The number of feeds of each session that have not ended.
    open: HashMap<Arc<str>, usize>,
    /// Sessions whose end one of feed and watch has reported: `session_closed` is written once, after the feed's last line.
    half_closed: HashSet<Arc<str>>,
    /// The number of watches that have not ended: two for a moment, when one replaces another.
    watchers: usize,
    /// Counts the client's lags.
    connections: Arc<ConnectionStats>,
    /// Set when a client that does not name sessions has lagged: it gets an error, and the connection ends.
    is_over: bool,
}

impl OutputLines {
    /// No lines. Lags of the client are counted in `connections`.
    pub(super) fn new(connections: Arc<ConnectionStats>) -> Self {
        Self { connections, ..Self::default() }
    }

    /// Whether a stream has not ended.
    pub(super) fn has_streams(&self) -> bool {
        !self.open.is_empty() || self.watchers > 0
    }

    /// Changes the view.
    pub(super) fn set_view(&mut self, view: ClientView) {
        self.view = view;
        if !view.is_cumulative {
            self.cumulative = None;
        } else if self.cumulative.is_none() {
            self.cumulative = Some(CumulativeView::default());
        }
    }

    /// Changes the form of long lines.
    pub(super) fn set_frames(&mut self, version: FrameVersion) {
        match version {
            FrameVersion::Whole => self.long_lines = None,
            FrameVersion::Chunked => {
                self.long_lines.get_or_insert_default();
            }
        }
    }

    /// From here on, only these events of sessions count; `None` for all.
    pub(super) fn set_filter(&mut self, types: Option<EventTypes>) {
        self.filter = types;
    }

    /// Adds an answer of the connection itself, without LF.
    pub(super) fn line(&mut self, line: &[u8]) {
        write_line(line, &mut self.batch);
    }

    /// Counts a feed more, perhaps of a session that is in the middle of an answer.
    pub(super) fn follow(&mut self, following: &FollowedFeed) {
        *self.open.entry(Arc::clone(&following.session)).or_default() += 1;
        if let (Some(cumulative), Some(so_far)) = (&mut self.cumulative, &following.so_far) {
            cumulative.joined(&following.session, so_far);
        }
    }

    /// Counts a watch more.
    pub(super) fn watch(&mut self) {
        self.watchers += 1;
    }

    /// Whether a feed of a session has not ended.
    pub(super) fn follows(&self, session: &str) -> bool {
        self.open.contains_key(session)
    }

    /// Whether the client has to go: it does not name sessions, and has lagged.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Writes a batch; false when writing has failed. Memory stays bounded even when lines grow.
    pub(super) async fn write(&mut self, batch: OutputBatch, output: &Output) -> bool {
        match batch {
            OutputBatch::Items(session, items) if items.iter().any(is_long) => {
                for item in items {
                    let is_written = match item {
                        FeedItem::LongReply { reply } => self.long_reply(&session, reply, output).await,
                        item => {
                            self.item(&session, item);
                            self.batch.len() < BATCH_BYTES || self.flush(output).await
                        }
                    };
                    if !is_written {
                        return false;
                    }
                }
            }
            OutputBatch::Items(session, items) if self.cumulative.is_some() => {
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

    /// Writes a long answer, in pieces unless the reader, or a form that the client chose, needs it whole; false when writing has failed.
    async fn long_reply(&mut self, session: &Arc<str>, reply: LongReply, output: &Output) -> bool {
        let is_whole = !output.takes_pieces() || self.cumulative.is_some() || self.long_lines.is_some();
        if !is_whole {
            return self.flush(output).await && write_pieces(reply, output).await;
        }
        match tokio::task::spawn_blocking(move || reply.line()).await {
            Ok(line) => self.item(session, FeedItem::Reply { line }),
            Err(error) => tracing::error!(%error, "a long answer could not be made"),
        }
        self.flush(output).await
    }

    fn add(&mut self, batch: OutputBatch) {
        let (session, items) = match batch {
            OutputBatch::Items(session, items) => (session, items),
            OutputBatch::Changes(outputs) => {
                return outputs.into_iter().for_each(|output| self.watched(output));
            }
            OutputBatch::Unwatched => {
                self.watchers -= 1;
                if self.watchers == 0 {
                    self.half_closed.clear();
                }
                return;
            }
            OutputBatch::End { session, has_ended } => return self.end(&session, has_ended),
        };
        if self.filter.is_none() {
            let bytes: usize = items.iter().map(length).sum();
            self.batch.reserve(bytes);
        }
        for item in items {
            self.item(&session, item);
        }
    }

    fn item(&mut self, session: &Arc<str>, item: FeedItem) {
        match item {
            FeedItem::Event { audience, .. } if !self.view.shows(audience) => {}
            FeedItem::Event { seq, audience, message, line } => {
                let (line, behind) = self.view.form(audience, &line);
                self.event(session, line, Added { message, seq: Some(seq) });
                if !behind.is_empty() {
                    self.event(session, behind, Added { message: None, seq: None });
                }
            }
            FeedItem::Reply { line } => match &self.cumulative {
                None => write_line(&line, &mut self.batch),
                Some(cumulative) => write_line(&cumulative.response(&line), &mut self.batch),
            },
            // Those that come by `write` are made on another thread.
            FeedItem::LongReply { reply } => self.item(session, FeedItem::Reply { line: reply.line() }),
            FeedItem::Addressed { line } => write_line(&line, &mut self.batch),
            FeedItem::Lagged { from_seq } => self.lagged(session, from_seq),
        }
    }

    /// Adds the line of an event, with what this client wants besides.
    fn event(&mut self, session: &Arc<str>, line: &[u8], added: Added) {
        let from = self.batch.len();
        let is_wanted = self.filter.as_ref().is_none_or(|types| types.shows(line));
        match &mut self.cumulative {
            None if is_wanted => write_line(line, &mut self.batch),
            None => return,
            // It sees what is not wanted, too: an update says what the answer is so far.
            Some(cumulative) => match cumulative.event(session, line) {
                Some(line) if is_wanted => write_line(&line, &mut self.batch),
                _ => return,
            },
        }
        if let Some(id) = added.message.filter(|_| self.view.has_message_ids) {
            add_fields(&mut self.batch, from, format_args!("\"messageId\":\"{id}\""));
        }
        if self.view.names_sessions {
            // Ids have no characters that JSON would escape.
            match added.seq {
                Some(seq) => add_fields(
                    &mut self.batch,
                    from,
                    format_args!("\"sessionId\":\"{session}\",\"seq\":{seq}"),
                ),
                None => add_fields(&mut self.batch, from, format_args!("\"sessionId\":\"{session}\"")),
            }
        }
    }

    /// Handles the end of a feed.
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
        let watch_reported = self.half_closed.remove(session);
        if watch_reported || (has_ended && self.view.names_sessions) {
            self.closed(session);
            if self.watchers > 0 && !watch_reported {
                self.half_closed.insert(Arc::clone(session));
            }
        }
    }

    /// Handles an output of a watch.
    fn watched(&mut self, output: WatchOutput) {
        match output {
            WatchOutput::Line(line) => write_line(&line, &mut self.batch),
            WatchOutput::Closed(session) if self.open.contains_key(&session) => {
                self.half_closed.insert(session);
            }
            WatchOutput::Closed(session) => {
                if !self.half_closed.remove(&session) {
                    self.closed(&session);
                }
            }
        }
    }

    fn closed(&mut self, session: &str) {
        self.put(&Event::from(SessionClosed { session_id: session.to_owned() }));
    }

    fn lagged(&mut self, session: &str, from_seq: u64) {
        self.connections.count_lagged();
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

    /// Hands the lines to the output; false when writing has failed.
    pub(super) async fn flush(&mut self, output: &Output) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        let batch = std::mem::take(&mut self.batch);
        match &mut self.long_lines {
            None => output.write(batch).await,
            Some(long_lines) => long_lines.write(batch, output).await,
        }
    }
}

/// The approximate number of bytes that an item adds to the batch.
fn length(item: &FeedItem) -> usize {
    /// For the line break, `sessionId` and `seq`.
    const MORE: usize = 80;
    match item {
        FeedItem::Event { line, .. } | FeedItem::Reply { line } | FeedItem::Addressed { line } => {
            line.len() + MORE
        }
        FeedItem::LongReply { .. } | FeedItem::Lagged { .. } => MORE,
    }
}

fn is_long(item: &FeedItem) -> bool {
    matches!(item, FeedItem::LongReply { .. })
}

/// Writes a long answer as it is made; false when writing has failed. Only a few pieces of it are in memory.
async fn write_pieces(reply: LongReply, output: &Output) -> bool {
    let mut writer = reply.writer();
    loop {
        let made = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(BATCH_BYTES + PIECE_MARGIN);
            let is_complete = writer.write_piece(BATCH_BYTES, &mut piece);
            if is_complete {
                piece.push(b'\n');
            }
            (writer, piece, is_complete)
        });
        // A line that was begun and cannot be ended is no line: the connection ends with it.
        let Ok((next, piece, is_complete)) = made.await else { return false };
        writer = next;
        if !output.write(piece).await {
            return false;
        }
        if is_complete {
            return true;
        }
    }
}

/// What the connection may add to an event.
struct Added {
    message: Option<MessageId>,
    /// The event's number, where it has one.
    seq: Option<u64>,
}

/// Inserts fields before the closing brace of the line that begins at `from` and ends the batch.
fn add_fields(batch: &mut Vec<u8>, from: usize, fields: fmt::Arguments<'_>) {
    if batch[from..].ends_with(b"}\n") {
        batch.truncate(batch.len() - 2);
        batch.push(b',');
        // A vector takes all that is written to it.
        let _ = batch.write_fmt(fields);
        batch.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use agentd_session::Audience;
    use bytes::Bytes;

    use super::*;

    fn event(seq: u64, line: &'static str) -> FeedItem {
        FeedItem::Event {
            seq,
            audience: Audience::Everyone,
            message: None,
            line: Bytes::from_static(line.as_bytes()),
        }
    }

    #[test]
    fn events_name_their_session_when_asked_to() {
        let mut lines = OutputLines {
            view: ClientView { names_sessions: true, ..ClientView::default() },
            ..OutputLines::default()
        };
        lines.add(OutputBatch::Items("s".into(), vec![event(7, "{\"type\":\"x\"}")]));
        assert_eq!(
            String::from_utf8(lines.batch).unwrap(),
            "{\"type\":\"x\",\"sessionId\":\"s\",\"seq\":7}\n"
        );
        let mut plain = OutputLines::default();
        plain.add(OutputBatch::Items("s".into(), vec![event(7, "{\"type\":\"x\"}")]));
        assert_eq!(String::from_utf8(plain.batch).unwrap(), "{\"type\":\"x\"}\n");
    }

    #[test]
    fn a_lag_is_reported_or_ends_a_client_without_hello() {
        let mut lines = OutputLines {
            view: ClientView { names_sessions: true, ..ClientView::default() },
            ..OutputLines::default()
        };
        lines.add(OutputBatch::Items("s".into(), vec![FeedItem::Lagged { from_seq: 3 }]));
        let text = String::from_utf8(lines.batch).unwrap();
        assert_eq!(text, "{\"type\":\"lagged\",\"sessionId\":\"s\",\"fromSeq\":3}\n");
        assert!(!lines.is_over);
        let mut plain = OutputLines::default();
        plain.add(OutputBatch::Items("s".into(), vec![FeedItem::Lagged { from_seq: 3 }]));
        assert!(plain.is_over && String::from_utf8(plain.batch).unwrap().contains("did not keep up"));
    }
}
