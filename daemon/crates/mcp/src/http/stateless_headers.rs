//! The headers of a request of the stateless revision, which repeat parts of it for those on the way who read no bodies. Pure.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{message::RepeatedInHeaders, revision::STATELESS};

/// The header with the revision.
pub(super) const REVISION: &str = "mcp-protocol-version";

/// The header with the method.
const METHOD: &str = "mcp-method";

/// The header with what the request is about.
const SUBJECT: &str = "mcp-name";

/// The beginning of headers with arguments.
const ARGUMENT: &str = "mcp-param-";

/// Adds the headers of a request. An argument whose header cannot be named is left out.
pub(super) fn add(headers: &mut HeaderMap, method: &'static str, repeated: &RepeatedInHeaders) {
    headers.insert(REVISION, HeaderValue::from_static(STATELESS));
    headers.insert(METHOD, HeaderValue::from_static(method));
    if let Some(subject) = repeated.subject.as_deref().and_then(value) {
        headers.insert(SUBJECT, subject);
    }
    for (name, argument) in &repeated.arguments {
        let name = HeaderName::try_from(format!("{ARGUMENT}{}", name.to_ascii_lowercase()));
        if let (Ok(name), Some(argument)) = (name, value(argument)) {
            headers.insert(name, argument);
        }
    }
}

/// A text as the value of a header: as it is where it is plain, else in base64.
fn value(text: &str) -> Option<HeaderValue> {
    let is_encoded = |text: &str| text.starts_with("=?base64?") && text.ends_with("?=");
    let is_plain = !text.is_empty()
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_matches(' ') == text
        && !is_encoded(text);
    let text =
        if is_plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(text)) };
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_plain_is_encoded() {
        for (text, expected) in [
            ("add_numbers", "add_numbers"),
            ("a b", "a b"),
            ("", "=?base64??="),
            (" a", "=?base64?IGE=?="),
            ("é", "=?base64?w6k=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(value(text).unwrap(), expected);
        }
    }

    #[test]
    fn requests_have_their_headers() {
        let mut headers = HeaderMap::new();
        let arguments = vec![("Region".to_owned(), "eu".to_owned()), ("no name".to_owned(), "x".to_owned())];
        add(&mut headers, "tools/call", &RepeatedInHeaders { subject: Some("t".into()), arguments });
        let shown: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(
            shown,
            [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "t"),
                ("mcp-param-region", "eu")
            ]
        );
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in "\\PC{0,20}|[ -~]{0,20}|(=\\?base64\\?)?[a-z]{0,4}(\\?=)?") {
            let sent = value(&text).unwrap();
            let sent = sent.to_str().unwrap();
            let inner = sent.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
            let back = match inner {
                Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).unwrap()).unwrap(),
                None => sent.to_owned(),
            };
            prop_assert_eq!(back, text);
        }
    }
}
