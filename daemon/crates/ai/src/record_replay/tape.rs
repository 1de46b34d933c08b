//! One exchange as it is recorded.

use std::time::Instant;

use agentd_http::{Redactor, StreamRedactor};
use reqwest::header::HeaderMap;
use tokio::sync::{mpsc, oneshot};

use super::format::{End, Failed, Line, chunk};
use crate::failure::{Failure, FailureKind};

/// Takes down one exchange. Dropping it before its end records that the answer was aborted.
pub(crate) struct Tape {
    lines: mpsc::Sender<Entry>,
    redactor: Redactor,
    stream: StreamRedactor,
    begun: Instant,
}

/// A line on its way to the disk.
pub(super) struct Entry {
    pub(super) line: Line,
    /// Hears that the line is written.
    pub(super) written: Option<oneshot::Sender<()>>,
}

impl Tape {
    pub(super) fn new(
        lines: mpsc::Sender<Entry>,
        stream: StreamRedactor,
        redactor: Redactor,
        begun: Instant,
    ) -> Self {
        Self { lines, redactor, stream, begun }
    }

    /// Takes down a line. A recording that has failed takes nothing, and has been reported.
    pub(super) async fn write(&self, line: Line) {
        let _ = self.lines.send(Entry { line, written: None }).await;
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The answer begins.
    pub(crate) async fn response(&self, status: u16, headers: &HeaderMap) {
        let headers = shown_headers(headers, &self.redactor);
        self.write(Line::Response { ms: self.ms(), status, headers }).await;
    }

    /// Bytes of the body.
    pub(crate) async fn chunk(&mut self, bytes: &[u8]) {
        let bytes = self.stream.feed(bytes);
        if !bytes.is_empty() {
            self.write(chunk(self.ms(), bytes)).await;
        }
    }

    /// The exchange is over. Returns when that is on its way to the disk: what follows may be the end of the process.
    pub(crate) async fn end(mut self, failure: Option<&Failure>) {
        let ms = self.ms();
        let rest = self.stream.finish();
        if !rest.is_empty() {
            self.write(chunk(ms, rest)).await;
        }
        let line = match failure {
            Some(failure) if failure.kind == FailureKind::Aborted => Line::End { ms, reason: End::Aborted },
            Some(failure) => Line::Failure(Failed::of(ms, failure)),
            None => Line::End { ms, reason: End::Complete },
        };
        let (written, done) = oneshot::channel();
        if self.lines.send(Entry { line, written: Some(written) }).await.is_ok() {
            // A recording that failed on the way drops its end.
            let _ = done.await;
        }
    }
}

/// Headers without secrets, in their order.
pub(super) fn shown_headers(headers: &HeaderMap, redactor: &Redactor) -> Vec<(String, String)> {
    let shown = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        let value = if value.is_sensitive() || Redactor::hides(name.as_str()) {
            "[redacted]".to_owned()
        } else {
            redactor.redact(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        (name.as_str().to_owned(), value)
    };
    headers.iter().map(shown).collect()
}
