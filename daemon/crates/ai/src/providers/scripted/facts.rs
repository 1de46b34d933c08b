//! The facts of a request that scripts and the demo use.

use agentd_protocol::message::{Message, StopReason, ToolCall, ToolResultMessage};

use crate::{Request, SystemState, handoff, system_state};

/// The facts of one request.
pub(super) struct Facts<'a> {
    /// All readable messages, as the daemon sent them.
    pub(super) messages: Vec<&'a Message>,
    /// The system prompt and the tools.
    pub(super) system: SystemState,
    /// The index of the last prompt.
    last_prompt: Option<usize>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        let messages = handoff::readable(&request.messages);
        let last_prompt = messages.iter().rposition(|message| matches!(message, Message::User(_)));
        Self { system: system_state(&request.messages), messages, last_prompt }
    }

    /// The text of the last prompt.
    pub(super) fn prompt(&self) -> String {
        match self.last_prompt.map(|index| self.messages[index]) {
            Some(Message::User(user)) => user.content.text(),
            _ => String::new(),
        }
    }

    /// The names of the tools, in order.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.system.tools.iter().map(|tool| tool.name.as_str())
    }

    pub(super) fn offers(&self, name: &str) -> bool {
        self.tool_names().any(|tool| tool == name)
    }

    /// The number of answers in the whole transcript that did not fail.
    pub(super) fn answers(&self) -> usize {
        let good = |message: &&&Message| match message {
            Message::Assistant(answer) => {
                !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
            }
            _ => false,
        };
        self.messages.iter().filter(good).count()
    }

    /// Tool calls in the whole transcript.
    pub(super) fn calls(&self) -> impl Iterator<Item = &'a ToolCall> + '_ {
        self.messages.iter().flat_map(|message| match message {
            Message::Assistant(answer) => answer.tool_calls().collect(),
            _ => Vec::new(),
        })
    }

    /// Tool results since the last prompt, oldest first.
    pub(super) fn results(&self) -> impl Iterator<Item = &'a ToolResultMessage> + '_ {
        let start = self.last_prompt.map_or(0, |index| index + 1);
        self.messages[start..].iter().filter_map(|message| match message {
            Message::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// The call of a result: the last one with that id.
    pub(super) fn call_of(&self, result: &ToolResultMessage) -> Option<&'a ToolCall> {
        self.calls().filter(|call| call.id == result.tool_call_id).last()
    }
}

/// The text of a result.
pub(super) fn result_text(result: &ToolResultMessage) -> String {
    let texts = result.content.iter().filter_map(agentd_protocol::message::ContentBlock::as_text);
    texts.collect::<Vec<_>>().join("\n")
}
