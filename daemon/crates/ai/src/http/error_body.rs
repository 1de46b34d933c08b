//! What servers say when they refuse a request.

use std::borrow::Cow;

use agentd_protocol::number;
use serde_json::Value;

/// How much of an error's text is kept, in characters.
const MAX_CHARS: usize = 4000;

/// What an error says.
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

    /// What an `error` member says.
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

/// The text for people: `<status>: <text>`, cut at 4000 characters.
pub(crate) fn describe_error(status: u16, text: &str) -> String {
    if text.is_empty() {
        return format!("{status}: (no body)");
    }
    format!("{status}: {}", shortened(text))
}

/// The text, cut at 4000 characters.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_CHARS) {
        None => text.into(),
        Some((end, _)) => {
            let left_out = text[end..].chars().count();
            format!("{}... [truncated {left_out} chars]", &text[..end]).into()
        }
    }
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
}
