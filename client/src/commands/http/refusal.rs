//! Answers that are no stream: errors as JSON, with their status.

use agentd_protocol::error::ErrorCode;
use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde::Serialize;

use crate::{
    exit::{Exit, Fault},
    rpc::{CallError, with_our_verbs},
};

/// An error for the client.
pub(super) struct Refusal(Box<Parts>);

struct Parts {
    status: StatusCode,
    header: Option<(HeaderName, HeaderValue)>,
    body: RefusalBody,
}

#[derive(Serialize)]
struct RefusalBody {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let body = RefusalBody { error: error.into(), code: None, hint: None };
        Self(Box::new(Parts { status, header: None, body }))
    }

    fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.0.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    /// Something in the request is wrong.
    pub(super) fn bad_request(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// No token, or a wrong one.
    pub(super) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "The header Authorization must be: Bearer TOKEN, with the token of the token file",
        )
        .with_header(WWW_AUTHENTICATE, "Bearer")
    }

    /// A request that a page in a browser may have caused.
    pub(super) fn forbidden(error: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, error)
    }

    /// No such path.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "There are POST /prompt and GET /health")
    }

    /// A path with another method.
    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("Use {allowed}")).with_header(ALLOW, allowed)
    }

    /// A body that does not come.
    pub(super) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "The body did not come in time")
    }

    /// A body that is longer than `most` bytes, or was cut off.
    pub(super) fn unreadable_body(most: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The body is longer than {most} bytes, or was cut off"),
        )
    }

    /// So many prompts are at work that this one has to wait.
    pub(super) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "As many prompts are at work as --max-requests allows")
            .with_header(RETRY_AFTER, "1")
    }

    /// A fault of this program.
    pub(super) fn broken(error: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// The session could not be opened; `said` is what an agentd of our own said about it.
    pub(super) fn not_opened(fault: Fault, said: &str) -> Self {
        let status = match fault.exit {
            Exit::NoDaemon => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        let said = Some(said.trim()).filter(|said| !said.is_empty()).unwrap_or(&fault.message);
        Self::new(status, said.trim_start_matches("Error: "))
    }

    /// The answer for the client.
    pub(super) fn response(self) -> Response<Full<Bytes>> {
        let Parts { status, header, body } = *self.0;
        // Texts alone: nothing in it can fail.
        let mut response = Response::new(Full::from(serde_json::to_vec(&body).unwrap_or_default()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().extend(header);
        response
    }
}

/// The daemon refused the prompt, or is gone.
impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { error, code, hint } => {
                let known = code.as_deref().and_then(|code| serde_json::from_value(code.into()).ok());
                let status = match known {
                    Some(ErrorCode::Busy | ErrorCode::SessionBusy | ErrorCode::SessionLocked) => {
                        StatusCode::CONFLICT
                    }
                    Some(ErrorCode::LimitReached | ErrorCode::ShuttingDown) => {
                        StatusCode::SERVICE_UNAVAILABLE
                    }
                    _ => StatusCode::BAD_REQUEST,
                };
                let error = with_our_verbs(&error).into_owned();
                Self(Box::new(Parts { status, header: None, body: RefusalBody { error, code, hint } }))
            }
            error @ (CallError::TurnedAway { .. }
            | CallError::Ended { .. }
            | CallError::Unreadable { .. }) => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        }
    }
}
