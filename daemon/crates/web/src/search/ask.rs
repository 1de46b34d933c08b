//! One request to a service that searches, and its answer in JSON.

use std::{sync::Arc, time::Duration};

use agentd_http::{HttpClients, Network, Secret};
use reqwest::{
    Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Bytes of an answer.
const MAX_BYTES: usize = 8 << 20;

/// Characters of what a service says to a failed request.
const MAX_REASON: usize = 300;

/// A request to a service.
pub(super) struct Ask<'a> {
    /// The name of the service, as users know it.
    pub(super) name: &'a str,
    pub(super) url: Url,
    pub(super) headers: Vec<(String, Secret)>,
    /// The body of a POST; `None` for a GET.
    pub(super) body: Option<Value>,
    pub(super) http: &'a HttpClients,
    pub(super) network: &'a Arc<Network>,
    pub(super) timeout: Duration,
}

impl Ask<'_> {
    /// The answer. No error holds a key.
    ///
    /// # Errors
    /// A clause for the model. Cancel safe.
    pub(super) async fn send(self, cancel: &CancellationToken) -> Result<Value, String> {
        let (name, timeout) = (self.name.to_owned(), self.timeout);
        match cancel.run_until_cancelled(tokio::time::timeout(timeout, self.exchange())).await {
            None => Err("aborted".to_owned()),
            Some(Err(_)) => Err(format!("no answer within {} s", timeout.as_secs())),
            Some(Ok(answer)) => answer.map_err(|error| agentd_http::scrub(&error).into_owned()),
        }
        .map_err(|error| if error.is_empty() { format!("{name} failed") } else { error })
    }

    async fn exchange(self) -> Result<Value, String> {
        let client = self.http.get_by(&self.url, self.network).map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::try_from(name.as_str())
                .map_err(|_| "a header of the settings has no legal name".to_owned())?;
            let mut value = HeaderValue::try_from(value.expose())
                .map_err(|_| format!("the header {name} cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let method = if self.body.is_some() { Method::POST } else { Method::GET };
        let mut request = client.request(method, self.url).headers(headers);
        if let Some(body) = &self.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let mut response = request.send().await.map_err(|error| agentd_http::deepest_cause(&error))?;
        let (status, mut bytes) = (response.status(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(|error| agentd_http::deepest_cause(&error))? {
            if bytes.len() + chunk.len() > MAX_BYTES {
                return Err(format!("its answer is longer than {MAX_BYTES} bytes"));
            }
            bytes.extend_from_slice(&chunk);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(format!("{} authorization failed ({status}): check its key", self.name));
        }
        if !status.is_success() {
            return Err(format!("HTTP {status}{}", reason(&bytes)));
        }
        serde_json::from_slice(&bytes).map_err(|_| "its answer is no JSON".to_owned())
    }
}

/// What a service says to a failed request.
fn reason(bytes: &[u8]) -> String {
    let said = serde_json::from_slice::<Value>(bytes).ok().and_then(|value| {
        let places = ["/error/message", "/error/detail", "/detail/error", "/message", "/error", "/detail"];
        places.iter().find_map(|place| Some(value.pointer(place)?.as_str()?.to_owned()))
    });
    said.map(|said| format!(": {}", super::response::one_line(&said, MAX_REASON))).unwrap_or_default()
}
