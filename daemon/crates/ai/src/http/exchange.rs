//! One request and its answer: idle limit, abort, size limits, and failures in words.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::FutureExt;
use reqwest::{Client, Response, Url, header::HeaderMap};
use tokio_util::sync::CancellationToken;

use crate::{
    HttpRetries,
    failure::{Failure, FailureKind, is_account_limit},
    http::{
        ErrorBody, HttpClients, Server, Signer,
        retry::{Advice, Pause},
    },
};

/// What one answer may have in all, in bytes.
const MAX_ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// How much of an error answer is read, in bytes.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// How many chunks behind the end of an answer are read to keep its connection.
const MAX_LEFT_CHUNKS: usize = 4;

/// A request to be made.
pub(crate) struct Post {
    /// Where to.
    pub(crate) url: Url,
    /// The same, for failures.
    pub(crate) server: Server,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The JSON text.
    pub(crate) body: Bytes,
    /// Signs each attempt.
    pub(crate) sign: Option<Signer>,
    /// How long the server may be silent.
    pub(crate) idle_timeout: Option<Duration>,
    /// How often the request may be sent again.
    pub(crate) retries: HttpRetries,
    /// Stops everything.
    pub(crate) cancel: CancellationToken,
}

/// An answer with a good status, whose body has still to be read.
pub(crate) struct Answer {
    server: Server,
    response: Response,
    received: u64,
    idle_timeout: Option<Duration>,
    cancel: CancellationToken,
}

impl Post {
    /// Sends the request and waits for the headers of the answer. What fails before them is sent again as `retries` and
    /// the server allow; an answer with a good status never is.
    ///
    /// # Errors
    /// Fails for anything but an answer with a status of success.
    pub(crate) async fn send(self, clients: &HttpClients) -> Result<Answer, Failure> {
        let client =
            clients.get(&self.url).map_err(|error| Failure::new(FailureKind::Fatal, error.to_string()))?;
        let mut sent = 0;
        loop {
            let refused = match self.attempt(client).await {
                Ok(answer) => return Ok(answer),
                Err(refused) => refused,
            };
            let pause = match refused.advice.pause(sent, &self.retries) {
                Pause::For(pause) => pause,
                Pause::GiveUp => return Err(refused.failure.after(refused.advice.delay)),
                Pause::TooLong(asked) => {
                    return Err(too_long(refused.failure, asked, self.retries.max_delay));
                }
            };
            sent += 1;
            tracing::debug!(failure = %refused.failure, ?pause, sent, "a request is sent again");
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Failure::aborted()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Sends the request once.
    async fn attempt(&self, client: &Client) -> Result<Answer, Refused> {
        let Self { server, cancel, .. } = self;
        let mut headers = self.headers.clone();
        if let Some(sign) = &self.sign
            && let Err(failure) = sign(&self.url, &mut headers, &self.body, SystemTime::now())
        {
            return Err(Refused::unanswered(failure));
        }
        let request = client.post(self.url.clone()).headers(headers).body(self.body.clone());
        let limits = [Limit::idle(self.idle_timeout), Limit::first_byte(self.retries.first_byte_timeout)];
        let patience = limits.into_iter().flatten().min_by_key(|limit| limit.time);
        let response = match wait(request.send(), patience, cancel, server).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Refused::unanswered(server.unreachable(&error))),
            Err(failure) => return Err(Refused::unanswered(failure)),
        };
        let mut advice = Advice::of(response.status(), response.headers());
        let answer = Answer {
            server: server.clone(),
            response,
            received: 0,
            idle_timeout: self.idle_timeout,
            cancel: cancel.clone(),
        };
        if answer.response.status().is_success() {
            return Ok(answer);
        }
        let failure = answer.into_failure().await;
        // Neither a limit of the account nor a transcript that is too long passes in a moment, whatever the status.
        if failure.kind == FailureKind::ContextOverflow || is_account_limit(&failure.message) {
            advice.retry = false;
        }
        Err(Refused { failure, advice })
    }
}

/// An attempt that came to nothing.
struct Refused {
    failure: Failure,
    advice: Advice,
}

impl Refused {
    /// Without any answer: it is sent again where the connection was the trouble.
    fn unanswered(failure: Failure) -> Self {
        let advice = Advice { retry: failure.kind == FailureKind::Retryable, delay: None };
        Self { failure, advice }
    }
}

/// The server wants more patience than there is. The failure says so and is not worth another attempt.
fn too_long(failure: Failure, asked: Duration, limit: Duration) -> Failure {
    if matches!(failure.kind, FailureKind::Retryable) {
        let message = format!(
            "Server requested {}s retry delay (max: {}s). {}",
            asked.as_secs_f64().ceil(),
            limit.as_secs(),
            failure.message
        );
        return Failure::new(FailureKind::Fatal, message);
    }
    failure
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
        let idle = [self.idle_timeout, patience].into_iter().flatten().min();
        let chunk = wait(self.response.chunk(), Limit::idle(idle), &self.cancel, &self.server)
            .await?
            .map_err(|error| self.server.lost(&error))?;
        self.received += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.received > MAX_ANSWER_BYTES {
            let host = &self.server.host;
            let message =
                format!("The answer of {host} is larger than {MAX_ANSWER_BYTES} bytes; it was given up.");
            return Err(Failure::new(FailureKind::Fatal, message));
        }
        Ok(chunk)
    }

    /// Reads the little that is left if it is here already, so that the connection can be used again.
    pub(crate) fn finish(mut self) {
        for _ in 0..MAX_LEFT_CHUNKS {
            if !matches!(self.response.chunk().now_or_never(), Some(Ok(Some(_)))) {
                break;
            }
        }
    }

    /// What an answer with a bad status says.
    async fn into_failure(mut self) -> Failure {
        let status = self.response.status();
        if status.is_redirection()
            && let Some(location) = self.response.headers().get(reqwest::header::LOCATION)
        {
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            let message = format!(
                "{}: {} redirects to {location}. Requests are not sent on to other addresses: set the baseUrl of \
                 provider \"{}\" to where the API is.",
                status.as_u16(),
                self.server.url,
                self.server.provider
            );
            return Failure::new(FailureKind::Fatal, self.server.redactor.redact(message));
        }
        let mut body = Vec::new();
        let mut broken = None;
        while body.len() < MAX_ERROR_BYTES {
            match self.chunk(None).await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(failure) if failure.kind == FailureKind::Aborted => return failure,
                Err(failure) => {
                    broken = Some(failure);
                    break;
                }
            }
        }
        if let Some(failure) = broken.filter(|_| body.is_empty()) {
            tracing::debug!(%failure, "the body of an error answer could not be read");
        }
        let body = ErrorBody::read(&String::from_utf8_lossy(&body));
        self.server.refusal(Some(status.as_u16()), &body)
    }
}

/// How long to wait, and the setting that says so.
#[derive(Debug, Clone, Copy)]
struct Limit {
    time: Duration,
    setting: &'static str,
}

impl Limit {
    fn idle(time: Option<Duration>) -> Option<Self> {
        time.map(|time| Self { time, setting: "httpIdleTimeoutMs" })
    }

    fn first_byte(time: Option<Duration>) -> Option<Self> {
        time.map(|time| Self { time, setting: "retry.provider.timeoutMs" })
    }
}

/// Waits for the network; the limit and the abort end the wait.
async fn wait<T>(
    future: impl Future<Output = T>,
    limit: Option<Limit>,
    cancel: &CancellationToken,
    server: &Server,
) -> Result<T, Failure> {
    let limited = async {
        match limit {
            Some(Limit { time, setting }) => {
                tokio::time::timeout(time, future).await.map_err(|_| server.silent(time, setting))
            }
            None => Ok(future.await),
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failure::aborted()),
        done = limited => done,
    }
}
