//! The server that a request goes to, and its failures in words.

use agentd_http::NamedProxy;
use reqwest::Url;

use crate::{
    failure::{Evidence, Failure, FailureKind, classify, classify_message},
    http::{
        Redactor, deepest_cause,
        error_body::{AwsError, ErrorBody, describe_error, shortened},
    },
};

/// A server, as failures name it.
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

    /// The failure for an error that the server reports, with the status or the number that it gave instead of one.
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

    /// The failure for an error of AWS that the server reports, with the status if it has one.
    pub(crate) fn aws_refusal(&self, status: Option<u16>, error: &AwsError) -> Failure {
        let text = error.text();
        let kind = classify(&Evidence {
            provider: &self.provider,
            status,
            error_type: Some(&error.kind).filter(|kind| !kind.is_empty()).map(String::as_str),
            text: &text,
        });
        self.failure(kind, text)
    }

    /// A failure whose text quotes the server.
    pub(crate) fn failure(&self, kind: FailureKind, message: String) -> Failure {
        Failure::new(kind, self.redactor.redact(message))
    }

    /// The failure of a request without any answer. `proxy` is the one that it went through.
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

    /// The failure of a connection that broke inside of an answer.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, data: &str, status: Option<u16>, expected: FailureKind, text: &str) {
        let server =
            Server::new(&Url::parse("http://h/").unwrap(), "amazon-bedrock".into(), Redactor::default());
        let failure = server.aws_refusal(status, &AwsError::of(kind, data));
        assert_eq!((failure.kind, failure.message.as_str()), (expected, text), "{kind} {data}");
        // A session file keeps only the message, which has to mean the same.
        assert_eq!(classify_message("amazon-bedrock", text), expected, "{text}");
    }

    #[test]
    fn every_kind_of_aws_has_its_words_and_its_meaning() {
        use FailureKind::{Auth, ContextOverflow, Fatal, InvalidRequest, Retryable};
        let json = |message: &str| format!("{{\"message\":\"{message}\"}}");
        for (kind, status, message, expected, text) in [
            (
                "ThrottlingException",
                429,
                "Too many tokens, please wait before trying again.",
                Retryable,
                "Throttling error: Too many tokens, please wait before trying again.",
            ),
            ("ServiceUnavailableException:http://x/", 503, "Busy", Retryable, "Service unavailable: Busy"),
            ("InternalServerException", 500, "Oops", Retryable, "Internal server error: Oops"),
            ("ModelStreamErrorException", 424, "Oops", Retryable, "Model stream error: Oops"),
            ("ModelTimeoutException", 408, "Too slow", Retryable, "ModelTimeoutException: Too slow"),
            ("ModelNotReadyException", 429, "Cold", Retryable, "ModelNotReadyException: Cold"),
            ("ValidationException", 400, "No such field", InvalidRequest, "Validation error: No such field"),
            (
                "ValidationException",
                400,
                "Input is too long for requested model.",
                ContextOverflow,
                "Validation error: Input is too long for requested model.",
            ),
            (
                "ValidationException",
                400,
                "Invocation of model ID m with on-demand throughput isn't supported. Retry your request with the ID or ARN \
                 of an inference profile that contains this model.",
                InvalidRequest,
                "Validation error: Invocation of model ID m with on-demand throughput isn't supported. Retry your request \
                 with the ID or ARN of an inference profile that contains this model.",
            ),
            ("AccessDeniedException", 403, "Not you", Auth, "AccessDeniedException: Not you"),
            (
                "UnrecognizedClientException",
                403,
                "The security token included in the request is invalid.",
                Auth,
                "UnrecognizedClientException: The security token included in the request is invalid.",
            ),
            ("ExpiredTokenException", 403, "Late", Auth, "ExpiredTokenException: Late"),
            ("ResourceNotFoundException", 404, "Gone", InvalidRequest, "ResourceNotFoundException: Gone"),
            (
                "ServiceQuotaExceededException",
                400,
                "Your request exceeds the service quota for your account.",
                Fatal,
                "ServiceQuotaExceededException: Your request exceeds the service quota for your account.",
            ),
        ] {
            check(kind, &json(message), Some(status), expected, text);
        }
        check("throttlingException", &json("Slow"), None, Retryable, "Throttling error: Slow");
        check("a.b#ValidationException", "plain", None, InvalidRequest, "Validation error: plain");
        check("", r#"{"Message":"x"}"#, None, Fatal, "Error: x");
        check("InternalServerException", "", None, Retryable, "Internal server error: (no message)");
    }
}
