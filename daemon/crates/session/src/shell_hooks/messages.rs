//! What hooks add to a session, as messages that clients do not show, and how messages of the user pass them.

use agentd_hooks::{HookEvent, HookOutcome, NamedText};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    message::{CustomMessage, MessageContent},
};
use serde_json::json;

use crate::{clock::now_ms, requests::PendingRequest, server_prompts::MessageCommand};

/// The `customType` of the messages.
const MESSAGE_TYPE: &str = "agentd.hook";

/// A message of the user that hooks have seen.
pub(crate) struct JudgedPrompt {
    pub(crate) command: MessageCommand,
    pub(crate) request: PendingRequest,
    /// `None` where they were given up.
    pub(crate) outcome: Option<HookOutcome>,
}

/// What hooks tell the model; `None` where they tell nothing.
pub(crate) fn context_message(event: HookEvent, contexts: &[NamedText]) -> Option<CustomMessage> {
    if contexts.is_empty() {
        return None;
    }
    let texts: Vec<&str> = contexts.iter().map(|context| context.text.as_str()).collect();
    let hooks: Vec<&str> = contexts.iter().map(|context| context.hook.as_str()).collect();
    Some(message(texts.join("\n\n"), json!({ "event": event.name(), "hooks": hooks })))
}

/// Why the model goes on though it was done.
pub(crate) fn stop_message(reason: &str) -> CustomMessage {
    let text = format!("A check found that the work is not done yet:\n{reason}");
    message(text, json!({ "event": HookEvent::Stop.name() }))
}

fn message(text: String, details: serde_json::Value) -> CustomMessage {
    CustomMessage {
        custom_type: MESSAGE_TYPE.to_owned(),
        content: MessageContent::Text(text),
        display: false,
        details: Some(details),
        timestamp: now_ms(),
    }
}

/// The failure of a message that a hook does not let pass.
pub(crate) fn prompt_refused(reason: &str) -> Failure {
    let hint = "A UserPromptSubmit hook of this session decides about messages; see docs/hooks.md.";
    Failure::new(ErrorCode::ModelRefused, format!("A hook refused the message: {reason}")).hint(hint)
}
