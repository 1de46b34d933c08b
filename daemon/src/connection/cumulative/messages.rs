//! Lists of messages without those of the system. What stays in a list stays byte for byte.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The role of a message; empty where there is none.
pub(super) fn role(message: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
    }
    serde_json::from_str::<Head<'_>>(message.get()).map(|head| head.role).unwrap_or_default()
}

/// Whether a message is one that old clients do not know.
pub(super) fn is_system(message: &RawValue) -> bool {
    role(message) == "system"
}

/// An `agent_end` without them.
pub(super) fn run_end(line: &str) -> Cow<'_, str> {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RunEnd<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
        will_retry: bool,
    }
    let Ok(mut event) = serde_json::from_str::<RunEnd<'_>>(line) else { return line.into() };
    event.messages.retain(|message| !is_system(message));
    serde_json::to_string(&event).map_or(line.into(), Cow::Owned)
}

/// The answer to `get_messages` without them; `None` for any other response.
pub(super) fn listed(line: &str) -> Option<String> {
    #[derive(Serialize, Deserialize)]
    struct Listed<'a> {
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        id: Option<&'a RawValue>,
        #[serde(rename = "type")]
        kind: &'a str,
        command: &'a str,
        success: bool,
        #[serde(borrow)]
        data: Messages<'a>,
    }
    #[derive(Serialize, Deserialize)]
    struct Messages<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    // Most responses are not read any further than this.
    if !line.contains("\"command\":\"get_messages\"") {
        return None;
    }
    let mut response = serde_json::from_str::<Listed<'_>>(line).ok()?;
    if response.command != "get_messages" {
        return None;
    }
    response.data.messages.retain(|message| !is_system(message));
    serde_json::to_string(&response).ok()
}
