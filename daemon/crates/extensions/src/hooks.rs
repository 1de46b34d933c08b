//! Asking the handlers of extensions, and putting together what they return. The rules are those of pi 1.5.2: handlers run one after the
//! other, in the order of their extensions and registrations; one that fails is told of and passed over, unless it decides about something.

use std::{sync::Arc, time::Duration};

use agentd_protocol::{message::ContentBlock, tool::ToolResult, usage::Usage};
use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    connection::{RequestError, RequestTerms},
    event::EventKind,
    extensions::SessionExtensions,
    registrations::HandlerRef,
    runtime::Runtime,
};

/// Time for a handler.
const HANDLER_WAIT: Duration = Duration::from_secs(60);

/// Time for a handler that decides whether something may happen.
pub(crate) const GATE_WAIT: Duration = Duration::from_secs(120);

/// What a handler returned.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Returned {
    #[serde(default)]
    pub(crate) value: Option<Value>,
    /// The parts of the event that it changed in place.
    #[serde(default)]
    pub(crate) event: Option<Map<String, Value>>,
    #[serde(default)]
    error: Option<HandlerError>,
}

#[derive(Debug, Deserialize)]
struct HandlerError {
    #[serde(default)]
    message: String,
}

/// Why a handler has no answer.
pub(crate) enum HandlerFailure {
    /// It threw.
    Threw(String),
    /// Its host is gone, or it took too long.
    Missing(RequestError),
}

/// What extensions say about a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCallVerdict {
    /// It may run, with these arguments if they are different.
    Run(Option<Value>),
    /// It must not run.
    Block {
        /// The reason for the model.
        reason: Option<String>,
        /// Whether the run may end after the batch.
        terminate: bool,
    },
}

/// What extensions make of a user's input.
#[derive(Debug, Clone, PartialEq)]
pub enum InputVerdict {
    /// It goes on, with another text and other images if they are given.
    Goes {
        /// Another text.
        text: Option<String>,
        /// Other images.
        images: Option<Vec<Value>>,
    },
    /// An extension took it.
    Handled,
}

impl SessionExtensions {
    /// Tells the handlers of an event. Returns when all have ended.
    pub async fn notify(&self, kind: EventKind, event: &impl Serialize) {
        let handlers = self.0.handlers(kind);
        if !handlers.is_empty() {
            self.0.notify_handlers(kind, &handlers, event).await;
        }
    }

    /// Tells the handlers of an event without waiting for them; what is told by [`Self::notify`] and asked later comes after it. Waits only
    /// while too many such events are not answered.
    ///
    /// Cancel safety: the event may not have been told.
    pub async fn notify_later(&self, kind: EventKind, event: Value) {
        let handlers = self.0.handlers(kind);
        if handlers.is_empty() {
            return;
        }
        let Ok(permit) = Arc::clone(self.0.later()).acquire_owned().await else { return };
        let inner = Arc::clone(&self.0);
        // The request is sent with the first poll, so that the order is kept.
        let mut told = Box::pin(async move {
            inner.notify_handlers(kind, &handlers, &event).await;
            drop(permit);
        });
        if futures::poll!(&mut told).is_pending() {
            self.0.spawn(told);
        }
    }

    /// Tells the handlers of an event that nobody waits for, after what was told before.
    pub fn notify_detached(&self, kind: EventKind, event: Value) {
        let handlers = self.0.handlers(kind);
        if handlers.is_empty() {
            return;
        }
        let inner = Arc::clone(&self.0);
        let mut told = Box::pin(async move { inner.notify_handlers(kind, &handlers, &event).await });
        // The request is sent with the first poll, so that the order is kept.
        if (&mut told).now_or_never().is_none() {
            self.0.spawn(told);
        }
    }

    /// Asks about a tool call. The first that blocks decides; one that throws, or does not answer, blocks.
    pub async fn tool_call(&self, name: &str, call_id: &str, arguments: &Value) -> ToolCallVerdict {
        let (mut input, mut is_changed) = (arguments.clone(), false);
        let blocked = |reason: Option<String>| ToolCallVerdict::Block { reason, terminate: false };
        if let Some(reason) = self.0.missing_gate(EventKind::ToolCall) {
            return blocked(Some(reason));
        }
        let parent = self.parent_of(call_id);
        for handler in self.0.handlers(EventKind::ToolCall) {
            let mut event = json!({
                "type": "tool_call", "toolName": name, "toolCallId": call_id, "input": input,
            });
            if let Some(parent) = &parent {
                event["parentToolCallId"] = parent.as_str().into();
            }
            let returned = match self.0.ask(handler, &event, GATE_WAIT).await {
                Ok(returned) => returned,
                Err(HandlerFailure::Threw(message)) => return blocked(Some(message)),
                Err(HandlerFailure::Missing(error)) => {
                    let path = self.0.path(handler.extension);
                    let text = match &error {
                        RequestError::Late => format!("Extension \"{path}\" did not answer in time"),
                        _ if self.0.runs_when_down() => continue,
                        error => self.0.explain(error, name),
                    };
                    self.0.failed(path.to_owned(), "tool_call", text.clone());
                    return blocked(Some(text));
                }
            };
            if let Some(changed) = returned.event.and_then(|mut event| event.remove("input")) {
                (input, is_changed) = (changed, true);
            }
            let value = returned.value.unwrap_or_default();
            if value["block"] == true {
                let reason = value["reason"].as_str().map(str::to_owned);
                return ToolCallVerdict::Block { reason, terminate: value["terminate"] == true };
            }
        }
        ToolCallVerdict::Run(is_changed.then_some(input))
    }

    /// Passes the result of a tool call through the handlers.
    pub async fn tool_result(
        &self,
        (name, call_id, arguments): (&str, &str, &Value),
        mut result: ToolResult,
        mut failed: bool,
    ) -> (ToolResult, bool) {
        let parent = self.parent_of(call_id);
        for handler in self.0.handlers(EventKind::ToolResult) {
            let event = ToolResultEvent {
                parent_tool_call_id: parent.as_deref(),
                usage: result.usage.as_ref(),
                kind: "tool_result",
                tool_name: name,
                tool_call_id: call_id,
                input: arguments,
                content: &result.content,
                details: result.details.as_ref(),
                structured_content: result.structured_content.as_ref(),
                is_error: failed,
            };
            let Some(returned) = self.0.asked(EventKind::ToolResult, handler, &event).await else { continue };
            // What it changed in place, and what it returned over that.
            let mut value = returned.event.unwrap_or_default();
            if let Some(Value::Object(returned)) = returned.value {
                value.extend(returned);
            }
            if let Some(content) = value.remove("content") {
                match serde_json::from_value::<Vec<ContentBlock>>(content) {
                    Ok(content) => {
                        result.content = content;
                        if !value.contains_key("structuredContent") {
                            result.structured_content = None;
                        }
                    }
                    Err(error) => self.0.invalid(EventKind::ToolResult, handler, &error),
                }
            }
            if let Some(details) = value.remove("details") {
                result.details = Some(details);
            }
            if let Some(structured) = value.remove("structuredContent") {
                result.structured_content = Some(structured);
            }
            if let Some(usage) = value.remove("usage") {
                match serde_json::from_value(usage) {
                    Ok(usage) => result.usage = usage,
                    Err(error) => self.0.invalid(EventKind::ToolResult, handler, &error),
                }
            }
            if let Some(is_error) = value.remove("isError").and_then(|it| it.as_bool()) {
                failed = is_error;
            }
        }
        (result, failed)
    }

    /// Passes a user's input through the handlers. `streaming`: `steer` or `followUp` while a run is active.
    pub async fn input(
        &self,
        text: &str,
        images: &[Value],
        source: &str,
        streaming: Option<&str>,
    ) -> InputVerdict {
        let (mut now, mut images_now) = (None::<String>, None::<Vec<Value>>);
        for handler in self.0.handlers(EventKind::Input) {
            let mut event = json!({
                "type": "input", "text": now.as_deref().unwrap_or(text), "source": source,
            });
            let shown = images_now.as_deref().unwrap_or(images);
            if !shown.is_empty() {
                event["images"] = shown.into();
            }
            if let Some(streaming) = streaming {
                event["streamingBehavior"] = streaming.into();
            }
            let Some(value) = self.0.asked(EventKind::Input, handler, &event).await.and_then(|it| it.value)
            else {
                continue;
            };
            match value["action"].as_str() {
                Some("handled") => return InputVerdict::Handled,
                Some("transform") => {
                    now = value["text"].as_str().map(str::to_owned).or(now);
                    images_now = value["images"].as_array().cloned().or(images_now);
                }
                _ => {}
            }
        }
        InputVerdict::Goes { text: now, images: images_now }
    }

    /// Passes a message that has ended through the handlers; `None` where it stays as it is.
    pub async fn message_end(&self, message: &impl Serialize) -> Option<Value> {
        #[derive(Serialize)]
        struct Event<'a, T> {
            #[serde(rename = "type")]
            kind: &'static str,
            message: &'a T,
        }
        let mut changed: Option<Value> = None;
        for handler in self.0.handlers(EventKind::MessageEnd) {
            let kind = "message_end";
            let returned = match &changed {
                Some(message) => self.0.asked(EventKind::MessageEnd, handler, &Event { kind, message }).await,
                None => self.0.asked(EventKind::MessageEnd, handler, &Event { kind, message }).await,
            };
            let Some(Value::Object(mut value)) = returned.and_then(|it| it.value) else { continue };
            if let Some(message) = value.remove("message").filter(|message| !message.is_null()) {
                changed = Some(message);
            }
        }
        changed
    }

    /// Asks whether something of the session may happen (`session_before_*`): the first that cancels decides, else the last result counts.
    pub async fn before(&self, kind: EventKind, event: &impl Serialize) -> Option<Map<String, Value>> {
        let mut last = None;
        for handler in self.0.handlers(kind) {
            let returned = self.0.asked(kind, handler, event).await;
            let Some(Value::Object(value)) = returned.and_then(|it| it.value) else { continue };
            let cancels = value.get("cancel") == Some(&Value::Bool(true));
            last = Some(value);
            if cancels {
                break;
            }
        }
        last
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResultEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    tool_name: &'a str,
    tool_call_id: &'a str,
    input: &'a Value,
    content: &'a [ContentBlock],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Value>,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<&'a str>,
}

impl Runtime {
    /// Asks one handler.
    pub(crate) async fn ask(
        &self,
        handler: HandlerRef,
        event: &impl Serialize,
        limit: Duration,
    ) -> Result<Returned, HandlerFailure> {
        let returned = self.ask_all(&[handler], event, limit).await.map_err(HandlerFailure::Missing)?;
        let returned = returned.into_iter().next().unwrap_or_default();
        match returned.error {
            Some(error) => Err(HandlerFailure::Threw(error.message)),
            None => Ok(returned),
        }
    }

    /// The same for a handler that only changes things: a failure is told, and nothing changes.
    pub(crate) async fn asked(
        &self,
        kind: EventKind,
        handler: HandlerRef,
        event: &impl Serialize,
    ) -> Option<Returned> {
        match self.ask(handler, event, HANDLER_WAIT).await {
            Ok(returned) => Some(returned),
            Err(failure) => {
                self.tell_failure(kind.name(), handler, failure);
                None
            }
        }
    }

    fn tell_failure(&self, event: &str, handler: HandlerRef, failure: HandlerFailure) {
        let text = self.failure_text(event, handler, failure);
        self.failed(self.path(handler.extension).to_owned(), event, text);
    }

    /// The failure of a handler in words.
    pub(crate) fn failure_text(&self, event: &str, handler: HandlerRef, failure: HandlerFailure) -> String {
        match failure {
            HandlerFailure::Threw(message) => message,
            HandlerFailure::Missing(RequestError::Late) => {
                format!("Extension \"{}\" did not answer in time", self.path(handler.extension))
            }
            HandlerFailure::Missing(error) => self.explain(&error, event),
        }
    }

    /// An extension returned something that cannot be used.
    fn invalid(&self, kind: EventKind, handler: HandlerRef, error: &serde_json::Error) {
        self.failed(
            self.path(handler.extension).to_owned(),
            kind.name(),
            format!("its result cannot be used: {error}"),
        );
    }

    /// Asks handlers of one host, one after the other.
    async fn ask_all(
        &self,
        handlers: &[HandlerRef],
        event: &impl Serialize,
        limit: Duration,
    ) -> Result<Vec<Returned>, RequestError> {
        #[derive(Serialize)]
        struct Hook<'a, T> {
            epoch: u64,
            handlers: Vec<u64>,
            event: &'a T,
        }
        #[derive(Deserialize)]
        struct Answer {
            returns: Vec<Returned>,
        }
        let Some(first) = handlers.first() else { return Ok(Vec::new()) };
        let epoch = self.epoch_of(first.extension);
        let hook = Hook { epoch, handlers: handlers.iter().map(|it| it.h).collect(), event };
        let terms = RequestTerms { limit: Some(limit), ..RequestTerms::default() };
        let answer = self.host_of(first.extension).request("hook", &hook, terms).await?;
        serde_json::from_str(answer.get()).map(|Answer { returns }| returns).map_err(|error| {
            RequestError::Failed(crate::record::HostFailure::new("invalid", error.to_string()))
        })
    }

    /// Tells handlers of an event: those of one host that follow one another by one request.
    pub(crate) async fn notify_handlers(
        &self,
        kind: EventKind,
        handlers: &[HandlerRef],
        event: &impl Serialize,
    ) {
        let same_host =
            |a: &HandlerRef, b: &HandlerRef| self.placement(a.extension) == self.placement(b.extension);
        for group in handlers.chunk_by(same_host) {
            match self.ask_all(group, event, HANDLER_WAIT).await {
                Ok(returns) => {
                    for (handler, returned) in group.iter().zip(returns) {
                        if let Some(error) = returned.error {
                            self.tell_failure(kind.name(), *handler, HandlerFailure::Threw(error.message));
                        }
                    }
                }
                Err(error) => self.tell_failure(kind.name(), group[0], HandlerFailure::Missing(error)),
            }
        }
    }
}
