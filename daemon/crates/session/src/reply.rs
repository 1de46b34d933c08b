//! Answers to commands, put into the feed so that they keep their place among the events.

use std::cell::Cell;

use agentd_auth::scrub_failure;
use agentd_config::Environment;
use agentd_memory::MemoryReservation;
use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::Event,
    frame::Response,
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::{
    event_log::{Feed, LongContent, LongReply, SubscriberId},
    prompt_results::ResultListener,
};

/// Where the answer to one command goes. Every command is answered exactly once.
#[derive(Debug)]
pub struct Reply {
    /// The subscriber that sent the command.
    pub subscriber: SubscriberId,
    /// The command's `id`.
    pub id: Option<Value>,
    /// The command's `type`.
    pub command: &'static str,
    /// The environment of processes that the command starts; `None` where the client has none of its own.
    pub environment: Option<Environment>,
    /// The command is the user's, and not of a program that a session has started, of an extension or of another agent.
    pub is_of_user: bool,
    /// Whether the client hears how its prompts end.
    pub hears_results: bool,
    /// The memory of a large command, reserved until it is answered.
    pub memory: Option<MemoryReservation>,
}

impl Reply {
    /// A reply without an environment of the client's, to a small command that is no prompt.
    #[must_use]
    pub fn plain(subscriber: SubscriberId, id: Option<Value>, command: &'static str) -> Self {
        Self {
            subscriber,
            id,
            command,
            environment: None,
            is_of_user: false,
            hears_results: false,
            memory: None,
        }
    }

    /// Whom to tell of the end of the prompt that this command is, if its client wants to hear of that.
    pub(crate) fn result_listener(&self) -> Option<ResultListener> {
        let is_prompt = matches!(self.command, "prompt" | "abort_and_prompt" | "continue");
        (self.hears_results && is_prompt)
            .then(|| ResultListener { subscriber: self.subscriber, id: self.id.clone() })
    }

    /// The command was done, and answers with `data`.
    pub(crate) fn data<T: Serialize>(self, feed: &Feed, data: T) {
        let line = encode_response(&Response::done(self.id.clone(), self.command, Some(data)));
        match line {
            Ok(line) => feed.reply(self.subscriber, line),
            Err(error) => self.not_written(feed, &error),
        }
    }

    /// [`Self::data`] of an answer that is made when it is written.
    pub(crate) fn long(self, feed: &Feed, content: LongContent) {
        let response = Response::<()>::done(self.id.clone(), self.command, None);
        match encode_response(&response).and_then(|response| LongReply::new(&response, content)) {
            Ok(reply) => feed.reply_long(self.subscriber, reply),
            Err(error) => self.not_written(feed, &error),
        }
    }

    fn not_written(self, feed: &Feed, error: &serde_json::Error) {
        let text = format!("cannot write the answer to {}: {error}", self.command);
        self.fail(feed, Failure::new(ErrorCode::Internal, text));
    }

    /// The command was done, and has nothing to say.
    pub(crate) fn done(self, feed: &Feed) {
        let response = Response::<()>::done(self.id, self.command, None);
        feed.reply(self.subscriber, encode_sure(&response));
    }

    /// The command was not done.
    pub(crate) fn fail(self, feed: &Feed, failure: Failure) {
        let response = Response::<()>::failed(self.id, Some(self.command), scrub_failure(failure));
        feed.reply(self.subscriber, encode_sure(&response));
    }

    /// `data` or the failure.
    pub(crate) fn result<T: Serialize>(self, feed: &Feed, result: Result<T, Failure>) {
        match result {
            Ok(data) => self.data(feed, data),
            Err(failure) => self.fail(feed, failure),
        }
    }

    /// Done, or the failure.
    pub(crate) fn outcome(self, feed: &Feed, outcome: Result<(), Failure>) {
        match outcome {
            Ok(()) => self.done(feed),
            Err(failure) => self.fail(feed, failure),
        }
    }
}

/// The line of an event, without LF.
pub(crate) fn encode(event: &Event) -> Result<Bytes, serde_json::Error> {
    line_by(|line| event.write_line(line))
}

/// The line of an answer, without LF.
fn encode_response<T: Serialize>(response: &Response<T>) -> Result<Bytes, serde_json::Error> {
    line_by(|line| serde_json::to_writer(line, response))
}

/// The room for a line that a thread keeps, in bytes.
const KEPT_LINE_BYTES: usize = 16 << 10;

/// Lines are made in a vector of their thread, and copied once they are whole: what is kept for a while has the room that it needs, by one
/// allocation.
fn line_by<E>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Bytes, E> {
    thread_local! {
        static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut line = LINE.take();
    line.clear();
    write(&mut line)?;
    let made = Bytes::copy_from_slice(&line);
    if line.capacity() <= KEPT_LINE_BYTES {
        LINE.set(line);
    }
    Ok(made)
}

/// [`encode_response`] for values without parts that could fail: strings, numbers, booleans.
fn encode_sure(response: &Response<()>) -> Bytes {
    encode_response(response)
        .unwrap_or_else(|_| Bytes::from_static(br#"{"type":"response","success":false}"#))
}
