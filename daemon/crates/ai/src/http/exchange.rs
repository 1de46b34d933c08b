//! One request and its answer: idle limit, abort, size limits, and failures in words.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use reqwest::{Response, Url, header::HeaderMap};
use tokio_util::sync::CancellationToken;

use crate::{
    failure::{Evidence, Failure, FailureKind, classify, classify_message},
    http::{ErrorBody, HttpClients, Redactor, client::deepest_cause, error_body::describe_error},
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
    /// The provider's name.
    pub(crate) provider: String,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The JSON text.
    pub(crate) body: Bytes,
    /// How long the server may be silent.
    pub(crate) idle_timeout: Option<Duration>,
    /// Takes secrets out of what the server says.
    pub(crate) redactor: Redactor,
    /// Stops everything.
    pub(crate) cancel: CancellationToken,
}

/// The server, as failures name it.
#[derive(Clone)]
pub(crate) struct Server {
    /// The address without anything secret.
    pub(crate) url: String,
    /// Host and port.
    pub(crate) host: String,
    /// The provider's name.
    pub(crate) provider: String,
    redactor: Redactor,
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
    /// Sends the request and waits for the headers of the answer.
    ///
    /// # Errors
    /// Fails for anything but an answer with a status of success.
    pub(crate) async fn send(self, clients: &HttpClients) -> Result<Answer, Failure> {
        let server = Server::new(&self.url, self.provider, self.redactor);
        let client =
            clients.get(&self.url).map_err(|error| Failure::new(FailureKind::Fatal, error.to_string()))?;
        let sent = client.post(self.url).headers(self.headers).body(self.body).send();
        let response = wait(sent, self.idle_timeout, &self.cancel, &server)
            .await?
            .map_err(|error| server.unreachable(&error))?;
        let answer =
            Answer { server, response, received: 0, idle_timeout: self.idle_timeout, cancel: self.cancel };
        if answer.response.status().is_success() { Ok(answer) } else { Err(answer.into_failure().await) }
    }
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
        let idle = match (self.idle_timeout, patience) {
            (Some(idle), Some(patience)) => Some(idle.min(patience)),
            (idle, patience) => idle.or(patience),
        };
        let chunk = wait(self.response.chunk(), idle, &self.cancel, &self.server)
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

impl Server {
    pub(crate) fn new(url: &Url, provider: String, redactor: Redactor) -> Self {
        let mut shown = url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        // Fails only for addresses that cannot have a user, which then have none.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Self { url: redactor.redact(shown.into()), host, provider, redactor }
    }

    /// An error that the server reports, with the status or the number that it gave instead.
    pub(crate) fn refusal(&self, status: Option<u16>, body: &ErrorBody) -> Failure {
        let kind = classify(&Evidence {
            provider: &self.provider,
            status,
            error_type: body.kind.as_deref(),
            text: &body.text,
        });
        let text = self.redactor.redact(body.text.clone());
        Failure::new(kind, status.map_or_else(|| text.clone(), |status| describe_error(status, &text)))
    }

    /// Any other failure whose text holds what the server said.
    pub(crate) fn failure(&self, kind: FailureKind, message: String) -> Failure {
        Failure::new(kind, self.redactor.redact(message))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let cause = deepest_cause(error);
        let message = if error.is_connect() && error.is_timeout() {
            format!("Cannot connect to {}: the connection timed out.", self.url)
        } else if error.is_connect() {
            format!("Cannot connect to {}: {cause}.", self.url)
        } else if error.is_builder() {
            let message = format!("The request to {} cannot be made: {cause}.", self.url);
            return self.failure(FailureKind::Fatal, message);
        } else {
            return self.failure(
                FailureKind::Retryable,
                format!("Connection lost before {} answered: {cause}.", self.host),
            );
        };
        let untrusted = cause.contains("certificate");
        let (kind, hint) = if untrusted {
            let hint = " The server's certificate is not trusted here: if it should be, name a file with the certificate \
                        of its authority in the environment variable SSL_CERT_FILE."
                .to_owned();
            (FailureKind::Fatal, hint)
        } else {
            let provider = &self.provider;
            let hint = format!(
                " Check that the server is running and that the baseUrl of provider \"{provider}\" is right."
            );
            (FailureKind::Retryable, hint)
        };
        self.failure(kind, message + &hint)
    }

    fn lost(&self, error: &reqwest::Error) -> Failure {
        let message = format!(
            "Connection lost in the middle of the answer of {}: {}.",
            self.host,
            deepest_cause(error)
        );
        let kind = match classify_message(&self.provider, &message) {
            FailureKind::Fatal => FailureKind::Fatal,
            _ => FailureKind::Retryable,
        };
        self.failure(kind, message)
    }

    fn silent(&self, idle: Duration) -> Failure {
        Failure::new(
            FailureKind::Retryable,
            format!(
                "The request timed out: {} sent nothing for {} s. The limit is the setting httpIdleTimeoutMs ({}).",
                self.host,
                idle.as_secs_f64(),
                idle.as_millis()
            ),
        )
    }
}

/// Waits for the network; the idle limit and the abort end the wait.
async fn wait<T>(
    future: impl Future<Output = T>,
    idle: Option<Duration>,
    cancel: &CancellationToken,
    server: &Server,
) -> Result<T, Failure> {
    let limited = async {
        match idle {
            Some(idle) => tokio::time::timeout(idle, future).await.map_err(|_| server.silent(idle)),
            None => Ok(future.await),
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failure::aborted()),
        done = limited => done,
    }
}
