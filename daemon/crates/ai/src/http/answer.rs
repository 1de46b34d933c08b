//! The answer to a request: its bytes within limits, and in words what a refusal says.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use reqwest::{Response, StatusCode, header::HeaderMap};
use tokio_util::sync::CancellationToken;

use super::{
    AwsError, ErrorBody, Explain, Server,
    aws_error::ERROR_TYPE,
    patience::{Await, Limits},
};
use crate::{
    failure::{Failure, FailureKind, classify_message},
    record_replay::{Played, Tape},
};

/// What one answer may have in all, in bytes.
const MAX_ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// How much of an error answer is read, in bytes.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// How many chunks behind the end of an answer are read to keep its connection.
const MAX_LEFT_CHUNKS: usize = 4;

/// An answer with a good status, whose body has still to be read.
pub(crate) struct Answer {
    pub(super) server: Server,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// Takes down what is read.
    pub(super) tape: Option<Tape>,
    pub(super) received: u64,
    pub(super) limits: Limits,
    pub(super) cancel: CancellationToken,
}

/// Where the bytes of an answer come from.
pub(super) enum Body {
    Live(Response),
    Replayed(Played),
}

impl Answer {
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The next bytes of the body; `None` at its end. `patience` may shorten the idle limit.
    ///
    /// # Errors
    /// Fails when the connection breaks, when the server is silent for too long, when the answer is too large, and when
    /// the request was stopped.
    pub(crate) async fn chunk(&mut self, patience: Option<Duration>) -> Result<Option<Bytes>, Failure> {
        let wish = if self.received == 0 { Await::FirstByte } else { Await::More(patience) };
        let read = self.read(wish).await;
        match (&mut self.tape, &read) {
            (Some(tape), Ok(Some(chunk))) => tape.chunk(chunk).await,
            (tape @ Some(_), Err(failure)) => {
                if let Some(tape) = tape.take() {
                    tape.end(Some(failure)).await;
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

    async fn read(&mut self, wish: Await) -> Result<Option<Bytes>, Failure> {
        let Self { limits, body, cancel, server, .. } = self;
        match body {
            Body::Live(response) => {
                let read = limits.wait(response.chunk(), wish, cancel, server).await?;
                read.map_err(|error| server.lost(&error))
            }
            Body::Replayed(played) => limits.wait(played.chunk(), wish, cancel, server).await?,
        }
    }

    /// What came last had content.
    pub(crate) fn progressed(&mut self) {
        self.limits.without_content = Duration::ZERO;
    }

    /// Everything that matters was read: ends the recording, if there is one.
    pub(crate) async fn was_read(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.end(None).await;
        }
    }

    /// Reads the little that is left if it is here already, so that the connection can be used again.
    pub(crate) fn finish(mut self) {
        let Body::Live(response) = &mut self.body else { return };
        for _ in 0..MAX_LEFT_CHUNKS {
            if !matches!(response.chunk().now_or_never(), Some(Ok(Some(_)))) {
                break;
            }
        }
    }

    /// What an answer with a bad status says, and whether it refuses a signature for its time.
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
