//! What the extensions of a session see of a run, and what they may change in it. Handlers come before the clients: an event is published
//! once they have ended.

use std::time::Duration;

use agentd_agent::{HostError, nothing_in_flight, serve_in_flight_queries};
use agentd_extensions::{EventKind, SessionExtensions};
use agentd_protocol::{
    Json,
    event::{Event, MessageEnd},
    message::Message,
};
use serde_json::{Map, Value, json, value::to_raw_value};
use tokio::time::sleep;

use super::{host::RunHost, message::RunMessage};
use crate::{clock::now_ms, system_prompt::whole};

/// Time that handlers have once the run is to stop.
const STOPPING: Duration = Duration::from_secs(2);

impl RunHost {
    /// Shows an event to the handlers; returns it as they left it.
    ///
    /// # Errors
    /// The session is gone.
    pub(super) async fn seen_by_extensions(&mut self, event: Event) -> Result<Event, HostError> {
        let Some(extensions) = self.context.extensions.clone() else { return Ok(event) };
        if matches!(event, Event::AgentStart(_)) {
            self.ask(|told| RunMessage::Beginning { told }).await?;
        }
        if matches!(event, Event::TurnEnd(_)) {
            let host = self.context.settings.extension_host.as_ref();
            self.memory.look(&extensions, host.and_then(|host| host.max_host_mb));
        }
        let Some(kind) = EventKind::of(event.name()).filter(|kind| extensions.listens(*kind)) else {
            if matches!(event, Event::TurnStart(_)) {
                self.turn_index += 1;
            }
            return Ok(event);
        };
        match event {
            Event::MessageEnd(end) => {
                let changed = self.handled(message_end(extensions, end.clone())).await?;
                Ok(changed.flatten().map_or(Event::MessageEnd(end), |message| MessageEnd { message }.into()))
            }
            Event::MessageUpdate(update) => {
                let event = json!({
                    "type": "message_update", "assistantMessageEvent": update.assistant_message_event,
                });
                // Not waited for: a stream is no slower for those who listen. The next event that is, comes after it.
                extensions.notify_later(EventKind::MessageUpdate, event).await;
                Ok(Event::MessageUpdate(update))
            }
            Event::TurnStart(start) => {
                let shown = json!({
                    "type": "turn_start", "turnIndex": self.turn_index, "timestamp": now_ms(),
                });
                self.turn_index += 1;
                self.handled(async move { extensions.notify(kind, &shown).await }).await?;
                Ok(start.into())
            }
            Event::TurnEnd(end) => {
                self.turn_boundary(&end).await?;
                Ok(end.into())
            }
            Event::AgentEnd(end) => {
                let messages = end.messages.clone();
                let told = async move { extensions.notify_with_messages(kind, &Map::new(), &messages).await };
                self.handled(told).await?;
                Ok(end.into())
            }
            event => {
                if matches!(event, Event::AgentStart(_)) {
                    self.turn_index = 0;
                }
                let shown = event.clone();
                self.handled(async move { extensions.notify(kind, &shown).await }).await?;
                Ok(event)
            }
        }
    }

    /// Tells the handlers that everything is over. The session counts as idle for them; what they begin comes after the last of them.
    pub(super) async fn tell_extensions_settled(&mut self) {
        let Some(extensions) = self.context.extensions.clone() else { return };
        let aborted = self.is_cancelled();
        if self.ask(|told| RunMessage::Settling { told }).await.is_err() {
            return;
        }
        let event = json!({"type": "agent_settled", "aborted": aborted});
        let told = async move { extensions.notify(EventKind::AgentSettled, &event).await };
        let _ = self.handled(told).await;
    }

    /// Lets the actor take what handlers sent so far, before what the run sends from now on.
    pub(super) async fn take_from_extensions(&mut self) {
        if self.context.extensions.is_some() {
            self.send(RunMessage::ExtensionsAsked).await;
        }
    }

    /// Waits for handlers; once the run is to stop only for a while. `None` where they were given up.
    pub(super) async fn handled<T: Send>(
        &mut self,
        handlers: impl Future<Output = T> + Send,
    ) -> Result<Option<T>, HostError> {
        let cancel = self.channels.cancel.clone();
        let waiting = async move {
            tokio::select! {
                done = handlers => Some(done),
                () = async { cancel.cancelled().await; sleep(STOPPING).await } => None,
            }
        };
        serve_in_flight_queries(self, waiting, nothing_in_flight).await
    }

    /// The messages of a model call, as the handlers of `context` and `context_with_system` leave them.
    ///
    /// # Errors
    /// The session is gone.
    pub(super) async fn context_of_extensions(
        &mut self,
        messages: Vec<Json<Message>>,
    ) -> Result<Vec<Json<Message>>, HostError> {
        let Some(extensions) = self.context.extensions.clone() else { return Ok(messages) };
        let (context, with_system) =
            (extensions.listens(EventKind::Context), extensions.listens(EventKind::ContextWithSystem));
        if !context && !with_system {
            return Ok(messages);
        }
        let before = messages.clone();
        let asked = async move {
            let mut messages = messages;
            if context {
                let is_system = |message: &&Json<Message>| matches!(message.get(), Some(Message::System(_)));
                let without: Vec<Json<Message>> =
                    messages.iter().filter(|message| !is_system(message)).cloned().collect();
                if let Some(changed) = extensions.context(EventKind::Context, &without).await {
                    messages = system_message(&messages).into_iter().chain(changed).collect();
                }
            }
            if with_system
                && let Some(changed) = extensions.context(EventKind::ContextWithSystem, &messages).await
            {
                messages = changed;
            }
            messages
        };
        Ok(self.handled(asked).await?.unwrap_or(before))
    }
}

async fn message_end(extensions: SessionExtensions, end: MessageEnd) -> Option<Json<Message>> {
    let changed = extensions.message_end(&end.message).await?;
    // Another role is an error, and ignored.
    let before: Value = serde_json::from_str(end.message.text()).ok()?;
    if changed["role"] != before["role"] {
        return None;
    }
    carried(vec![changed]).next()
}

fn carried(messages: Vec<Value>) -> impl Iterator<Item = Json<Message>> {
    messages.into_iter().filter_map(|message| to_raw_value(&message).ok()).map(Json::from_raw)
}

/// The system messages of a transcript as one.
fn system_message(messages: &[Json<Message>]) -> Option<Json<Message>> {
    Json::new(Message::System(whole(messages, now_ms()))).ok()
}

/// A message that a handler of `before_agent_start` returned.
pub(super) fn custom_message(value: &Value) -> Option<Message> {
    let custom = json!({
        "role": "custom", "customType": value["customType"], "content": value["content"],
        "display": value["display"].as_bool().unwrap_or(false), "details": value.get("details"),
        "timestamp": now_ms(),
    });
    serde_json::from_value(custom).ok()
}
