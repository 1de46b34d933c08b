//! JSON-RPC 2.0: one message a line, no batches.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// The line is no JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is no request.
pub const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// A parameter is missing or cannot be used.
pub const INVALID_PARAMS: i32 = -32602;
/// Anything else.
pub const INTERNAL_ERROR: i32 = -32603;
/// There is no model that can be used before the user logs in.
pub const AUTH_REQUIRED: i32 = -32000;
/// There is no such session.
pub const RESOURCE_NOT_FOUND: i32 = -32002;

/// The longest quotation of a line or a name in an error, in bytes.
const MOST_QUOTED: usize = 300;

/// The id of a client's request: a number, a text or `null`, written back as it came.
#[derive(Debug, Clone)]
pub struct RequestId(Box<RawValue>);

impl RequestId {
    /// The id in JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

/// A message of the client.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A request, which gets one answer.
    Request {
        /// Its id.
        id: RequestId,
        /// The method.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// A notification, which gets none.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request of ours; an error answers with its text.
    Response {
        /// The id of our request.
        id: u64,
        /// The result, or the error's text.
        result: Result<&'a RawValue, String>,
    },
    /// An answer that belongs to no request of ours.
    Stray,
}

/// The failure of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcError {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds what programs can read.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Whether the error has this code.
    #[must_use]
    pub fn is(&self, code: i32) -> bool {
        self.code == code
    }

    /// An error of a parameter.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

/// Reads a line.
///
/// # Errors
/// The error to answer with, and the id as far as it could be read.
pub fn parse(line: &str) -> Result<Incoming<'_>, (Option<RequestId>, RpcError)> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow, default)]
        jsonrpc: Option<Cow<'a, str>>,
        #[serde(borrow, default, deserialize_with = "present")]
        id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        method: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "present")]
        result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    let envelope: Envelope<'_> = match serde_json::from_str(line) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => {
            let text = "Invalid request: expected one JSON-RPC 2.0 object on the line; there are no batches";
            return Err((None, RpcError::new(INVALID_REQUEST, text)));
        }
        Err(error) => return Err((None, RpcError::new(PARSE_ERROR, format!("Parse error: {error}")))),
    };
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let id_of = |id: &RawValue| RequestId(id.to_owned());
    let refused = |text: &str| Err((id.map(id_of), RpcError::new(INVALID_REQUEST, text)));
    if jsonrpc.as_deref() != Some("2.0") {
        return refused("Invalid request: \"jsonrpc\" has to be \"2.0\"");
    }
    if id.is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
        let text = "Invalid request: \"id\" has to be a number, a string or null";
        return Err((None, RpcError::new(INVALID_REQUEST, text)));
    }
    match (method, id) {
        (Some(method), Some(id)) => Ok(Incoming::Request { id: id_of(id), method, params }),
        (Some(method), None) => Ok(Incoming::Notification { method, params }),
        (None, Some(id)) if result.is_some() || error.is_some() => {
            let Ok(id) = id.get().parse() else { return Ok(Incoming::Stray) };
            let result = match (result, error) {
                (Some(result), None) => Ok(result),
                (_, error) => Err(error.map(error_text).unwrap_or_default()),
            };
            Ok(Incoming::Response { id, result })
        }
        _ => refused("Invalid request: there is neither a \"method\" nor an answer"),
    }
}

/// A field that is there, `null` too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The text of the error that a client answered with.
fn error_text(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    match serde_json::from_str::<Message>(error.get()) {
        Ok(Message { message }) => quoted(&message).to_owned(),
        Err(_) => quoted(error.get()).to_owned(),
    }
}

/// The beginning of a text that others chose.
#[must_use]
pub fn quoted(text: &str) -> &str {
    let mut end = text.len().min(MOST_QUOTED);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads the parameters of a method. Absent parameters read as `{}`.
///
/// # Errors
/// Names the parameter.
pub fn params<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    fields(params).map_err(|text| RpcError::invalid_params(format!("Invalid params: {text}")))
}

/// Reads an object of named fields. An absent one reads as `{}`.
///
/// # Errors
/// Names the field, and says what is wrong with it.
pub fn fields<T: DeserializeOwned>(object: Option<&RawValue>) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_str(object.map_or("{}", RawValue::get));
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let text = error.into_inner().to_string();
        let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
        let text = if path == "." { text.to_owned() } else { format!("{path}: {text}") };
        quoted(&text).to_owned()
    })
}

/// Appends the answer to a request.
pub fn write_result(id: &RequestId, result: &impl Serialize, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Answer<'a, T> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: &'a T,
    }
    write(&Answer { jsonrpc: "2.0", id: &id.0, result }, out);
}

/// Appends the failure of a request; without an id, of a line that could not be read.
pub fn write_error(id: Option<&RequestId>, error: &RpcError, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: Option<&'a RawValue>,
        error: &'a RpcError,
    }
    write(&Answer { jsonrpc: "2.0", id: id.map(|id| &*id.0), error }, out);
}

/// Appends a request of ours.
pub fn write_request(id: u64, method: &str, params: &impl Serialize, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Request<'a, T> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a T,
    }
    write(&Request { jsonrpc: "2.0", id, method, params }, out);
}

/// Appends a notification of ours.
pub fn write_notification(method: &str, params: &impl Serialize, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Notification<'a, T> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a T,
    }
    write(&Notification { jsonrpc: "2.0", method, params }, out);
}

/// Appends one line. What is written are our own types, which have no keys that are not text, so that writing them cannot fail.
pub fn write(message: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    match serde_json::to_writer(&mut *out, message) {
        Ok(()) => out.push(b'\n'),
        Err(_) => out.truncate(start),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(line: &str) -> (Option<String>, i32) {
        let (id, error) = parse(line).unwrap_err();
        (id.map(|id| id.text().to_owned()), error.code)
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let line = r#"{"jsonrpc":"2.0","id":null,"method":"a","params":{"x":1}}"#;
        let Ok(Incoming::Request { id, method, params }) = parse(line) else { panic!("no request") };
        assert_eq!((id.text(), &*method, params.unwrap().get()), ("null", "a", r#"{"x":1}"#));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","method":"a"}"#),
            Ok(Incoming::Notification { params: None, .. })
        ));
        let answer = parse(r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
        assert!(matches!(answer, Ok(Incoming::Response { id: 3, result: Ok(_) })));
        let failed = parse(r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#);
        assert!(matches!(failed, Ok(Incoming::Response { id: 3, result: Err(text) }) if text == "no"));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#), Ok(Incoming::Stray)));
    }

    #[test]
    fn lines_that_are_no_message_have_their_codes() {
        for (line, expected) in [
            ("{", (None, PARSE_ERROR)),
            ("nope", (None, PARSE_ERROR)),
            ("", (None, PARSE_ERROR)),
            ("[]", (None, INVALID_REQUEST)),
            ("7", (None, INVALID_REQUEST)),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#, (None, INVALID_REQUEST)),
            (r#"{"id":1,"method":"a"}"#, (Some("1".into()), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":"b"}"#, (Some("\"b\"".into()), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, (None, INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, (None, INVALID_REQUEST)),
        ] {
            assert_eq!(refusal(line), expected, "{line}");
        }
    }

    #[test]
    fn errors_of_parameters_name_them() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its reading is tested")]
        struct Params {
            cwd: String,
        }
        let read = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            params::<Params>(Some(&raw)).unwrap_err().message
        };
        assert_eq!(read(r#"{"cwd":5}"#), "Invalid params: cwd: invalid type: integer `5`, expected a string");
        assert_eq!(read("{}"), "Invalid params: missing field `cwd`");
        assert!(read(&format!(r#"{{"cwd":{}}}"#, "9".repeat(5000))).len() < 400);
    }

    #[test]
    fn messages_are_one_line_each() {
        let mut out = Vec::new();
        let Ok(Incoming::Request { id, .. }) = parse(r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#) else {
            panic!("no request")
        };
        write_result(&id, &json!({}), &mut out);
        write_error(None, &RpcError::new(PARSE_ERROR, "a\nb"), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n\
             {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"a\\nb\"}}\n"
        );
    }
}
