//! Decodes the body of an answer: tells its format, splits it into events, and makes every end a defined one. The provider API's
//! [`AnswerDecoder`] gives the events their meaning.

use std::time::Duration;

use agentd_protocol::message::StopReason;

use crate::{
    Delta,
    failure::{Failure, FailureKind, classify_message},
    http::{
        ErrorBody, Server,
        adapter::{AnswerDecoder, DecodeStep, Framing},
        event_stream::{EventStreamParser, Frame, FrameError, FrameKind},
        sse::SseParser,
    },
};

/// The part of an unusable answer that a failure shows, in characters.
const MAX_SHOWN: usize = 200;

/// The timeout for bytes after the end of the content. Some servers leave the connection open then.
pub(super) const AFTER_CONTENT_TIMEOUT: Duration = Duration::from_secs(15);

/// The format of a body, told by its first byte: servers and proxies are often wrong about it in `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    /// An event stream, or text that may be one.
    Events,
    /// One JSON value.
    Json,
    /// A web page.
    Html,
}

/// A byte order mark, which may precede any format.
const BOM: &[u8] = b"\xef\xbb\xbf";

impl BodyFormat {
    /// The format of a body; `None` while only white space (or nothing) has come. No line of an event stream begins with a brace or an
    /// angle bracket.
    fn of(beginning: &[u8]) -> Option<Self> {
        if BOM.starts_with(beginning) {
            return None;
        }
        let beginning = beginning.strip_prefix(BOM).unwrap_or(beginning);
        match beginning.trim_ascii_start().first()? {
            b'{' | b'[' => Some(Self::Json),
            b'<' => Some(Self::Html),
            _ => Some(Self::Events),
        }
    }
}

/// Turns the body of one answer into deltas as its bytes come. Pure.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct BodyDecoder<D> {
    /// The format of the body; not known before its first byte.
    format: Option<BodyFormat>,
    /// The beginning of the body.
    beginning: Vec<u8>,
    sse: SseParser,
    frames: EventStreamParser,
    /// The reason why the body is not a stream of frames, once that is known.
    no_frames: Option<FrameError>,
    /// The body so far, if it is one JSON value.
    json: Vec<u8>,
    events: Events<D>,
}

/// The part of the decoder that receives the events.
#[cfg_attr(test, derive(Clone))]
struct Events<D> {
    server: Server,
    decoder: D,
    seen: bool,
    at_end: bool,
    finished: bool,
    /// The events since they were last taken, for somebody who wants to see them.
    kept: Option<Vec<String>>,
}

impl<D: AnswerDecoder> BodyDecoder<D> {
    /// A decoder for an answer of `server`.
    pub(crate) fn new(server: Server, decoder: D) -> Self {
        Self {
            format: None,
            beginning: Vec::new(),
            sse: SseParser::default(),
            frames: EventStreamParser::default(),
            no_frames: None,
            json: Vec::new(),
            events: Events { server, decoder, seen: false, at_end: false, finished: false, kept: None },
        }
    }

    /// Keeps events for [`BodyDecoder::take_events`] from now on.
    pub(crate) fn keep_events(&mut self) {
        self.events.kept = Some(Vec::new());
    }

    /// The events that were kept.
    pub(crate) fn take_events(&mut self) -> Vec<String> {
        self.events.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether the last delta was emitted.
    pub(crate) fn is_finished(&self) -> bool {
        self.events.finished
    }

    /// Whether the content is complete, so that a failure after it does not matter.
    pub(crate) fn has_all_content(&self) -> bool {
        self.events.decoder.has_all_content()
    }

    /// Whether the answer is one JSON value, every byte of which is content.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.format, Some(BodyFormat::Json))
    }

    /// The part of the body that is kept until more has come, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.beginning.len() + self.sse.held_bytes() + self.frames.held_bytes() + self.json.len()
    }

    /// Takes the next bytes of the body.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Delta>) {
        if self.events.finished {
            return;
        }
        match self.format {
            Some(_) => self.take(bytes, out),
            None => {
                self.beginning.extend_from_slice(bytes);
                self.format = BodyFormat::of(&self.beginning);
                if self.format.is_some() {
                    let bytes = std::mem::take(&mut self.beginning);
                    self.take(&bytes, out);
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<Delta>) {
        let missing = MAX_SHOWN.saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        match self.format {
            Some(BodyFormat::Json) => self.json.extend_from_slice(bytes),
            Some(BodyFormat::Html) => {
                let message = format!(
                    "{} answered with a web page instead of a model's answer. Check the baseUrl of provider \"{}\": \
                     it often ends in /v1.",
                    self.events.server.url, self.events.server.provider
                );
                self.events.fail(Failure::new(FailureKind::Fatal, message), out);
            }
            // A frame begins with a byte of its size, which is neither a bracket nor white space.
            Some(BodyFormat::Events) | None if D::FRAMING == Framing::AwsEventStream => {
                self.take_frames(bytes, out)
            }
            Some(BodyFormat::Events) | None => {
                let Self { sse, events, .. } = self;
                if let Err(error) = sse.feed(bytes, &mut |name, data| events.event(name, data, out)) {
                    let message = format!("The answer of {} was given up: {error}.", events.server.host);
                    events.fail(Failure::new(FailureKind::Fatal, message), out);
                }
            }
        }
    }

    fn take_frames(&mut self, bytes: &[u8], out: &mut Vec<Delta>) {
        let Self { frames, events, .. } = self;
        if self.no_frames.is_none()
            && let Err(error) = frames.feed(bytes, &mut |frame| events.frame(&frame, out))
        {
            if frames.has_frames() {
                // Damage on the way may not happen again.
                let message = format!(
                    "Connection lost in the middle of the answer of {}: its event stream is damaged ({error}).",
                    events.server.host
                );
                events.fail(Failure::new(FailureKind::Retryable, message), out);
            } else {
                self.no_frames = Some(error);
            }
        }
        // Wait until there is enough to show, however the body is cut.
        if self.beginning.len() >= MAX_SHOWN {
            self.fail_without_frames(out);
        }
    }

    /// Fails the answer if it is neither a stream of frames nor of another known format.
    fn fail_without_frames(&mut self, out: &mut Vec<Delta>) {
        let Some(error) = self.no_frames else { return };
        let server = &self.events.server;
        let shown = String::from_utf8_lossy(&self.beginning);
        let shown: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let kind = classify_message(&server.provider, &shown);
        let message = format!(
            "{} answered with something that is no AWS event stream ({error}): {}. Check the baseUrl of provider \"{}\".",
            server.url,
            shown.trim(),
            server.provider
        );
        let failure = server.failure(kind, message);
        self.events.fail(failure, out);
    }

    /// Takes the end of the body.
    pub(crate) fn end(&mut self, out: &mut Vec<Delta>) {
        match self.format {
            Some(BodyFormat::Json) => {
                let json = std::mem::take(&mut self.json);
                self.events.whole(&String::from_utf8_lossy(&json), out);
            }
            // The rest of a torn frame is not reported: the missing end of the answer is.
            Some(BodyFormat::Events) if D::FRAMING == Framing::AwsEventStream => {
                self.fail_without_frames(out);
                self.events.done(out);
            }
            Some(BodyFormat::Events) => {
                let Self { sse, events, .. } = self;
                events.at_end = true;
                sse.finish(&mut |name, data| events.event(name, data, out));
                if !events.seen {
                    self.no_events(out);
                }
                self.events.done(out);
            }
            Some(BodyFormat::Html) | None => self.events.done(out),
        }
    }

    /// Fails the answer. One with all of its content counts as complete.
    pub(crate) fn fail(&mut self, failure: Failure, out: &mut Vec<Delta>) {
        if self.has_all_content() && failure.kind != FailureKind::Aborted {
            tracing::debug!(%failure, "the connection failed behind the end of the answer");
            self.events.done(out);
        } else {
            self.events.fail(failure, out);
        }
    }

    fn no_events(&mut self, out: &mut Vec<Delta>) {
        let server = &self.events.server;
        let shown = String::from_utf8_lossy(&self.beginning).trim().to_owned();
        // A stream of comments alone was cut before its first event.
        if shown.is_empty()
            || shown.starts_with(':')
            || shown.starts_with("data")
            || shown.starts_with("event")
        {
            return;
        }
        let kind = classify_message(&server.provider, &shown);
        let message = format!("{} answered with something that is no event stream: {shown}", server.url);
        let failure = server.failure(kind, message);
        self.events.fail(failure, out);
    }
}

impl<D: AnswerDecoder> Events<D> {
    /// Takes one event.
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) {
        let data = data.trim();
        if self.finished || data.is_empty() {
            return;
        }
        self.seen = true;
        if data == "[DONE]" {
            self.done(out);
            return;
        }
        if let Some(kept) = &mut self.kept {
            kept.push(data.to_owned());
        }
        match self.decoder.event(name, data, out) {
            Ok(step) => self.step(step, out),
            Err(_) if name == "error" => {
                let failure = self.server.refusal(None, &ErrorBody::read(data));
                self.fail(failure, out);
            }
            // A torn event at the end of the stream is not reported: the missing end of the answer is.
            Err(error) if self.at_end => tracing::debug!(%error, "a torn event at the end of a stream"),
            Err(error) => {
                let shown: String = data.chars().take(MAX_SHOWN).collect();
                let message =
                    format!("{} sent an event that cannot be read ({error}): {shown}", self.server.host);
                let failure = self.server.failure(FailureKind::Fatal, message);
                self.fail(failure, out);
            }
        }
    }

    /// Takes one frame of a binary stream.
    fn frame(&mut self, frame: &Frame<'_>, out: &mut Vec<Delta>) {
        if self.finished {
            return;
        }
        let payload = String::from_utf8_lossy(frame.payload);
        match frame.kind {
            FrameKind::Event => self.event(frame.name, &payload, out),
            FrameKind::Exception => {
                let data = frame.error_message.unwrap_or(&payload);
                let step = self.decoder.exception(frame.name, data, &self.server);
                self.step(step, out);
            }
        }
    }

    /// Takes an answer that came as one JSON value.
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) {
        if let Some(kept) = &mut self.kept {
            kept.push(json.to_owned());
        }
        match self.decoder.whole(json, out) {
            Ok(step) => self.step(step, out),
            Err(error) if error.is_eof() => {
                let message = format!("Stream ended before the answer of {} was complete", self.server.host);
                self.fail(Failure::new(FailureKind::Retryable, message), out);
            }
            Err(_) => {
                let body = ErrorBody::read(json);
                let shown: String = body.text.chars().take(MAX_SHOWN).collect();
                let kind = classify_message(&self.server.provider, &body.text);
                let message =
                    format!("{} answered with JSON that is no answer of a model: {shown}", self.server.url);
                let failure = self.server.failure(kind, message);
                self.fail(failure, out);
            }
        }
    }

    /// Ends the answer with its stream, unless it has ended before.
    fn done(&mut self, out: &mut Vec<Delta>) {
        if !self.finished {
            let step = self.decoder.end(out);
            self.step(step, out);
        }
    }

    fn step(&mut self, step: DecodeStep, out: &mut Vec<Delta>) {
        let (incomplete, last) = match step {
            DecodeStep::More => return,
            DecodeStep::Done { stop_reason, raw_stop_reason } => {
                (stop_reason == StopReason::Length, Delta::Done { stop_reason, raw_stop_reason })
            }
            DecodeStep::Failed { failure, raw_stop_reason } => {
                (true, Delta::Failed { failure, raw_stop_reason })
            }
        };
        if !self.finished {
            self.finished = true;
            self.decoder.seal(incomplete, out);
            out.push(last);
        }
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Delta>) {
        self.step(DecodeStep::failed(failure), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_known_by_its_first_byte() {
        assert_eq!(BodyFormat::of(b""), None);
        assert_eq!(BodyFormat::of(b" \r\n"), None);
        assert_eq!(BodyFormat::of(b"\xef\xbb"), None);
        assert_eq!(BodyFormat::of(b"\n{\"id\""), Some(BodyFormat::Json));
        assert_eq!(BodyFormat::of(b"\xef\xbb\xbf<!doctype html>"), Some(BodyFormat::Html));
        assert_eq!(BodyFormat::of(b": ping"), Some(BodyFormat::Events));
        assert_eq!(BodyFormat::of(b"data: {}"), Some(BodyFormat::Events));
    }
}
