//! Errors of AWS: their kind is in a header, in the framing of a stream, or in a member of the body.

use serde_json::Value;

use crate::{
    failure::{Evidence, Failure, classify},
    http::Server,
};

/// The header that names the kind of an error.
pub(super) const ERROR_TYPE: &str = "x-amzn-errortype";

/// How much of an error's text is kept, in characters.
const MAX_CHARS: usize = 4000;

/// An error of AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwsError {
    /// Such as `ThrottlingException`.
    kind: String,
    message: String,
}

/// How much of the name of a kind is kept, in characters. Real ones have up to 40.
const MOST_KIND: usize = 100;

impl AwsError {
    /// An error of a kind, with a JSON or plain text that says what happened.
    pub(crate) fn of(kind: &str, data: &str) -> Self {
        let value: Option<Value> = serde_json::from_str(data).ok();
        let message = value.as_ref().and_then(message_of).unwrap_or(data.trim());
        // `com.amazon.coral.validate#ValidationException:http://internal.amazon.com/…`
        let kind = kind.split(':').next().unwrap_or_default();
        let kind = kind.rsplit('#').next().unwrap_or_default().trim();
        let mut letters = kind.chars().take(MOST_KIND);
        // In a stream, kinds begin with a small letter.
        let kind =
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect();
        Self { kind, message: message.to_owned() }
    }

    /// The error that a body tells of by itself.
    pub(crate) fn in_body(body: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(body.trim()).ok()?;
        let kind = value.get("__type")?.as_str()?;
        Some(Self::of(kind, body))
    }

    /// Whether a signature was refused for its time.
    pub(crate) fn is_of_time(&self) -> bool {
        let kinds = ["RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"];
        let says = |text: &str| self.message.contains(text);
        kinds.contains(&self.kind.trim_end_matches("Exception"))
            || says("Signature expired")
            || says("Signature not yet current")
            || says("is not yet current")
    }

    /// The text for people. Frequent kinds are said in words (they are the reference's, and clients know them).
    fn text(&self) -> String {
        let words = match self.kind.as_str() {
            "InternalServerException" => "Internal server error",
            "ModelStreamErrorException" => "Model stream error",
            "ValidationException" => "Validation error",
            "ThrottlingException" => "Throttling error",
            "ServiceUnavailableException" => "Service unavailable",
            "" => "Error",
            kind => kind,
        };
        let message = if self.message.is_empty() { "(no message)" } else { &self.message };
        match message.char_indices().nth(MAX_CHARS) {
            None => format!("{words}: {message}"),
            Some((end, _)) => {
                let left_out = message[end..].chars().count();
                format!("{words}: {}... [truncated {left_out} chars]", &message[..end])
            }
        }
    }
}

fn message_of(value: &Value) -> Option<&str> {
    ["message", "Message", "errorMessage"].into_iter().find_map(|name| value.get(name)?.as_str())
}

impl Server {
    /// An error of AWS that the server reports, with the status where it has one.
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
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;
    use crate::{
        failure::{FailureKind, classify_message},
        http::Redactor,
    };

    #[test]
    fn a_long_name_of_a_kind_is_cut() {
        assert_eq!(AwsError::of(&"k".repeat(10_000), "{}").text().len(), MOST_KIND + ": {}".len());
    }

    fn check(kind: &str, data: &str, status: Option<u16>, expected: FailureKind, text: &str) {
        let server =
            Server::new(&Url::parse("http://h/").unwrap(), "amazon-bedrock".into(), Redactor::default());
        let failure = server.aws_refusal(status, &AwsError::of(kind, data));
        assert_eq!((failure.kind, failure.message.as_str()), (expected, text), "{kind} {data}");
        // A session file keeps only the message: it has to say the same.
        assert_eq!(classify_message("amazon-bedrock", text), expected, "{text}");
    }

    #[test]
    fn every_kind_has_its_words_and_its_meaning() {
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

    #[test]
    fn kinds_in_bodies_and_refusals_for_the_time() {
        let error = AwsError::in_body(r#"{"__type":"c#AccessDeniedException","Message":"no"}"#).unwrap();
        assert_eq!(error, AwsError::of("AccessDeniedException", "no"));
        assert_eq!(AwsError::in_body(r#"{"message":"no"}"#), None);
        assert_eq!(AwsError::in_body("<html>"), None);
        let late =
            r#"{"message":"Signature expired: 20150830T123600Z is now earlier than 20150830T133600Z (…)"}"#;
        assert!(AwsError::of("InvalidSignatureException", late).is_of_time());
        assert!(AwsError::of("RequestTimeTooSkewed", "x").is_of_time());
        let wrong = "The request signature we calculated does not match the signature you provided.";
        assert!(!AwsError::of("InvalidSignatureException", wrong).is_of_time());
    }

    #[test]
    fn long_texts_are_cut() {
        let text = AwsError::of("X", &"é".repeat(4010)).text();
        assert_eq!(text, format!("X: {}... [truncated 10 chars]", "é".repeat(4000)));
    }
}
