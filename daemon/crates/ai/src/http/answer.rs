//! The answer to a request: its bytes within limits, and the failure that a bad status means.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use reqwest::{Response, StatusCode, header::HeaderMap};
use tokio_util::sync::CancellationToken;

use super::{
    Server,
    adapter::Explain,
    error_body::{AwsError, ERROR_TYPE, ErrorBody},
    timeouts::{AttemptTimeouts, WaitPhase},
};
use crate::{
    failure::{Failure, FailureKind, classify_message},
    record_replay::{ExchangeRecorder, ReplayedAnswer},
};

/// The largest answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// The part of an error answer that is read, in bytes.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// The chunks after the end of an answer that are read so that its connection can be used again.
const MAX_LEFT_CHUNKS: usize = 4;

/// The time that the end of a body may take after the end of its answer. Servers send it right after, but often in a packet of its own.
const BODY_END_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer whose headers have come.
pub(crate) struct HttpAnswer {
    pub(super) server: Server,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: AnswerBody,
    /// Records what is read.
    pub(super) recorder: Option<ExchangeRecorder>,
    pub(super) received: u64,
    pub(super) timeouts: AttemptTimeouts,
    pub(super) cancel: CancellationToken,
}

/// The source of the bytes of an answer.
pub(super) enum AnswerBody {
    Live(Response),
    Replayed(ReplayedAnswer),
    /// The answer is complete, and what is left of the body is not the reader's any more.
    Finished,
}

impl HttpAnswer {
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The next bytes of the body; `None` at its end. `timeout` may shorten the idle timeout.
    ///
    /// # Errors
    /// Fails when the connection breaks, the server is silent for too long, the answer is too large, or the request is aborted.
    pub(crate) async fn chunk(&mut self, timeout: Option<Duration>) -> Result<Option<Bytes>, Failure> {
        let phase = if self.received == 0 { WaitPhase::FirstByte } else { WaitPhase::More(timeout) };
        let read = self.read(phase).await;
        match (&mut self.recorder, &read) {
            (Some(recorder), Ok(Some(chunk))) => recorder.chunk(chunk).await,
            (recorder @ Some(_), Err(failure)) => {
                if let Some(recorder) = recorder.take() {
                    recorder.end(Some(failure)).await;
                }
            }
            _ => {}
        }
        let chunk = read?;
        self.received += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.received > MAX_ANSWER_BYTES {
            let host = &self.server.host;
            let message =
                format!("The answer of {host} is larger than {MAX_ANSWER_BYTES} bytes; it was given up.");
            return Err(Failure::new(FailureKind::Fatal, message));
        }
        Ok(chunk)
    }

    async fn read(&mut self, phase: WaitPhase) -> Result<Option<Bytes>, Failure> {
        let Self { timeouts, body, cancel, server, .. } = self;
        match body {
            AnswerBody::Live(response) => {
                let read = timeouts.wait(response.chunk(), phase, cancel, server).await?;
                read.map_err(|error| server.lost(&error))
            }
            AnswerBody::Replayed(played) => timeouts.wait(played.chunk(), phase, cancel, server).await?,
            AnswerBody::Finished => Ok(None),
        }
    }

    /// Notes that the last bytes had content.
    pub(crate) fn progressed(&mut self) {
        self.timeouts.without_content = Duration::ZERO;
    }

    /// Ends the recording, if there is one: everything that matters was read.
    pub(crate) async fn was_read(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            recorder.end(None).await;
        }
    }

    /// Reads the rest of the body of a complete answer, so that the connection can be used again: what has come at once, the rest in a
    /// task of its own. A connection whose body is dropped before its end is closed, and the next request has to connect again.
    pub(crate) fn finish(&mut self) {
        let AnswerBody::Live(response) = std::mem::replace(&mut self.body, AnswerBody::Finished) else {
            return;
        };
        let mut rest = Box::pin(read_to_end(response));
        if rest.as_mut().now_or_never().is_none() {
            tokio::spawn(tokio::time::timeout(BODY_END_TIMEOUT, rest));
        }
    }

    /// The failure of an answer with a bad status, and whether a signature was refused because of its time.
    pub(super) async fn into_failure(mut self, explain: Option<Explain>) -> (Failure, bool) {
        let failure = self.read_failure(explain).await;
        self.was_read().await;
        failure
    }

    async fn read_failure(&mut self, explain: Option<Explain>) -> (Failure, bool) {
        let status = self.status;
        if status.is_redirection()
            && let Some(location) = self.headers.get(reqwest::header::LOCATION)
        {
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            let message = format!(
                "{}: {} redirects to {location}. Requests are not sent on to other addresses: set the baseUrl of \
                 provider \"{}\" to where the API is.",
                status.as_u16(),
                self.server.url,
                self.server.provider
            );
            return (Failure::new(FailureKind::Fatal, self.server.redactor.redact(message)), false);
        }
        let error_type = self.headers.get(ERROR_TYPE).and_then(|kind| kind.to_str().ok());
        let error_type = error_type.map(str::to_owned);
        let mut body = Vec::new();
        let mut broken = None;
        while body.len() < MAX_ERROR_BYTES {
            match self.chunk(None).await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(failure) if failure.kind == FailureKind::Aborted => return (failure, false),
                Err(failure) => {
                    broken = Some(failure);
                    break;
                }
            }
        }
        if let Some(failure) = broken.filter(|_| body.is_empty()) {
            tracing::debug!(%failure, "the body of an error answer could not be read");
        }
        let body = String::from_utf8_lossy(&body);
        if let Some(text) = explain.and_then(|explain| explain(status.as_u16(), &body)) {
            let kind = classify_message(&self.server.provider, &text);
            return (self.server.failure(kind, text), false);
        }
        if let Some(kind) = error_type {
            let error = AwsError::of(&kind, &body);
            return (self.server.aws_refusal(Some(status.as_u16()), &error), error.is_of_time());
        }
        (self.server.refusal(Some(status.as_u16()), &ErrorBody::read(&body)), false)
    }
}

/// Reads a body to its end, its failure, or [`MAX_LEFT_CHUNKS`].
async fn read_to_end(mut body: Response) {
    for _ in 0..MAX_LEFT_CHUNKS {
        if !matches!(body.chunk().await, Ok(Some(_))) {
            return;
        }
    }
}
