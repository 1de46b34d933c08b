//! The events of requests to providers.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{event::EventKind, extensions::SessionExtensions};

#[derive(Serialize)]
struct HeadersEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    headers: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct PayloadEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    payload: &'a Value,
}

impl SessionExtensions {
    /// Passes the headers that are configured for a request through the handlers, which change them in place; `null` takes a header away.
    pub async fn before_provider_headers(&self, mut headers: Map<String, Value>) -> Map<String, Value> {
        let kind = EventKind::BeforeProviderHeaders;
        for handler in self.0.handlers(kind) {
            let event = HeadersEvent { kind: kind.name(), headers: &headers };
            let returned = self.0.asked(kind, handler, &event).await;
            let changed = returned.and_then(|it| it.event).and_then(|mut event| event.remove("headers"));
            if let Some(Value::Object(changed)) = changed {
                headers = changed;
            }
        }
        headers
    }

    /// Passes the body of a request through the handlers; `None` where it stays as it is.
    pub async fn before_provider_request(&self, payload: &Value) -> Option<Value> {
        let kind = EventKind::BeforeProviderRequest;
        let mut changed: Option<Value> = None;
        for handler in self.0.handlers(kind) {
            let event = PayloadEvent { kind: kind.name(), payload: changed.as_ref().unwrap_or(payload) };
            let Some(returned) = self.0.asked(kind, handler, &event).await else { continue };
            let in_place = returned.event.and_then(|mut event| event.remove("payload"));
            changed = returned.value.or(in_place).or(changed);
        }
        changed
    }
}
