//! The errors of this API: in events, in bodies and in responses.

use serde_json::{Value, value::RawValue};

use super::api_types::Response;
use crate::{
    failure::{Evidence, Failure, classify},
    http::{ErrorBody, Server},
};

/// The parts of an error.
#[derive(Debug, Default)]
struct ReportedError {
    code: Option<String>,
    kind: Option<String>,
    message: Option<String>,
}

impl ReportedError {
    fn of(error: &Value) -> Self {
        let scalar = |name: &str| match error.get(name)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let message = error.as_str().map(str::to_owned).or_else(|| scalar("message"));
        Self { code: scalar("code"), kind: scalar("type"), message }
    }

    /// The number that some servers send instead of an HTTP status.
    fn status(&self) -> Option<u16> {
        self.code.as_deref()?.parse().ok().filter(|code| (400..600).contains(code))
    }

    fn failure(&self, server: &Server, text: String) -> Failure {
        let kind = classify(&Evidence {
            provider: &server.provider,
            status: self.status(),
            error_type: self.kind.as_deref().or(self.code.as_deref()),
            text: &text,
        });
        server.failure(kind, text)
    }
}

/// The failure in an `error` event; `data` is its whole text.
pub(super) fn of_event(server: &Server, data: &str) -> Failure {
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let mut said = match event.get("error") {
        Some(error) if !error.is_null() => ReportedError::of(error),
        _ => ReportedError { kind: None, ..ReportedError::of(&event) },
    };
    if said.code.is_none() {
        said.code = said.kind.clone();
    }
    let text = match (&said.code, &said.message) {
        (Some(code), Some(message)) => format!("Error Code {code}: {message}"),
        (Some(code), None) => format!("Error Code {code}"),
        (None, Some(message)) => message.clone(),
        (None, None) => return server.refusal(None, &ErrorBody::read(data)),
    };
    said.failure(server, text)
}

/// The failure in an error body that came instead of an event or an answer.
pub(super) fn of_body(server: &Server, data: &str) -> Failure {
    let mut body = ErrorBody::read(data);
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let said = ReportedError::of(event.get("error").unwrap_or(&event));
    let status = said.status();
    if let Some(message) = said.message {
        body.text = message;
    }
    server.refusal(status, &body)
}

/// The failure of an answer whose status is `status`: `failed` or `cancelled`.
pub(super) fn of_response(server: &Server, status: &str, response: &Response<'_>) -> Failure {
    let error = value(response.error);
    let said = ReportedError::of(&error);
    let text = match (&said.code, &said.message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.clone(),
        (None, Some(message)) => message.clone(),
        (None, None) => match incomplete_reason(response) {
            Some(reason) => format!("Response {status}: {reason}"),
            None => format!("Response {status}: the provider gave no reason"),
        },
    };
    said.failure(server, text)
}

/// The reason why an answer is incomplete.
pub(super) fn incomplete_reason(response: &Response<'_>) -> Option<String> {
    value(response.incomplete_details).get("reason")?.as_str().map(str::to_owned)
}

fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
