//! One record of the protocol: a command comes in, a response goes out.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use crate::{
    error::{ErrorCode, Failure},
    surrogates::{self, replace_lone_surrogates},
    text_bounds,
};

/// The fields that every command line has, read before all others.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The `id`, of whatever type; it is repeated in the response.
    pub id: Option<Value>,
    /// The `type` as JavaScript would print it (`3` for a number); `None` when there is none.
    pub kind: Option<String>,
    /// The session that the command is for, where it says so.
    pub session_id: Option<String>,
    /// A fault in these fields, for which the command is refused under its `id`.
    pub fault: Option<FieldError>,
}

impl Head {
    /// Reads the head of a line.
    ///
    /// As in pi, JSON that is no object has no `id` and no `type`. Of a field that is given twice, the later one is
    /// read, as JavaScript does, and [`Self::fault`] says so.
    ///
    /// # Errors
    /// Fails with a `parse` failure when the line is not JSON.
    pub fn parse(line: &str) -> Result<Self, Failure> {
        if !line.trim_start().starts_with('{') {
            return match surrogates::parse::<IgnoredAny>(line) {
                Ok(_) => Ok(Self { id: None, kind: None, session_id: None, fault: None }),
                Err(error) => Err(parse_failure(&error)),
            };
        }
        let mut fields: Fields = surrogates::parse(line).map_err(|error| parse_failure(&error))?;
        let kind = fields.kind.map(|kind| match kind {
            Value::String(name) => name,
            other => other.to_string(),
        });
        let mut fault =
            fields.twice.map(|field| FieldError(format!("Invalid field \"{field}\": given twice")));
        // `null` is none, as of every field that can be left out.
        let session_id = match fields.session_id.take().map(Option::<String>::deserialize) {
            Some(Ok(id)) => id,
            Some(Err(error)) => {
                fault.get_or_insert_with(|| FieldError::of("sessionId", &error.to_string()));
                None
            }
            None => None,
        };
        Ok(Self { id: fields.id, kind, session_id, fault })
    }
}

/// The fields of [`Head`], as they stand in the line.
#[derive(Default)]
struct Fields {
    /// A present `null` is echoed as `null`; an absent id stays absent.
    id: Option<Value>,
    kind: Option<Value>,
    session_id: Option<Value>,
    /// The first of them that is given again.
    twice: Option<&'static str>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "camelCase")]
        enum Key {
            Id,
            Type,
            SessionId,
            #[serde(other)]
            Other,
        }
        struct Line;
        impl<'de> Visitor<'de> for Line {
            type Value = Fields;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(key) = map.next_key()? {
                    let (name, field) = match key {
                        Key::Id => ("id", &mut fields.id),
                        Key::Type => ("type", &mut fields.kind),
                        Key::SessionId => ("sessionId", &mut fields.session_id),
                        Key::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    if field.replace(map.next_value()?).is_some() {
                        fields.twice.get_or_insert(name);
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Line)
    }
}

fn parse_failure(error: &serde_json::Error) -> Failure {
    Failure::new(ErrorCode::Parse, format!("Failed to parse command: {error}"))
        .hint("Send one JSON object per line, ended by a line feed.")
}

/// The failure for a `type` that names no command.
#[must_use]
pub fn unknown_command(kind: Option<&str>) -> Failure {
    let name = kind.unwrap_or("undefined");
    Failure::new(
        ErrorCode::UnknownCommand,
        text_bounds::without_middle(format!("Unknown command: {name}"), MOST_SAID),
    )
}

/// The longest message about a line, in bytes. It quotes what it met, and a line may have 64 MiB.
const MOST_SAID: usize = 500;

/// A field of a command that is missing or unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldError(String);

impl FieldError {
    /// What serde says of the value at `path`.
    fn of(path: &str, message: &str) -> Self {
        Self(text_bounds::without_middle(describe(path, message), MOST_SAID))
    }
}

impl From<FieldError> for Failure {
    fn from(error: FieldError) -> Self {
        Self::new(ErrorCode::InvalidField, error.0)
    }
}

/// Reads the parameters of a command from its line. A half of a character, as JavaScript leaves when it cuts a text, reads as
/// U+FFFD.
pub(crate) fn parse_params<T: DeserializeOwned>(line: &str) -> Result<T, FieldError> {
    read_params(line).or_else(|error| match replace_lone_surrogates(line) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(line) => read_params(&line),
    })
}

fn read_params<T: DeserializeOwned>(line: &str) -> Result<T, FieldError> {
    let mut deserializer = serde_json::Deserializer::from_str(line);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        FieldError::of(&path, &error.into_inner().to_string())
    })
}

/// Says in the words of the protocol what serde says in its own.
fn describe(path: &str, message: &str) -> String {
    // serde_json appends the position in the line, which means nothing to a client that sent an object.
    let message = message.rsplit_once(" at line ").map_or(message, |(text, _)| text);
    if let Some(field) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        let field = if path == "." { field.to_owned() } else { format!("{path}.{field}") };
        return format!("Missing field \"{field}\"");
    }
    if let Some(field) = message.strip_prefix("duplicate field `").and_then(|rest| rest.strip_suffix('`')) {
        // The path has come to the field by then, or not.
        let is_there = path == field || path.ends_with(&format!(".{field}"));
        let field = if path == "." || is_there { field.to_owned() } else { format!("{path}.{field}") };
        return format!("Invalid field \"{field}\": given twice");
    }
    let got = ["invalid type: ", "invalid value: "].iter().find_map(|prefix| message.strip_prefix(prefix));
    if let Some((got, expected)) = got.and_then(|rest| rest.split_once(", expected ")) {
        let got = ["integer ", "floating point ", "boolean ", "string "]
            .iter()
            .find_map(|kind| got.strip_prefix(kind))
            .unwrap_or(got);
        return format!("Invalid field \"{path}\": expected {expected}, got {}", got.replace('`', ""));
    }
    if let Some((got, expected)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        let quoted = |text: &str| text.replace('`', "\"");
        return format!("Invalid field \"{path}\": expected {}, got {}", quoted(expected), quoted(got));
    }
    format!("Invalid field \"{path}\": {message}")
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response<T> {
    /// The command's `id`, as it came; absent when the command had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Always `response`.
    #[serde(rename = "type")]
    pub kind: ResponseTag,
    /// The command's `type`; absent when it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether the command was done.
    pub success: bool,
    /// The data, if the command gives any.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
    /// Why it was not done.
    #[serde(flatten)]
    pub failure: Option<Failure>,
}

fn none<T>() -> Option<T> {
    None
}

/// The `type` of a response line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ResponseTag {
    /// The only value.
    #[default]
    #[serde(rename = "response")]
    Response,
}

impl<T> Response<T> {
    /// The answer to a command that was done.
    #[must_use]
    pub fn done(id: Option<Value>, command: &str, data: Option<T>) -> Self {
        let kind = ResponseTag::Response;
        Self { id, kind, command: Some(command.to_owned()), success: true, data, failure: None }
    }

    /// The answer to a command that was not done.
    #[must_use]
    pub fn failed(id: Option<Value>, command: Option<&str>, failure: Failure) -> Self {
        let command = command.map(str::to_owned);
        Self { id, kind: ResponseTag::Response, command, success: false, data: None, failure: Some(failure) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    #[test]
    fn a_message_quotes_a_long_value_in_part() {
        let long = "é".repeat(10_000);
        let line =
            format!(r#"{{"type":"compact","customInstructions":"x","prompt":{{"{long}":1}},"message":5}}"#);
        for failure in [
            unknown_command(Some(&long)),
            Command::parse("set_auto_retry", &line.replace("\"x\"", "5")).unwrap().unwrap_err().into(),
            Command::parse("set_auto_retry", &format!(r#"{{"enabled":"{long}"}}"#))
                .unwrap()
                .unwrap_err()
                .into(),
        ] {
            assert!(failure.error.len() <= MOST_SAID + 3, "{} bytes", failure.error.len());
        }
        let failure =
            Failure::from(Command::parse("set_auto_retry", r#"{"enabled":"é"}"#).unwrap().unwrap_err());
        assert_eq!(failure.error, "Invalid field \"enabled\": expected a boolean, got \"é\"");
    }

    fn check(line: &str, expected: &str) {
        let head = Head::parse(line).unwrap();
        let error = Command::parse(head.kind.as_deref().unwrap(), line).unwrap().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn field_errors_name_the_field_and_what_was_expected() {
        check(r#"{"type":"prompt","message":3}"#, r#"Invalid field "message": expected a string, got 3"#);
        check(r#"{"type":"prompt"}"#, r#"Missing field "message""#);
        check(
            r#"{"type":"prompt","message":"a","images":[{"data":true}]}"#,
            r#"Invalid field "images[0].data": expected a string, got true"#,
        );
        check(
            r#"{"type":"set_steering_mode","mode":"some"}"#,
            r#"Invalid field "mode": expected "all" or "one-at-a-time", got "some""#,
        );
        check(
            r#"{"type":"prompt","message":"a","requestKey":""}"#,
            r#"Invalid field "requestKey": expected 1 to 256 bytes, got 0"#,
        );
        let long = "ü".repeat(129);
        check(
            &format!(r#"{{"type":"bash","command":"a","requestKey":"{long}"}}"#),
            r#"Invalid field "requestKey": expected 1 to 256 bytes, got 258"#,
        );
        check(
            r#"{"type":"steer","message":"a","requestKey":7}"#,
            r#"Invalid field "requestKey": expected a string, got 7"#,
        );
    }

    #[test]
    fn heads_of_odd_lines() {
        let none = Head { id: None, kind: None, session_id: None, fault: None };
        assert_eq!(Head::parse("[1]").unwrap(), none);
        assert_eq!(Head::parse("null").unwrap(), none);
        let head = Head::parse(r#"{"id":null,"type":7}"#).unwrap();
        assert_eq!(head, Head { id: Some(Value::Null), kind: Some("7".into()), ..none });
        let head = Head::parse(r#"{"id":1,"x":[{"id":2}],"type":"a","sessionId":null}"#).unwrap();
        assert_eq!((head.id, head.session_id, head.fault), (Some(1.into()), None, None));
        for line in ["", " ", "{", "{\"a\":}", "nope"] {
            let failure = Head::parse(line).unwrap_err();
            assert_eq!(failure.code, ErrorCode::Parse, "{line:?}");
            assert!(failure.error.starts_with("Failed to parse command: "), "{line:?}");
        }
    }

    #[test]
    fn a_fault_of_the_head_leaves_the_id_readable() {
        let check = |fields: &str, expected: &str| {
            for line in [
                format!(r#"{{"id":"a",{fields}}}"#),
                format!(r#"{{{fields},"id":"a"}}"#),
                format!(r#"{{"message":"\ud83d",{fields},"id":"a"}}"#),
            ] {
                let head = Head::parse(&line).unwrap();
                assert_eq!(head.id, Some("a".into()), "{line}");
                assert_eq!(head.fault.map(|fault| fault.to_string()).as_deref(), Some(expected), "{line}");
                assert_eq!(head.session_id, None, "{line}");
            }
        };
        for (value, got) in
            [("12", "12"), ("true", "true"), ("1.5", "1.5"), ("[]", "sequence"), ("{\"a\":1}", "map")]
        {
            let expected = format!(r#"Invalid field "sessionId": expected a string, got {got}"#);
            check(&format!(r#""type":"get_state","sessionId":{value}"#), &expected);
        }
        let twice = |field: &str| format!(r#"Invalid field "{field}": given twice"#);
        check(r#""type":"get_state","type":"get_state""#, &twice("type"));
        check(r#""type":"get_state","type":"abort","sessionId":1"#, &twice("type"));
        check(r#""sessionId":null,"type":"get_state","sessionId":null"#, &twice("sessionId"));
        let head = Head::parse(r#"{"id":"a","type":"get_state","id":"b"}"#).unwrap();
        assert_eq!(head.id, Some("b".into()), "as JavaScript reads it");
        assert_eq!(head.fault.map(|fault| fault.to_string()), Some(twice("id")));
    }

    #[test]
    fn a_parameter_is_given_once() {
        check(r#"{"type":"prompt","message":"a","message":"b"}"#, r#"Invalid field "message": given twice"#);
        check(
            r#"{"type":"set_model","provider":"a","modelId":"b","provider":"c"}"#,
            r#"Invalid field "provider": given twice"#,
        );
        check(
            r#"{"type":"prompt","message":"a","images":[{"type":"image","data":"","mimeType":"x","data":""}]}"#,
            r#"Invalid field "images[0].data": given twice"#,
        );
    }

    #[test]
    fn responses_have_the_shape_of_pi() {
        let text = |response: Response<Value>| serde_json::to_string(&response).unwrap();
        assert_eq!(
            text(Response::done(Some("1".into()), "abort", None)),
            r#"{"id":"1","type":"response","command":"abort","success":true}"#
        );
        assert_eq!(
            text(Response::done(None, "cycle_model", Some(Value::Null))),
            r#"{"type":"response","command":"cycle_model","success":true,"data":null}"#
        );
        let failure = unknown_command(None);
        assert_eq!(
            text(Response::failed(Some(Value::from(7)), None, failure)),
            r#"{"id":7,"type":"response","success":false,"error":"Unknown command: undefined","code":"unknown_command"}"#
        );
    }
}
