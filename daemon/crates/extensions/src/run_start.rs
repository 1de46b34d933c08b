//! What extensions say before a run begins: messages that they add, and another system prompt.

use serde_json::{Value, json};

use crate::{event::EventKind, extensions::SessionExtensions};

/// The message that a run begins with.
#[derive(Debug, Clone, Copy)]
pub enum StartingMessage<'a> {
    /// Of the user: its text and its images.
    User(&'a str, &'a [Value]),
    /// Of an extension.
    Custom(&'a Value),
}

/// What extensions add to a run that begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunAdditions {
    /// Messages, as `{customType, content, display, details?}`.
    pub messages: Vec<Value>,
    /// Other inputs of the system prompt.
    pub options: Option<Value>,
}

impl SessionExtensions {
    /// Asks what a run begins with besides its message. `options` are the inputs of the system prompt, of which `render` makes its text.
    pub async fn before_agent_start(
        &self,
        first: StartingMessage<'_>,
        options: &Value,
        render: impl Fn(&Value) -> String,
    ) -> RunAdditions {
        let mut additions = RunAdditions::default();
        let mut prompt = render(options);
        for handler in self.0.handlers(EventKind::BeforeAgentStart) {
            let mut event = json!({
                "type": "before_agent_start", "systemPrompt": prompt,
                "systemPromptOptions": additions.options.as_ref().unwrap_or(options),
            });
            match first {
                StartingMessage::User(text, images) => {
                    event["messageType"] = "user".into();
                    event["prompt"] = text.into();
                    if !images.is_empty() {
                        event["images"] = images.into();
                    }
                }
                StartingMessage::Custom(message) => {
                    event["messageType"] = "custom".into();
                    event["message"] = message.clone();
                }
            }
            let Some(returned) = self.0.asked(EventKind::BeforeAgentStart, handler, &event).await else {
                continue;
            };
            let edited = returned.event.and_then(|mut event| event.remove("systemPromptOptions"));
            let mut changed = edited.filter(Value::is_object);
            if let Some(Value::Object(mut value)) = returned.value {
                additions.messages.extend(value.remove("message").filter(|message| !message.is_null()));
                if let Some(text @ Value::String(_)) = value.remove("systemPrompt") {
                    let now = changed.take().or_else(|| additions.options.clone());
                    let mut now = now.unwrap_or_else(|| options.clone());
                    now["forceSystemPrompt"] = text;
                    changed = Some(now);
                }
            }
            if let Some(changed) = changed {
                prompt = render(&changed);
                additions.options = Some(changed);
            }
        }
        additions
    }
}
