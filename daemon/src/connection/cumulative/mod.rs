//! The lines that clients of pi before 0.84 expect: each `message_update` carries the answer so far, twice, and there are no system
//! messages.
//!
//! It is a view of one connection on the finished lines: the session knows nothing of it, and a connection that did not ask for it
//! keeps no state. An update costs a copy of its answer's bytes.

mod answer;
mod arguments;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use agentd_protocol::{Json, message::Message};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::answer::{StreamedAnswer, Update, assistant};

const UPDATE: &str = "{\"type\":\"message_update\",";
const START: &str = "{\"type\":\"message_start\",";
const END: &str = "{\"type\":\"message_end\",";
const RUN_END: &str = "{\"type\":\"agent_end\",";

/// The answers that are streaming, by session.
#[derive(Debug, Default)]
pub(super) struct CumulativeView {
    answers: HashMap<Arc<str>, StreamedAnswer>,
    /// A buffer for the answer that is being written, reused.
    text: String,
}

impl CumulativeView {
    /// Starts in the middle of an answer of a session.
    pub(super) fn joined(&mut self, session: &Arc<str>, so_far: &Json<Message>) {
        let answer = assistant(so_far.text()).and_then(|message| StreamedAnswer::of(&message));
        self.answers.extend(answer.map(|answer| (Arc::clone(session), answer)));
    }

    /// Forgets a session that is followed no longer.
    pub(super) fn left(&mut self, session: &str) {
        self.answers.remove(session);
    }

    /// Converts an event; `None` for one that the client does not get.
    pub(super) fn event<'a>(&mut self, session: &Arc<str>, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Ok(text) = std::str::from_utf8(line) else { return Some(Cow::Borrowed(line)) };
        let shown = if text.starts_with(UPDATE) {
            Some(self.update(session, text))
        } else if text.starts_with(START) {
            self.start(session, text)
        } else if text.starts_with(END) {
            let message = message_of(text);
            if message.is_some_and(|message| role(message) == "assistant") {
                self.answers.remove(session);
            }
            Some(text.into()).filter(|_| !message.is_some_and(is_system))
        } else if text.starts_with(RUN_END) {
            Some(run_end(text))
        } else {
            Some(text.into())
        };
        Some(match shown? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
    }

    /// Converts a response.
    pub(super) fn response<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        match std::str::from_utf8(line).ok().and_then(without_system_messages) {
            Some(text) => Cow::Owned(text.into_bytes()),
            None => Cow::Borrowed(line),
        }
    }

    fn start<'a>(&mut self, session: &Arc<str>, text: &'a str) -> Option<Cow<'a, str>> {
        /// The stop reason of an answer that has just begun, here and in pi.
        const PENDING: &str = "\"stopReason\":\"pending\"";
        let Some(message) = message_of(text) else { return Some(text.into()) };
        if is_system(message) {
            return None;
        }
        let Some(frame) = assistant(message.get()) else { return Some(text.into()) };
        let is_pending = frame.content.is_empty() && text.contains(PENDING);
        self.answers.extend(StreamedAnswer::of(&frame).map(|answer| (Arc::clone(session), answer)));
        Some(if is_pending {
            text.replacen(PENDING, "\"stopReason\":\"stop\"", 1).into()
        } else {
            text.into()
        })
    }

    fn update<'a>(&mut self, session: &str, text: &'a str) -> Cow<'a, str> {
        let Some(answer) = self.answers.get_mut(session) else { return text.into() };
        let (Some(rest), Ok(update)) = (text.strip_prefix(UPDATE), serde_json::from_str::<Update<'_>>(text))
        else {
            return text.into();
        };
        let Some(rest) = rest.strip_suffix("}}").filter(|_| answer.add(&update)) else { return text.into() };
        self.text.clear();
        answer.write(&mut self.text);
        let so_far = &self.text;
        let mut line = String::with_capacity(text.len() + 2 * so_far.len() + 24);
        for part in [UPDATE, "\"message\":", so_far, ",", rest, ",\"partial\":", so_far, "}}"] {
            line.push_str(part);
        }
        line.into()
    }
}

/// The message of an event.
fn message_of(text: &str) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    serde_json::from_str::<Event<'_>>(text).ok().map(|event| event.message)
}

/// The role of a message; empty where there is none.
fn role(message: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
    }
    serde_json::from_str::<Head<'_>>(message.get()).map(|head| head.role).unwrap_or_default()
}

/// Whether old clients do not know this kind of message.
fn is_system(message: &RawValue) -> bool {
    role(message) == "system"
}

/// An `agent_end` without system messages. The other messages stay byte for byte.
fn run_end(line: &str) -> Cow<'_, str> {
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

/// The answer to `get_messages` without system messages; `None` for any other response.
fn without_system_messages(line: &str) -> Option<String> {
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
    // A cheap test that spares most responses the parsing.
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
