//! Reads an intent log.

use std::collections::{BTreeMap, HashMap};

use agentd_protocol::{
    Json,
    message::{ContentBlock, Message},
};

use super::{
    AskRecord, BashRecord, DeliveredRecord, IntentRecord, NamedCall, QueuedRecord, REQUEST_KEY_FIELD,
    RunRecord, Streamed,
};
use crate::{Entry, EntryKind, Role, SessionTree, fork::user_text};

/// The work that was under way when the intent log was last written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnfinishedWork {
    /// The run, if there was one.
    pub run: Option<RunRecord>,
    /// The last model call that began. The session file knows whether it was answered.
    pub answer: Option<StreamedAnswer>,
    /// The tool calls that began last. Which of them have results, the session file says, too.
    pub calls: Option<MadeCalls>,
    /// Commands of the user's that may lack their entries, in the order in which they began.
    pub commands: Vec<UserCommand>,
    /// Messages that may wait in queues, in the order in which they came. Which of them do, [`Self::waiting`] says.
    pub messages: Vec<WaitingMessage>,
}

/// A message that waits in a queue, or is an entry by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The record of its arrival.
    pub queued: QueuedRecord,
    /// The record of its delivery, if that was about to happen.
    pub delivered: Option<DeliveredRecord>,
}

/// A model call.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedAnswer {
    /// The record of the question.
    pub ask: AskRecord,
    /// The known part of the answer: text and reasoning.
    pub content: Vec<ContentBlock>,
}

/// Tool calls of one answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MadeCalls {
    /// The entry of the answer.
    pub entry: String,
    /// The calls that began.
    pub begun: Vec<NamedCall>,
    /// The calls that ended, by id, with their known results.
    pub done: HashMap<String, Option<Json<Message>>>,
}

/// A command of the user's.
#[derive(Debug, Clone, PartialEq)]
pub struct UserCommand {
    /// The record of its start.
    pub begun: BashRecord,
    /// True if the command came to its end.
    pub is_done: bool,
    /// The message to add to the session file.
    pub message: Option<Json<Message>>,
}

impl UnfinishedWork {
    /// Reads the text of an intent log. Lines that are no records count for nothing, wherever they stand.
    #[must_use]
    pub fn read(text: &[u8]) -> Self {
        let mut reading = Reading::default();
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(record) = std::str::from_utf8(line).ok().and_then(IntentRecord::parse) {
                reading.take(record);
            }
        }
        reading.end()
    }

    /// The messages that wait in queues: those without an entry in the session.
    #[must_use]
    pub fn waiting(&self, tree: &SessionTree) -> Vec<&QueuedRecord> {
        let is_entry = |message: &WaitingMessage| {
            let Some(delivered) = &message.delivered else { return false };
            // Notes on changed images may stand behind the text.
            let is_it = |entry: &Entry| {
                entry.kind() == EntryKind::Message(Role::User)
                    && entry.parent_id() == delivered.after.as_deref()
                    && entry.extra(REQUEST_KEY_FIELD) == message.queued.request_key
                    && user_text(entry).is_some_and(|text| text.starts_with(&message.queued.text))
            };
            tree.entries().iter().rev().any(is_it)
        };
        self.messages.iter().filter(|message| !is_entry(message)).map(|message| &message.queued).collect()
    }

    /// Returns whether no work was under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Default)]
struct Reading {
    run: Option<RunRecord>,
    ask: Option<AskRecord>,
    said: BTreeMap<usize, Streamed>,
    calls: Option<MadeCalls>,
    commands: BTreeMap<u64, UserCommand>,
    messages: BTreeMap<u64, WaitingMessage>,
}

impl Reading {
    fn take(&mut self, record: IntentRecord) {
        match record {
            IntentRecord::Run(run) => {
                self.settle();
                self.run = Some(run);
            }
            IntentRecord::Ask(ask) => {
                self.ask = Some(ask);
                self.said.clear();
            }
            IntentRecord::Said(said) => said.parts.into_iter().for_each(|part| self.say(part)),
            IntentRecord::Calls(record) => {
                let calls = self.calls_of(record.entry);
                calls.begun.extend(record.calls);
            }
            IntentRecord::Done(record) => {
                self.calls_of(record.entry).done.insert(record.call, record.message);
            }
            IntentRecord::Bash(begun) => {
                let command = UserCommand { begun, is_done: false, message: None };
                self.commands.insert(command.begun.number, command);
            }
            IntentRecord::BashDone(record) if record.stored => {
                self.commands.remove(&record.number);
            }
            IntentRecord::BashDone(record) => {
                if let Some(command) = self.commands.get_mut(&record.number) {
                    command.is_done = true;
                    command.message = record.message;
                }
            }
            IntentRecord::Settled => self.settle(),
            // Again: it was delivered, and the disk did not take its entry.
            IntentRecord::Queued(queued) => {
                self.messages.insert(queued.number, WaitingMessage { queued, delivered: None });
            }
            IntentRecord::Delivered(record) => {
                if let Some(message) = self.messages.get_mut(&record.number) {
                    message.delivered = Some(record);
                }
            }
            IntentRecord::Unqueued => self.messages.clear(),
        }
    }

    fn settle(&mut self) {
        (self.run, self.ask, self.calls) = (None, None, None);
        self.said.clear();
    }

    fn say(&mut self, part: Streamed) {
        let block = self.said.entry(part.block).or_default();
        for (all, more) in [(&mut block.text, part.text), (&mut block.thinking, part.thinking)] {
            if let Some(more) = more {
                all.get_or_insert_default().push_str(&more);
            }
        }
        block.signature = part.signature.or(block.signature.take());
        block.redacted = part.redacted.or(block.redacted);
    }

    /// The calls of an answer: there is one at a time.
    fn calls_of(&mut self, entry: String) -> &mut MadeCalls {
        let is_other = self.calls.as_ref().is_none_or(|calls| calls.entry != entry);
        if is_other {
            self.calls = None;
        }
        self.calls.get_or_insert_with(|| MadeCalls { entry, ..MadeCalls::default() })
    }

    fn end(self) -> UnfinishedWork {
        let content = self.said.into_values().filter_map(content_block).collect();
        UnfinishedWork {
            run: self.run,
            answer: self.ask.map(|ask| StreamedAnswer { ask, content }),
            calls: self.calls,
            commands: self.commands.into_values().collect(),
            messages: self.messages.into_values().collect(),
        }
    }
}

/// A block as far as it came.
fn content_block(block: Streamed) -> Option<ContentBlock> {
    let Streamed { text, thinking, signature, redacted, .. } = block;
    match (thinking, text) {
        (Some(thinking), _) => {
            Some(ContentBlock::Thinking { thinking, thinking_signature: signature, redacted })
        }
        (None, Some(text)) => Some(ContentBlock::Text { text, text_signature: signature }),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;
