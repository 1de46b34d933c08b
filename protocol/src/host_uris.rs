//! URLs that a host serves to the tools `read` and `write`, in the words of omp's clients.

use serde::{Deserialize, Serialize};

use crate::{
    error::{ErrorCode, Failure},
    frame::{FieldError, parse_params},
    message::null_as_default,
};

/// The most schemes of one connection.
pub const MAX_HOST_SCHEMES: usize = 64;

/// The longest scheme, in bytes.
pub const MAX_SCHEME_BYTES: usize = 64;

/// The longest description of a scheme, in bytes.
pub const MAX_SCHEME_DESCRIPTION_BYTES: usize = 4096;

/// Schemes that no host can take: those that agentd serves itself, and those that mean something everywhere.
const RESERVED_SCHEMES: [&str; 17] = [
    "agent", "artifact", "data", "file", "ftp", "history", "http", "https", "local", "mcp", "memory", "proc",
    "rule", "skill", "ssh", "ws", "wss",
];

/// The fields of `set_host_uri_schemes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetHostUriSchemesParams {
    /// All schemes of this host, at most 64: they replace those of the command before. An empty list removes them.
    pub schemes: Vec<HostUriScheme>,
}

/// A scheme that a host serves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriScheme {
    /// The scheme without `://`, such as `db`: a letter, then letters, digits, `+`, `.` and `-`, at most 64. Upper case becomes lower case.
    pub scheme: String,
    /// Its description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the tool `write` may write to it; default false.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
    /// Accepted for omp's clients, without effect: whether what it serves never changes.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub immutable: bool,
}

/// The answer to `set_host_uri_schemes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriSchemes {
    /// The schemes of the host, in its order, each once.
    pub schemes: Vec<String>,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HostUriOperation {
    /// It wants what the URL stands for.
    Read,
    /// It replaces what the URL stands for.
    Write,
}

/// The model reads or writes a URL of this host: answer with `host_uri_result`. It comes after the `tool_execution_start` of the call. It is
/// no event of the session: it has no `seq`, and nobody else gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostUriRequest {
    /// Names the request for its answer: a UUID of version 4.
    pub id: String,
    /// What it does.
    pub operation: HostUriOperation,
    /// The URL, as the model wrote it.
    pub url: String,
    /// The whole new content; absent in a request that reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The session.
    pub session_id: String,
}

/// A request needs no answer any more: its call was aborted, or took too long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostUriCancel {
    /// Names this line: a UUID of version 4.
    pub id: String,
    /// The `id` of the request.
    pub target_id: String,
    /// The session.
    pub session_id: String,
}

/// Answers a `host_uri_request`. No command: it has a response only if it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostUriResult {
    /// The `id` of the request.
    pub id: String,
    /// What the URL stands for: required for a request that reads, unless it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Accepted for omp's clients, without effect: all content is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// What the model is told behind the content, a line each.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Accepted for omp's clients, without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    /// Whether the request failed; default false.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Why it failed, for the model; default the `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl HostUriResult {
    /// The `type` of its line.
    pub const TYPE: &'static str = "host_uri_result";

    /// Reads it from its line.
    ///
    /// # Errors
    /// Names the field that is missing or unusable, and what was expected.
    pub fn parse(line: &str) -> Result<Self, FieldError> {
        parse_params(line)
    }
}

/// Schemes of a host as they are known from here on: in lower case, each once, of which the last counts.
///
/// # Errors
/// `invalid_field`: there are too many, one is no scheme or is reserved, a description is too long.
pub fn host_schemes(given: Vec<HostUriScheme>) -> Result<Vec<HostUriScheme>, Failure> {
    let refused = |text: String| Failure::new(ErrorCode::InvalidField, text);
    if given.len() > MAX_HOST_SCHEMES {
        let found = given.len();
        return Err(refused(format!(
            "Invalid field \"schemes\": expected at most {MAX_HOST_SCHEMES} schemes, got {found}"
        )));
    }
    let mut schemes: Vec<HostUriScheme> = Vec::with_capacity(given.len());
    for (index, mut new) in given.into_iter().enumerate() {
        let scheme = new.scheme.trim().to_ascii_lowercase();
        let begins = scheme.starts_with(|letter: char| letter.is_ascii_lowercase());
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'.' | b'-')
        };
        if !begins || !scheme.bytes().all(is_plain) || scheme.len() > MAX_SCHEME_BYTES {
            return Err(refused(format!(
                "Invalid field \"schemes[{index}].scheme\": expected a letter, then letters, digits, \"+\", \".\" and \"-\", at most \
                 {MAX_SCHEME_BYTES}, got {:?}",
                new.scheme
            )));
        }
        if RESERVED_SCHEMES.contains(&scheme.as_str()) {
            return Err(refused(format!("Host URI scheme is reserved: {scheme}://"))
                .hint("agentd serves it itself, or it means something everywhere: choose another."));
        }
        if new.description.as_ref().is_some_and(|text| text.len() > MAX_SCHEME_DESCRIPTION_BYTES) {
            return Err(refused(format!(
                "Invalid field \"schemes[{index}].description\": expected at most {MAX_SCHEME_DESCRIPTION_BYTES} bytes"
            )));
        }
        new.scheme = scheme;
        match schemes.iter_mut().find(|known| known.scheme == new.scheme) {
            Some(known) => *known = new,
            None => schemes.push(new),
        }
    }
    Ok(schemes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(scheme: &str) -> HostUriScheme {
        HostUriScheme { scheme: scheme.into(), ..HostUriScheme::default() }
    }

    #[test]
    fn schemes_are_in_lower_case_and_each_once() {
        let writable = HostUriScheme { writable: true, ..named("Db") };
        let known = host_schemes(vec![named(" db "), named("x+y.z-1"), writable]).unwrap();
        assert_eq!(known, [HostUriScheme { writable: true, ..named("db") }, named("x+y.z-1")]);
    }

    #[test]
    fn what_is_no_scheme_or_is_reserved_is_refused() {
        for scheme in ["", "1x", "a b", "a:", "ä", &"x".repeat(65)] {
            let failure = host_schemes(vec![named("ok"), named(scheme)]).unwrap_err();
            assert_eq!(failure.code, ErrorCode::InvalidField);
            assert!(failure.error.contains("schemes[1].scheme"), "{failure}");
        }
        for scheme in ["Skill", "http", "file"] {
            let failure = host_schemes(vec![named(scheme)]).unwrap_err();
            assert_eq!(failure.error, format!("Host URI scheme is reserved: {}://", scheme.to_lowercase()));
        }
        let many = (0..=MAX_HOST_SCHEMES).map(|number| named(&format!("s{number}"))).collect();
        assert!(host_schemes(many).unwrap_err().error.contains("at most 64 schemes, got 65"));
    }

    #[test]
    fn results_of_omps_clients_are_read() {
        let line = r#"{"type":"host_uri_result","id":"r","content":"x","contentType":"text/markdown","notes":["n"],"immutable":true}"#;
        let result = HostUriResult::parse(line).unwrap();
        assert_eq!((result.content.as_deref(), result.notes.as_slice()), (Some("x"), &["n".to_owned()][..]));
        let error = HostUriResult::parse(r#"{"type":"host_uri_result"}"#).unwrap_err();
        assert_eq!(error.to_string(), "Missing field \"id\"");
    }
}
