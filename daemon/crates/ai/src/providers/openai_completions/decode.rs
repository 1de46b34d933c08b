//! Answers of the chat completions API as deltas: pure, fed with the bytes of the body as they come.

use agentd_protocol::message::StopReason;

use super::{compat::Compat, state::State, wire::incoming::Chunk};
use crate::{
    Delta,
    failure::{Failure, FailureKind, classify_message},
    http::{ErrorBody, Form, Server, sse::SseParser},
};

/// How much of an unusable answer a failure shows, in bytes.
const MAX_SHOWN: usize = 200;

/// Turns the body of one answer into deltas.
pub(super) struct Decoder {
    /// What the body is; not known before its first byte.
    form: Option<Form>,
    /// The beginning of the body.
    beginning: Vec<u8>,
    sse: SseParser,
    /// The body so far, where it is one JSON value.
    json: Vec<u8>,
    events: Events,
}

/// The part of the decoder that events go to.
struct Events {
    server: Server,
    state: State,
    requires_finish_reason: bool,
    seen: bool,
    at_end: bool,
    finished: bool,
}

impl Decoder {
    /// A decoder for an answer of `server`, asked for `model`.
    pub(super) fn new(server: Server, model: &str, compat: &Compat) -> Self {
        Self {
            form: None,
            beginning: Vec::new(),
            sse: SseParser::default(),
            json: Vec::new(),
            events: Events {
                server,
                state: State::new(model, compat.reports_cost),
                requires_finish_reason: compat.supports_finish_reason,
                seen: false,
                at_end: false,
                finished: false,
            },
        }
    }

    /// Whether the last delta was given out.
    pub(super) fn is_finished(&self) -> bool {
        self.events.finished
    }

    /// Whether the model has ended its answer, and only its usage may still come.
    pub(super) fn has_all_content(&self) -> bool {
        self.events.state.finish_reason().is_some()
    }

    /// Takes the next bytes of the body.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Delta>) {
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
            Some(Form::Events) | None => {
                let Self { sse, events, .. } = self;
                if let Err(error) = sse.feed(bytes, &mut |name, data| events.event(name, data, out)) {
                    let message = format!("The answer of {} was given up: {error}.", events.server.host);
                    events.fail(Failure::new(FailureKind::Fatal, message), out);
                }
            }
        }
    }

    /// Takes the end of the body.
    pub(super) fn end(&mut self, out: &mut Vec<Delta>) {
        match self.form {
            Some(Form::Json) => {
                let json = std::mem::take(&mut self.json);
                self.events.whole(&String::from_utf8_lossy(&json), out);
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

    /// Gives the answer up. One that lacks only its usage counts as complete.
    pub(super) fn fail(&mut self, failure: Failure, out: &mut Vec<Delta>) {
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

impl Events {
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
        match serde_json::from_str::<Chunk>(data) {
            Ok(chunk) => self.chunk(chunk, name, data, out),
            Err(_) if name == "error" => self.refuse(&ErrorBody::read(data), None, out),
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

    /// Takes an answer that was not streamed.
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) {
        match serde_json::from_str::<Chunk>(json) {
            Ok(chunk) if !chunk.choices.is_empty() || chunk.is_error() => {
                self.chunk(chunk, "", json, out);
                self.done(out);
            }
            Err(error) if error.is_eof() => {
                let message = format!("Stream ended before the answer of {} was complete", self.server.host);
                self.fail(Failure::new(FailureKind::Retryable, message), out);
            }
            _ => {
                let body = ErrorBody::read(json);
                let shown: String = body.text.chars().take(MAX_SHOWN).collect();
                let kind = classify_message(&self.server.provider, &body.text);
                let message =
                    format!("{} answered with JSON that is no completion: {shown}", self.server.url);
                let failure = self.server.failure(kind, message);
                self.fail(failure, out);
            }
        }
    }

    fn chunk(&mut self, chunk: Chunk, name: &str, data: &str, out: &mut Vec<Delta>) {
        if let Some((status, body)) = chunk.failure(name, data) {
            self.refuse(&body, status, out);
            return;
        }
        self.state.take(chunk, out);
    }

    fn refuse(&mut self, body: &ErrorBody, status: Option<u16>, out: &mut Vec<Delta>) {
        let failure = self.server.refusal(status, body);
        self.fail(failure, out);
    }

    /// Ends the answer as its finish reason says.
    fn done(&mut self, out: &mut Vec<Delta>) {
        if self.finished {
            return;
        }
        let reason = self.state.finish_reason().map(str::to_owned);
        let called = self.state.has_calls();
        let stop_reason = match reason.as_deref() {
            None if self.requires_finish_reason => {
                let failure = Failure::new(FailureKind::Retryable, "Stream ended without finish_reason");
                self.fail(failure, out);
                return;
            }
            // Some servers say `stop` though the model waits for the results of its calls.
            None | Some("stop" | "end") if called => StopReason::ToolUse,
            None | Some("stop" | "end") => StopReason::Stop,
            Some("length") => StopReason::Length,
            Some("function_call" | "tool_calls") => StopReason::ToolUse,
            Some(other) => {
                let message = format!("Provider finish_reason: {other}");
                let kind = classify_message(&self.server.provider, &message);
                self.fail_with(Failure::new(kind, message), reason, out);
                return;
            }
        };
        self.finished = true;
        self.state.seal(stop_reason == StopReason::Length, out);
        out.push(Delta::Done { stop_reason, raw_stop_reason: reason });
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Delta>) {
        self.fail_with(failure, None, out);
    }

    fn fail_with(&mut self, failure: Failure, raw_stop_reason: Option<String>, out: &mut Vec<Delta>) {
        if !self.finished {
            self.finished = true;
            self.state.seal(true, out);
            out.push(Delta::Failed { failure, raw_stop_reason });
        }
    }
}

#[cfg(test)]
mod tests;
