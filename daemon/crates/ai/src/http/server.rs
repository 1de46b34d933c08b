//! The other side of a request, and what goes wrong with it, in words.

use std::time::Duration;

use agentd_http::NamedProxy;
use reqwest::Url;

use crate::{
    Deadlines, OnStall, Stall, StallPhase,
    failure::{Evidence, Failure, FailureKind, classify, classify_message},
    http::{
        ErrorBody, Redactor, deepest_cause,
        error_body::{describe_error, shortened},
    },
};

/// The server, as failures name it.
#[derive(Clone)]
pub(crate) struct Server {
    /// The address without anything secret.
    pub(crate) url: String,
    /// Host and port.
    pub(crate) host: String,
    /// The provider's name.
    pub(crate) provider: String,
    pub(super) redactor: Redactor,
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
        Failure::new(
            kind,
            match status {
                Some(status) => describe_error(status, &text),
                None if text.trim().is_empty() => {
                    format!("{} reported an error without saying which.", self.host)
                }
                None => shortened(&text).into_owned(),
            },
        )
    }

    /// Any other failure whose text holds what the server said.
    pub(crate) fn failure(&self, kind: FailureKind, message: String) -> Failure {
        Failure::new(kind, self.redactor.redact(message))
    }

    /// No answer came. `proxy` is what the request went through.
    pub(super) fn unreachable(&self, error: &reqwest::Error, proxy: Option<&NamedProxy>) -> Failure {
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
                        of its authority in the setting caFile or in the environment variable SSL_CERT_FILE."
                .to_owned();
            (FailureKind::Fatal, hint)
        } else {
            let provider = &self.provider;
            let hint = match proxy {
                Some(proxy) => format!(
                    " Requests go through the proxy {} that {} names, unless NO_PROXY takes the host out: check that it is running, \
                     and that the baseUrl of provider \"{provider}\" is right.",
                    proxy.shown(),
                    proxy.source
                ),
                None => format!(
                    " Check that the server is running and that the baseUrl of provider \"{provider}\" is right."
                ),
            };
            (FailureKind::Retryable, hint)
        };
        self.failure(kind, message + &hint)
    }

    pub(super) fn lost(&self, error: &reqwest::Error) -> Failure {
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

    /// The server took longer than a limit allows, which is what `setting` says.
    pub(super) fn stalled(&self, limit: &Limit, waited: Duration, deadlines: &Deadlines) -> Failure {
        let Limit { phase, total, setting, .. } = *limit;
        let (host, seconds) = (&self.host, total.as_secs_f64());
        let what = match phase {
            StallPhase::Connect => format!("there was no connection to {} within {seconds} s", self.url),
            StallPhase::FirstByte => format!("{host} began no answer within {seconds} s"),
            StallPhase::Idle => format!("{host} sent nothing for {seconds} s"),
            StallPhase::Progress => {
                format!("{host} sent nothing of an answer for {seconds} s, though the connection was alive")
            }
            StallPhase::Request => format!("the answer of {host} was not complete after {seconds} s"),
        };
        let may_pass = deadlines.on_stall == OnStall::Retry;
        let (kind, beginning, reason) = if may_pass {
            (FailureKind::Retryable, "The request timed out", "")
        } else {
            // A session file keeps the text alone: it must not sound as if it could pass.
            (FailureKind::Fatal, "The request was given up", ", and deadlines.onStall says \"fail\"")
        };
        let limit = total.as_millis();
        let message = format!("{beginning}: {what}. The limit is the setting {setting} ({limit}){reason}.");
        let stall = Stall { phase, waited, limit: total, may_pass, sent_again: false };
        Failure { stall: Some(stall), ..self.failure(kind, message) }
    }
}

/// How long to wait, and the setting that says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// What is left of it.
    pub(super) left: Duration,
    /// All of it.
    pub(super) total: Duration,
    pub(super) phase: StallPhase,
    pub(super) setting: &'static str,
}

impl Limit {
    /// A limit of which `used` is gone; `None` without a limit.
    pub(super) fn of(
        total: Option<Duration>,
        used: Duration,
        phase: StallPhase,
        setting: &'static str,
    ) -> Option<Self> {
        total.map(|total| Self { left: total.saturating_sub(used), total, phase, setting })
    }
}
