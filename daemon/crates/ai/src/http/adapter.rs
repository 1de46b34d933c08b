//! The interface between one provider API and the exchange over HTTP, which is the same for all of them.

use std::time::SystemTime;

use agentd_protocol::message::StopReason;
use bytes::Bytes;
use reqwest::{Url, header::HeaderMap};

use super::Server;
use crate::{
    Delta, Request,
    failure::{Failure, FailureKind},
};

/// Speaks one provider API: writes its requests and makes the decoders of its answers.
pub(crate) trait Adapter: Send + Sync + 'static {
    /// Decodes one answer.
    type Decoder: AnswerDecoder + Send;

    /// The HTTP request for `request`.
    ///
    /// # Errors
    /// Names what cannot be sent, without secrets.
    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure>;

    /// The decoder for the answer of `server` to `request`.
    fn decoder(&self, request: &Request, server: Server) -> Self::Decoder;

    /// Explains refusals in the provider's own terms; `None` when the usual text is always enough.
    fn explain(&self) -> Option<Explain> {
        None
    }
}

/// The text of a failure for the status and the body of a refusal; `None` for the usual text.
pub(crate) type Explain = fn(status: u16, body: &str) -> Option<String>;

/// An HTTP request that is ready to be sent.
pub(crate) struct OutgoingRequest {
    /// The address.
    pub(crate) url: Url,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The JSON text.
    pub(crate) body: Bytes,
    /// Signs each attempt, for APIs that require it.
    pub(crate) sign: Option<Signer>,
}

/// Adds the headers that depend on the time and the content of an attempt, such as a signature. The time is that of the provider's clock as
/// far as it is known.
pub(crate) type Signer =
    Box<dyn Fn(&Url, &mut HeaderMap, &[u8], SystemTime) -> Result<(), Failure> + Send + Sync>;

/// The failure of a request whose body cannot be serialised.
pub(crate) fn unwritable(error: &serde_json::Error) -> Failure {
    Failure::new(FailureKind::Fatal, format!("The request cannot be written as JSON: {error}"))
}

/// Decodes the events of one answer: pure, no I/O. It never emits `Delta::Started`, `Done` or `Failed` itself.
pub(crate) trait AnswerDecoder {
    /// The framing of the events in the body.
    const FRAMING: Framing = Framing::Text;

    /// Decodes one event. `name` is empty for an event without a name; `data` is trimmed, not empty and not `[DONE]`.
    ///
    /// # Errors
    /// Fails when the data is not the expected JSON, which ends the answer.
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, serde_json::Error>;

    /// Decodes a failure that the framing itself marks as one ([`Framing::AwsEventStream`] does), from its name and its JSON or plain text.
    fn exception(&mut self, name: &str, data: &str, server: &Server) -> DecodeStep {
        let text = format!("{name}: {data}");
        DecodeStep::failed(server.failure(FailureKind::Fatal, text))
    }

    /// Decodes an answer that came as one JSON value instead of a stream: all that [`AnswerDecoder::event`] and
    /// [`AnswerDecoder::end`] do for the streamed form, error bodies included.
    ///
    /// # Errors
    /// Fails when the value is not an answer of this API.
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error>;

    /// Ends an answer whose stream ended (or said `[DONE]`) before any event ended it. Never [`DecodeStep::More`].
    fn end(&mut self, out: &mut Vec<Delta>) -> DecodeStep;

    /// Seals every open block. `incomplete`: the answer broke off.
    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>);

    /// Whether the content is complete, so that a failure after it does not matter.
    fn has_all_content(&self) -> bool {
        false
    }
}

/// The framing of the events in the body of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Text,
    /// AWS's binary event streams.
    AwsEventStream,
}

/// The effect of an event on the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DecodeStep {
    /// The answer goes on.
    More,
    /// The answer is complete. [`AnswerDecoder::seal`] seals the open blocks next.
    Done {
        /// `Stop`, `Length` or `ToolUse`.
        stop_reason: StopReason,
        /// The stop reason in the provider's words.
        raw_stop_reason: Option<String>,
    },
    /// The answer failed. [`AnswerDecoder::seal`] seals the open blocks next.
    Failed {
        /// The failure.
        failure: Failure,
        /// The stop reason in the provider's words, if any.
        raw_stop_reason: Option<String>,
    },
}

impl DecodeStep {
    /// A failure without a stop reason.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Failed { failure, raw_stop_reason: None }
    }
}
