//! Messages of JSON-RPC, read leniently: what cannot be understood is passed over with a reason.

use serde_json::{Value, json};

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The answer to a request of ours.
    Response {
        /// Our number of the request.
        id: u64,
        /// Its result, or the server's error.
        result: Result<Value, RpcError>,
    },
    /// A request of the server.
    Request {
        /// The server's id, sent back as it is.
        id: Value,
        method: String,
        params: Value,
    },
    /// A notification of the server.
    Notification { method: String, params: Value },
}

/// An error that a server answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// The longest message of an error that is kept, in bytes.
const MAX_ERROR_BYTES: usize = 2000;

/// Reads the body of a message.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn read(body: &[u8]) -> Result<Incoming, String> {
    let value: Value = serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))?;
    let Value::Object(mut message) = value else { return Err("no object".to_owned()) };
    let id = message.remove("id").filter(|id| !id.is_null());
    let params = message.remove("params").unwrap_or(Value::Null);
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Ok(Incoming::Request { id, method, params }),
        (Some(Value::String(method)), None) => Ok(Incoming::Notification { method, params }),
        (Some(_), _) => Err("a method that is no text".to_owned()),
        (None, Some(id)) => {
            // Some servers answer with the number as a text.
            let number = id.as_u64().or_else(|| id.as_str()?.parse().ok());
            let id = number.ok_or("an answer to a request that has another kind of id")?;
            let result = match message.remove("error").filter(|error| !error.is_null()) {
                Some(error) => Err(rpc_error(&error)),
                None => Ok(message.remove("result").unwrap_or(Value::Null)),
            };
            Ok(Incoming::Response { id, result })
        }
        (None, None) => Err("neither a method nor an id".to_owned()),
    }
}

fn rpc_error(error: &Value) -> RpcError {
    let text = error.get("message").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let message = text.map_or_else(|| error.to_string(), str::to_owned);
    RpcError {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
        message: agentd_protocol::text_bounds::head(&message, MAX_ERROR_BYTES).to_owned(),
    }
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    with_params(json!({"jsonrpc": "2.0", "id": id, "method": method}), params)
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    with_params(json!({"jsonrpc": "2.0", "method": method}), params)
}

/// Some methods take no parameters, and some servers refuse a null there.
fn with_params(mut message: Value, params: &Value) -> Value {
    if let (Value::Object(message), false) = (&mut message, params.is_null()) {
        message.insert("params".to_owned(), params.clone());
    }
    message
}

pub(crate) fn response(id: &Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(body: Value, expected: Result<Incoming, &str>) {
        assert_eq!(read(body.to_string().as_bytes()), expected.map_err(str::to_owned));
    }

    #[test]
    fn messages() {
        check(json!({"id": 3, "result": [1]}), Ok(Incoming::Response { id: 3, result: Ok(json!([1])) }));
        check(json!({"id": "4"}), Ok(Incoming::Response { id: 4, result: Ok(Value::Null) }));
        let error = RpcError { code: -32601, message: "no".into() };
        check(
            json!({"id": 5, "error": {"code": -32601, "message": " no "}}),
            Ok(Incoming::Response { id: 5, result: Err(error) }),
        );
        check(
            json!({"id": "a", "method": "m"}),
            Ok(Incoming::Request { id: json!("a"), method: "m".into(), params: Value::Null }),
        );
        check(
            json!({"id": null, "method": "m", "params": {"a": 1}}),
            Ok(Incoming::Notification { method: "m".into(), params: json!({"a": 1}) }),
        );
        check(json!([]), Err("no object"));
        check(json!({}), Err("neither a method nor an id"));
        check(json!({"id": {}}), Err("an answer to a request that has another kind of id"));
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&body);
        }
    }
}
