//! The errors in the bodies of answers, in the form of most servers and in that of AWS.

use std::borrow::Cow;

use agentd_protocol::number;
use serde_json::Value;

/// The longest text of an error that is kept, in characters.
const MAX_CHARS: usize = 4000;

/// An error in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// The text: the `error` member of a JSON body in compact form, or the body itself.
    pub(crate) text: String,
    /// The server's name for the kind of error.
    pub(crate) kind: Option<String>,
}

impl ErrorBody {
    /// Reads the body of an error answer.
    pub(crate) fn read(body: &str) -> Self {
        let body = body.trim();
        // Some proxies answer a streaming request with an event that holds the error.
        let json = body.strip_prefix("data:").map_or(body, |data| data.lines().next().unwrap_or_default());
        match serde_json::from_str(json) {
            Ok(Value::Object(mut object)) => match object.remove("error") {
                Some(error) if !error.is_null() => Self::of(error),
                _ => Self { text: body.to_owned(), kind: name(&Value::Object(object)) },
            },
            Ok(Value::Array(mut items)) if items.len() == 1 => match items[0].get_mut("error") {
                Some(error) => Self::of(error.take()),
                None => Self { text: body.to_owned(), kind: None },
            },
            _ => Self { text: body.to_owned(), kind: None },
        }
    }

    /// Reads an `error` member.
    pub(crate) fn of(mut error: Value) -> Self {
        number::normalize(&mut error);
        let kind = name(&error);
        let text = match error {
            Value::String(text) => text,
            error => error.to_string(),
        };
        Self { text, kind }
    }
}

/// The kind of an error: its `type`, else its `code`, else Google's `status`.
fn name(error: &Value) -> Option<String> {
    ["type", "code", "status"].into_iter().find_map(|key| error.get(key)?.as_str().map(str::to_owned))
}

/// The text for people: `<status>: <text>`, shortened.
pub(crate) fn describe_error(status: u16, text: &str) -> String {
    if text.is_empty() {
        return format!("{status}: (no body)");
    }
    format!("{status}: {}", shortened(text))
}

/// The text, cut at [`MAX_CHARS`].
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_CHARS) {
        None => text.into(),
        Some((end, _)) => {
            let left_out = text[end..].chars().count();
            format!("{}... [truncated {left_out} chars]", &text[..end]).into()
        }
    }
}

/// The header in which AWS names the kind of an error.
pub(super) const ERROR_TYPE: &str = "x-amzn-errortype";

/// An error of AWS: its kind is in a header, in the framing of a stream, or in a member of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwsError {
    /// Such as `ThrottlingException`.
    pub(super) kind: String,
    message: String,
}

/// The longest name of a kind that is kept, in characters. Real ones have up to 40.
const MAX_KIND_CHARS: usize = 100;

impl AwsError {
    /// An error of a kind, with its JSON or plain text.
    pub(crate) fn of(kind: &str, data: &str) -> Self {
        let value: Option<Value> = serde_json::from_str(data).ok();
        let message = value.as_ref().and_then(message_of).unwrap_or(data.trim());
        // `com.amazon.coral.validate#ValidationException:http://internal.amazon.com/…`
        let kind = kind.split(':').next().unwrap_or_default();
        let kind = kind.rsplit('#').next().unwrap_or_default().trim();
        let mut letters = kind.chars().take(MAX_KIND_CHARS);
        // In a stream, kinds begin with a small letter.
        let kind =
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect();
        Self { kind, message: message.to_owned() }
    }

    /// The error that a body names by itself.
    pub(crate) fn in_body(body: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(body.trim()).ok()?;
        let kind = value.get("__type")?.as_str()?;
        Some(Self::of(kind, body))
    }

    /// Whether a signature was refused because of its time.
    pub(crate) fn is_of_time(&self) -> bool {
        let kinds = ["RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"];
        let says = |text: &str| self.message.contains(text);
        kinds.contains(&self.kind.trim_end_matches("Exception"))
            || says("Signature expired")
            || says("Signature not yet current")
            || says("is not yet current")
    }

    /// The text for people. Frequent kinds have the words that pi gives them, which clients know.
    pub(super) fn text(&self) -> String {
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
        format!("{words}: {}", shortened(message))
    }
}

fn message_of(value: &Value) -> Option<&str> {
    ["message", "Message", "errorMessage"].into_iter().find_map(|name| value.get(name)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, text: &str, kind: Option<&str>) {
        let read = ErrorBody::read(body);
        assert_eq!(
            (describe_error(status, &read.text).as_str(), read.kind.as_deref()),
            (text, kind),
            "{body}"
        );
    }

    #[test]
    fn the_error_member_is_printed_where_there_is_one() {
        check(503, r#"{"error": {"message": "overloaded"}}"#, r#"503: {"message":"overloaded"}"#, None);
        check(
            400,
            r#"{"error":{"code":400.0,"message":"'messages' is required","type":"invalid_request_error"}}"#,
            r#"400: {"code":400,"message":"'messages' is required","type":"invalid_request_error"}"#,
            Some("invalid_request_error"),
        );
        check(400, r#"{"error":"no such model"}"#, "400: no such model", None);
        check(429, r#"[{"error":{"code":"quota"}}]"#, r#"429: {"code":"quota"}"#, Some("quota"));
        check(
            503,
            r#"[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]"#,
            r#"503: {"code":503,"message":"m","status":"UNAVAILABLE"}"#,
            Some("UNAVAILABLE"),
        );
        check(
            500,
            "data: {\"error\":{\"message\":\"m\"}}\n\ndata: [DONE]\n\n",
            r#"500: {"message":"m"}"#,
            None,
        );
    }

    #[test]
    fn other_bodies_are_printed_as_they_are() {
        check(404, r#"{"detail":"Not Found"}"#, r#"404: {"detail":"Not Found"}"#, None);
        check(502, "<html>Bad Gateway</html>\n", "502: <html>Bad Gateway</html>", None);
        check(500, "", "500: (no body)", None);
        check(400, r#"{"error":null,"type":"odd"}"#, r#"400: {"error":null,"type":"odd"}"#, Some("odd"));
    }

    #[test]
    fn long_bodies_are_cut() {
        let text = describe_error(500, &"é".repeat(4010));
        assert_eq!(text, format!("500: {}... [truncated 10 chars]", "é".repeat(4000)));
        assert_eq!(describe_error(500, &"é".repeat(4000)), format!("500: {}", "é".repeat(4000)));
        assert_eq!(text.strip_prefix("500: "), Some(&*shortened(&"é".repeat(4010))));
    }

    #[test]
    fn a_long_name_of_a_kind_is_cut() {
        assert_eq!(AwsError::of(&"k".repeat(10_000), "{}").text().len(), MAX_KIND_CHARS + ": {}".len());
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
    fn long_texts_of_aws_are_cut() {
        let text = AwsError::of("X", &"é".repeat(4010)).text();
        assert_eq!(text, format!("X: {}... [truncated 10 chars]", "é".repeat(4000)));
    }
}
