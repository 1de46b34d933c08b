//! The events with lists of messages: what a model gets, and what a run has made.

use agentd_protocol::{Json, message::Message};
use serde::{Serialize, ser::SerializeMap as _};
use serde_json::{Map, Value};

use crate::{
    event::EventKind,
    extensions::SessionExtensions,
    hooks::Returned,
    message_refs::{MessageRef, MessageRefs},
    registrations::HandlerRef,
};

/// An event with messages.
struct ListEvent<'a> {
    kind: &'static str,
    messages: Vec<MessageRef>,
    others: &'a Map<String, Value>,
}

impl Serialize for ListEvent<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind)?;
        for (name, value) in self.others {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("messages", &self.messages)?;
        map.end()
    }
}

/// Messages on their way to a host. Dropped before they are known to have come, they are sent again the next time.
struct Delivery<'a> {
    refs: &'a MessageRefs,
    host: usize,
}

impl Delivery<'_> {
    /// The host has got them.
    fn arrived(self) {
        std::mem::forget(self);
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.refs.reset(self.host);
    }
}

impl SessionExtensions {
    /// Passes the messages of a model call through the handlers; `None` where they stay as they are. `kind` is `context` or
    /// `context_with_system`.
    pub async fn context(&self, kind: EventKind, messages: &[Json<Message>]) -> Option<Vec<Json<Message>>> {
        let mut changed: Option<Vec<Json<Message>>> = None;
        let others = Map::new();
        for handler in self.0.handlers(kind) {
            let now = changed.as_deref().unwrap_or(messages);
            let (event, delivery) = self.list_event(kind, handler, now, &others);
            let Some(Returned { value, event, .. }) = self.0.asked(kind, handler, &event).await else {
                continue;
            };
            delivery.arrived();
            let of_value = value.and_then(|value| match value {
                Value::Object(mut value) => value.remove("messages"),
                _ => None,
            });
            let list = of_value.or_else(|| event.and_then(|mut event| event.remove("messages")));
            let Some(Value::Array(list)) = list else { continue };
            match self.0.messages.read(list) {
                Some(messages) => changed = Some(messages),
                None => {
                    let path = self.0.path(handler.extension).to_owned();
                    self.0.failed(path, kind.name(), "it returned something that is no message".to_owned());
                }
            }
        }
        self.forget_messages(messages);
        changed
    }

    /// Tells the handlers of an event with messages.
    pub async fn notify_with_messages(
        &self,
        kind: EventKind,
        others: &Map<String, Value>,
        messages: &[Json<Message>],
    ) {
        for handler in self.0.handlers(kind) {
            let (event, delivery) = self.list_event(kind, handler, messages, others);
            if self.0.asked(kind, handler, &event).await.is_some() {
                delivery.arrived();
            }
        }
    }

    fn list_event<'a>(
        &self,
        kind: EventKind,
        handler: HandlerRef,
        messages: &[Json<Message>],
        others: &'a Map<String, Value>,
    ) -> (ListEvent<'a>, Delivery<'_>) {
        let host = self.0.placement(handler.extension);
        let messages = self.0.messages.of(host, self.0.epoch_of(handler.extension), messages);
        (ListEvent { kind: kind.name(), messages, others }, Delivery { refs: &self.0.messages, host })
    }

    /// Lets the hosts forget messages that the transcript has no more.
    fn forget_messages(&self, messages: &[Json<Message>]) {
        for (host, gone) in self.0.messages.forget_others(messages) {
            self.0.hosts[host].note("forget", &gone);
        }
    }
}
