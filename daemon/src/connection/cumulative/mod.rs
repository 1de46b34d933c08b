//! What clients of the reference before 0.84 expect: each `message_update` carries the answer so far, twice, and nobody has
//! heard of system messages.
//!
//! A view of one connection on the finished lines: the session knows nothing of it, and nothing is kept for a connection
//! that did not ask for it. An update costs the copying of its answer's bytes.

mod answer;
mod arguments;
mod messages;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use agentd_protocol::{Json, message::Message};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::answer::{Answer, Update, assistant};

const UPDATE: &str = "{\"type\":\"message_update\",";
const START: &str = "{\"type\":\"message_start\",";
const END: &str = "{\"type\":\"message_end\",";
const RUN_END: &str = "{\"type\":\"agent_end\",";

/// The answers that stream, by session.
#[derive(Debug, Default)]
pub(super) struct Cumulative {
    answers: HashMap<Arc<str>, Answer>,
    /// The answer that is written; kept for its memory.
    text: String,
}

impl Cumulative {
    /// A session is followed from a place in the middle of this answer.
    pub(super) fn joined(&mut self, session: &Arc<str>, so_far: &Json<Message>) {
        let answer = assistant(so_far.text()).and_then(|message| Answer::of(&message));
        self.answers.extend(answer.map(|answer| (Arc::clone(session), answer)));
    }

    /// A session is followed no longer.
    pub(super) fn left(&mut self, session: &str) {
        self.answers.remove(session);
    }

    /// An event as the client is to see it; `None` for one that it is not to see.
    pub(super) fn event<'a>(&mut self, session: &Arc<str>, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Ok(text) = std::str::from_utf8(line) else { return Some(Cow::Borrowed(line)) };
        let shown = if text.starts_with(UPDATE) {
            Some(self.update(session, text))
        } else if text.starts_with(START) {
            self.start(session, text)
        } else if text.starts_with(END) {
            let message = message_of(text);
            if message.is_some_and(|message| messages::role(message) == "assistant") {
                self.answers.remove(session);
            }
            Some(text.into()).filter(|_| !message.is_some_and(messages::is_system))
        } else if text.starts_with(RUN_END) {
            Some(messages::run_end(text))
        } else {
            Some(text.into())
        };
        Some(match shown? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
    }

    /// A response as the client is to see it.
    pub(super) fn response<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        match std::str::from_utf8(line).ok().and_then(messages::listed) {
            Some(text) => Cow::Owned(text.into_bytes()),
            None => Cow::Borrowed(line),
        }
    }

    fn start<'a>(&mut self, session: &Arc<str>, text: &'a str) -> Option<Cow<'a, str>> {
        /// What an answer that is yet to come says, here and in the reference.
        const PENDING: &str = "\"stopReason\":\"pending\"";
        let Some(message) = message_of(text) else { return Some(text.into()) };
        if messages::is_system(message) {
            return None;
        }
        let Some(frame) = assistant(message.get()) else { return Some(text.into()) };
        let is_pending = frame.content.is_empty() && text.contains(PENDING);
        self.answers.extend(Answer::of(&frame).map(|answer| (Arc::clone(session), answer)));
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
