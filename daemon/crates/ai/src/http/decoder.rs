//! The body of an answer: what it is, its events, its end. The meaning of the events is the adapter's.

use std::time::Duration;

use agentd_protocol::message::StopReason;

use crate::{
    Delta,
    failure::{Failure, FailureKind, classify_message},
    http::{
        ErrorBody, Form, Server,
        event_stream::{EventStreamParser, Frame, FrameError, FrameKind},
        sse::SseParser,
        wire::{Framing, Step, Wire},
    },
};

/// How much of an unusable answer a failure shows, in characters.
const MAX_SHOWN: usize = 200;

/// How long something may still come behind the end of the answer's content. Some servers leave the connection open then.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// Turns the body of one answer into deltas: pure, fed with bytes as they come.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Decoder<W> {
    /// What the body is; not known before its first byte.
    form: Option<Form>,
    /// The beginning of the body.
    beginning: Vec<u8>,
    sse: SseParser,
    frames: EventStreamParser,
    /// Why the body is no stream of frames, once that is known.
    no_frames: Option<FrameError>,
    /// The body so far, where it is one JSON value.
    json: Vec<u8>,
    events: Events<W>,
}

/// The part of the decoder that events go to.
#[cfg_attr(test, derive(Clone))]
struct Events<W> {
    server: Server,
    wire: W,
    seen: bool,
    at_end: bool,
    finished: bool,
}

impl<W: Wire> Decoder<W> {
    /// A decoder for an answer of `server`.
    pub(crate) fn new(server: Server, wire: W) -> Self {
        Self {
            form: None,
            beginning: Vec::new(),
            sse: SseParser::default(),
            frames: EventStreamParser::default(),
            no_frames: None,
            json: Vec::new(),
            events: Events { server, wire, seen: false, at_end: false, finished: false },
        }
    }

    /// Whether the last delta was given out.
    pub(crate) fn is_finished(&self) -> bool {
        self.events.finished
    }

    /// Whether the model has ended its answer, and only what is not worth failing for may still come.
    pub(crate) fn has_all_content(&self) -> bool {
        self.events.wire.has_all_content()
    }

    /// Whether the answer comes as one value, whose every byte is content.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.form, Some(Form::Json))
    }

    /// What it keeps of the body until more has come, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.beginning.len() + self.sse.held_bytes() + self.frames.held_bytes() + self.json.len()
    }

    /// Takes the next bytes of the body.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Delta>) {
        if self.events.finished {
            return;
        }
        match self.form {
            Some(_) => self.take(bytes, out),
            None => {
                self.beginning.extend_from_slice(bytes);
                self.form = Form::of(&self.beginning);
                if self.form.is_some() {
                    let bytes = std::mem::take(&mut self.beginning);
                    self.take(&bytes, out);
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<Delta>) {
        let missing = MAX_SHOWN.saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        match self.form {
            Some(Form::Json) => self.json.extend_from_slice(bytes),
            Some(Form::Html) => {
                let message = format!(
                    "{} answered with a web page instead of a model's answer. Check the baseUrl of provider \"{}\": \
                     it often ends in /v1.",
                    self.events.server.url, self.events.server.provider
                );
                self.events.fail(Failure::new(FailureKind::Fatal, message), out);
            }
            // The first byte of a frame is one of its size, which is neither a bracket nor white space.
            Some(Form::Events) | None if W::FRAMING == Framing::AwsEventStream => {
                self.take_frames(bytes, out)
            }
            Some(Form::Events) | None => {
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
                // What was damaged on its way may come through the next time.
                let message = format!(
                    "Connection lost in the middle of the answer of {}: its event stream is damaged ({error}).",
                    events.server.host
                );
                events.fail(Failure::new(FailureKind::Retryable, message), out);
            } else {
                self.no_frames = Some(error);
            }
        }
        // There is to be as much to show as there can be, however the body comes.
        if self.beginning.len() >= MAX_SHOWN {
            self.fail_without_frames(out);
        }
    }

    /// Gives the answer up if it is neither a stream of frames nor one of the other forms that are known.
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
        match self.form {
            Some(Form::Json) => {
                let json = std::mem::take(&mut self.json);
                self.events.whole(&String::from_utf8_lossy(&json), out);
            }
            // What is left of a torn frame is no news: the missing end is.
            Some(Form::Events) if W::FRAMING == Framing::AwsEventStream => {
                self.fail_without_frames(out);
                self.events.done(out);
            }
            Some(Form::Events) => {
                let Self { sse, events, .. } = self;
                events.at_end = true;
                sse.finish(&mut |name, data| events.event(name, data, out));
                if !events.seen {
                    self.no_events(out);
                }
                self.events.done(out);
            }
            Some(Form::Html) | None => self.events.done(out),
        }
    }

    /// Gives the answer up. One that has all of its content counts as complete.
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
        // Comments alone are a stream that was cut before its first event.
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

impl<W: Wire> Events<W> {
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
        match self.wire.event(name, data, out) {
            Ok(step) => self.step(step, out),
            Err(_) if name == "error" => {
                let failure = self.server.refusal(None, &ErrorBody::read(data));
                self.fail(failure, out);
            }
            // What the end of the stream tore apart is no news: the missing end is.
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
                let step = self.wire.exception(frame.name, data, &self.server);
                self.step(step, out);
            }
        }
    }

    /// Takes an answer that was not streamed.
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) {
        match self.wire.whole(json, out) {
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

    /// The answer ends with its stream, unless it has ended before.
    fn done(&mut self, out: &mut Vec<Delta>) {
        if !self.finished {
            let step = self.wire.end(out);
            self.step(step, out);
        }
    }

    fn step(&mut self, step: Step, out: &mut Vec<Delta>) {
        let (incomplete, last) = match step {
            Step::More => return,
            Step::Done { stop_reason, raw_stop_reason } => {
                (stop_reason == StopReason::Length, Delta::Done { stop_reason, raw_stop_reason })
            }
            Step::Failed { failure, raw_stop_reason } => (true, Delta::Failed { failure, raw_stop_reason }),
        };
        if !self.finished {
            self.finished = true;
            self.wire.seal(incomplete, out);
            out.push(last);
        }
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Delta>) {
        self.step(Step::failed(failure), out);
    }
}
