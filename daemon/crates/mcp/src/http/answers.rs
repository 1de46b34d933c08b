//! What servers answer by HTTP: messages, refusals, how long to wait before the next attempt.

use std::time::Duration;

use agentd_http::deepest_cause;
use agentd_memory::MemoryReservation;
use reqwest::{Response, StatusCode};

use crate::{message, peer::RequestError};

/// Bytes that are read of the body of an error, and bytes that are shown of it.
const ERROR_BODY: (usize, usize) = (8 << 10, 500);

/// The longest pause before a broken stream is resumed.
const LONGEST_RESUME_PAUSE: Duration = Duration::from_secs(30);

/// One message, or an array of them.
///
/// # Errors
/// Why they are none; the text quotes nothing of them.
pub(super) fn read_all(bytes: &[u8]) -> Result<Vec<message::Incoming>, String> {
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        return message::read(bytes).map(|message| vec![message]);
    }
    let parts: Vec<&serde_json::value::RawValue> =
        serde_json::from_slice(bytes).map_err(|error| format!("not JSON (column {})", error.column()))?;
    parts.into_iter().map(|part| message::read(part.get().as_bytes())).collect()
}

/// Whether a status says that the same request may be taken a moment later.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
        || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

/// The pause before a broken stream is resumed, where the server names none.
pub(super) fn resume_pause(attempt: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(1 << attempt.min(10)).min(LONGEST_RESUME_PAUSE)
}

/// What a server said that refused a request.
pub(super) async fn refusal(response: Response) -> RequestError {
    let status = response.status();
    let (read, shown) = ERROR_BODY;
    let body = limited(response, read, None).await.unwrap_or_default();
    let is_sign_in = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if let Some(error) = message::refusal(&body).filter(|_| status.is_client_error() && !is_sign_in) {
        return RequestError::Server(error);
    }
    let text = String::from_utf8_lossy(&body);
    let text = agentd_protocol::text_bounds::head(text.trim(), shown);
    let text = match status {
        StatusCode::UNAUTHORIZED => format!(
            "the server wants a sign-in (HTTP {status}): put a token into \"headers\" of its entry in mcp.json {text}"
        ),
        _ if text.is_empty() => format!("the server answered with HTTP {status}"),
        _ => format!("the server answered with HTTP {status}: {text}"),
    };
    RequestError::Status { status: status.as_u16(), text }
}

/// A body of at most `limit` bytes, which are charged. Of the body of an error, the rest does not matter.
///
/// # Errors
/// It is longer, there is no memory for it, or the connection broke.
pub(super) async fn limited(
    mut response: Response,
    limit: usize,
    mut charge: Option<&mut MemoryReservation>,
) -> Result<Vec<u8>, RequestError> {
    let is_error = !response.status().is_success();
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| RequestError::Http(deepest_cause(&error)))?;
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > limit {
            if is_error {
                return Ok(body);
            }
            return Err(RequestError::TooLong { limit });
        }
        if let Some(charge) = &mut charge {
            charge.grow_to((body.len() + chunk.len()) as u64).map_err(RequestError::NoMemory)?;
        }
        body.extend_from_slice(&chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_bounded() {
        let seconds: Vec<u64> = (0..7).map(|attempt| resume_pause(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn answers_are_one_message_or_several() {
        assert_eq!(read_all(br#" {"id":1,"result":2}"#).unwrap().len(), 1);
        assert_eq!(read_all(br#"[{"id":1,"result":2},{"method":"x"}]"#).unwrap().len(), 2);
        assert!(read_all(b"[1]").is_err() && read_all(b"").is_err());
    }

    #[test]
    fn what_passes_is_tried_again() {
        for (status, expected) in
            [(408, true), (429, true), (500, true), (503, true), (501, false), (404, false)]
        {
            assert_eq!(is_transient(StatusCode::from_u16(status).unwrap()), expected, "{status}");
        }
    }
}
