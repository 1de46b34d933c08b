//! What is typed while a session is followed.

use std::{
    collections::VecDeque,
    io::{self, BufRead},
};

use agentd_protocol::command::{NoParams, PromptParams, StreamingBehavior};
use tokio::sync::mpsc;

use crate::{
    commands::one_call,
    exit::{Fault, tell},
    rpc::{Client, GetState, Prompt},
};

/// Lines that wait to be sent.
const TYPED: usize = 16;

/// Own messages that are remembered until the session says them.
const REMEMBERED: usize = 64;

/// The lines of stdin, and which of the session's messages are ours.
pub(super) struct Typing {
    session: String,
    /// `None`: nobody types.
    lines: Option<mpsc::Receiver<String>>,
    sent: VecDeque<String>,
}

/// The lines of stdin, until its end. The thread that reads may wait there for ever.
pub(crate) fn typed_lines() -> mpsc::Receiver<String> {
    let (lines, receiver) = mpsc::channel(TYPED);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Typing {
    /// Nothing is read.
    pub(super) fn none() -> Self {
        Self { session: String::new(), lines: None, sent: VecDeque::new() }
    }

    /// Reads stdin line by line, until its end. The thread that reads may wait there for ever.
    pub(super) fn start(session: String) -> Self {
        Self { session, lines: Some(typed_lines()), sent: VecDeque::new() }
    }

    /// Whether somebody types.
    pub(super) fn is_there(&self) -> bool {
        self.lines.is_some()
    }

    /// The next line; `None` at the end. Where nobody types it waits for ever. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<String> {
        match &mut self.lines {
            Some(lines) => lines.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Sends a line: a prompt, or a word for the work that is under way.
    ///
    /// # Errors
    /// When the daemon does not answer any more. A refusal is only told.
    pub(super) async fn say(&mut self, client: &Client, message: String) -> Result<(), Fault> {
        let fault = |error| one_call::fault(&error);
        let state = client.call_in::<GetState>(&self.session, &NoParams {}).await.map_err(fault)?;
        let streaming_behavior = state.is_streaming.then_some(StreamingBehavior::Steer);
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(message.clone());
        let params = PromptParams { message, streaming_behavior, ..PromptParams::default() };
        if let Err(error) = client.call_in::<Prompt>(&self.session, &params).await {
            self.sent.pop_back();
            tell(&one_call::fault(&error).message);
        }
        Ok(())
    }

    /// Whether a message of the session is one that was typed here. Each counts once.
    pub(super) fn is_ours(&mut self, message: &str) -> bool {
        let place = self.sent.iter().position(|sent| sent == message);
        place.is_some_and(|place| self.sent.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_messages_count_once() {
        let mut typing = Typing::none();
        typing.sent.extend(["a".to_owned(), "b".to_owned()]);
        assert!(!typing.is_ours("c"));
        assert!(typing.is_ours("b") && !typing.is_ours("b") && typing.is_ours("a"));
    }
}
