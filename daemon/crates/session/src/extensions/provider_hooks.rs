//! Extensions that see the exchanges of the session's model requests.

use std::sync::Arc;

use agentd_agent::observer::CallPurpose;
use agentd_ai::{ExchangeHook, ExchangeHooks, ExchangeStage};
use agentd_extensions::{EventKind, SessionExtensions};
use agentd_protocol::{model::Model, secret::Secret};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

/// The handlers of one request.
struct ProviderHooks {
    extensions: SessionExtensions,
    shown: Shown,
}

/// What is shown of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Everything,
    /// Of a summary.
    Headers,
    /// Of a request that an extension makes to answer another one, whose headers were shown.
    AllButHeaders,
}

/// Lets the extensions of a session see a request; `None` where there are none.
pub(crate) fn provider_hooks(
    extensions: Option<&SessionExtensions>,
    purpose: CallPurpose,
) -> Option<ExchangeHook> {
    let shown = match purpose {
        CallPurpose::Answer => Shown::Everything,
        CallPurpose::Summary => Shown::Headers,
        CallPurpose::Extension => Shown::AllButHeaders,
    };
    let extensions = extensions?.clone();
    Some(ExchangeHook(Arc::new(ProviderHooks { extensions, shown })))
}

fn event_of(stage: ExchangeStage) -> EventKind {
    match stage {
        ExchangeStage::Headers => EventKind::BeforeProviderHeaders,
        ExchangeStage::Payload => EventKind::BeforeProviderRequest,
        ExchangeStage::Response => EventKind::AfterProviderResponse,
        ExchangeStage::StreamEvent => EventKind::ProviderStreamEvent,
    }
}

impl ExchangeHooks for ProviderHooks {
    fn wants(&self, stage: ExchangeStage) -> bool {
        let is_shown = match self.shown {
            Shown::Everything => true,
            Shown::Headers => stage == ExchangeStage::Headers,
            Shown::AllButHeaders => stage != ExchangeStage::Headers,
        };
        is_shown && self.extensions.listens(event_of(stage))
    }

    fn headers(&self, headers: Vec<(String, Secret)>) -> BoxFuture<'_, Vec<(String, Secret)>> {
        Box::pin(async move {
            let shown = headers.iter().map(|(name, value)| (name.clone(), header_value(value)));
            let changed = self.extensions.before_provider_headers(shown.collect()).await;
            let removed = headers.iter().filter(|(name, _)| !changed.contains_key(name));
            let removed = removed.filter(|(_, value)| value.expose().is_empty()).cloned();
            let kept = changed.iter().filter_map(|(name, value)| Some((name.clone(), secret(value)?)));
            kept.chain(removed).collect()
        })
    }

    fn payload(&self, payload: Value) -> BoxFuture<'_, Option<Value>> {
        Box::pin(async move { self.extensions.before_provider_request(&payload).await })
    }

    fn response(&self, status: u16, headers: Map<String, Value>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let event = json!({"type": "after_provider_response", "status": status, "headers": headers});
            self.extensions.notify(EventKind::AfterProviderResponse, &event).await;
        })
    }

    fn stream_event<'a>(&'a self, model: &'a Model, data: Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let event = json!({
                "type": "provider_stream_event", "data": data, "provider": model.provider, "api": model.api,
                "model": model.id,
            });
            self.extensions.notify(EventKind::ProviderStreamEvent, &event).await;
        })
    }
}

/// A header as extensions see it: `null` where it takes another one away.
pub(super) fn header_value(value: &Secret) -> Value {
    match value.expose() {
        "" => Value::Null,
        text => text.into(),
    }
}

/// A header as an extension gives it; `None` where it is no header.
pub(super) fn secret(value: &Value) -> Option<Secret> {
    match value {
        Value::Null => Some(Secret::new("")),
        Value::String(text) => Some(Secret::new(text.as_str())),
        Value::Number(number) => Some(Secret::new(number.to_string())),
        Value::Bool(flag) => Some(Secret::new(flag.to_string())),
        _ => None,
    }
}
