//! What a run has told and not ended, for whoever has to end it in its place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentd_protocol::{
    event::{Event, MessageStart},
    message::Message,
};

/// Shared by the run that tells, and those who come after one that broke down.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Open>>);

/// What has begun and not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Open {
    /// A run is under way, told or not.
    pub(crate) active: bool,
    /// `agent_start` without `agent_end`.
    pub(crate) run: bool,
    /// `turn_start` without `turn_end`.
    pub(crate) turn: bool,
    /// `message_start` of an answer without `message_end`.
    pub(crate) answer: bool,
    /// Calls with `tool_execution_start` and without `tool_execution_end`.
    pub(crate) calls: Vec<String>,
    /// The entry of the run's first message.
    pub(crate) first: Option<String>,
}

impl Told {
    /// A run begins: nothing of it was told.
    pub(crate) fn begin(&self) {
        *self.lock() = Open { active: true, ..Open::default() };
    }

    /// The session has settled.
    pub(crate) fn end(&self) {
        *self.lock() = Open::default();
    }

    /// An event was told.
    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::AgentStart(_) => self.lock().run = true,
            Event::AgentEnd(_) => self.lock().run = false,
            Event::TurnStart(_) => self.lock().turn = true,
            Event::TurnEnd(_) => self.lock().turn = false,
            Event::MessageStart(MessageStart { message })
                if matches!(message.get(), Some(Message::Assistant(_))) =>
            {
                self.lock().answer = true;
            }
            Event::ToolExecutionStart(call) => self.lock().calls.push(call.tool_call_id.clone()),
            Event::ToolExecutionEnd(call) => self.lock().calls.retain(|id| *id != call.tool_call_id),
            _ => {}
        }
    }

    /// `message_end` was told, of a message that was stored as this entry.
    pub(crate) fn message_ended(&self, entry: &str) {
        let mut open = self.lock();
        open.answer = false;
        open.first.get_or_insert_with(|| entry.to_owned());
    }

    /// What is open.
    pub(crate) fn open(&self) -> Open {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // No change can stop half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{
        Json,
        event::{AgentEnd, AgentStart, ToolExecutionEnd, ToolExecutionStart, TurnEnd, TurnStart},
        message::AssistantMessage,
        tool::ToolResult,
    };

    use super::*;

    #[test]
    fn what_begins_is_open_until_it_ends() {
        let answer = Json::new(Message::Assistant(AssistantMessage::pending("a", "p", "m", 0))).unwrap();
        let call = |id: &str| -> Event {
            let args = Json::new(serde_json::Map::new()).unwrap();
            ToolExecutionStart { tool_call_id: id.into(), tool_name: "bash".into(), args }.into()
        };
        let told = Told::default();
        told.begin();
        told.event(&AgentStart {}.into());
        told.event(&TurnStart {}.into());
        told.message_ended("e1");
        told.event(&MessageStart { message: answer.clone() }.into());
        let open = Open {
            active: true,
            run: true,
            turn: true,
            answer: true,
            calls: vec![],
            first: Some("e1".into()),
        };
        assert_eq!(told.open(), open);
        told.message_ended("e2");
        told.event(&call("c1"));
        told.event(&call("c2"));
        let ended = ToolExecutionEnd {
            tool_call_id: "c1".into(),
            tool_name: "bash".into(),
            result: ToolResult::text(""),
            is_error: false,
            duration_ms: None,
        };
        told.event(&ended.into());
        assert_eq!(told.open(), Open { answer: false, calls: vec!["c2".into()], ..open });
        told.event(&TurnEnd { message: answer, tool_results: vec![] }.into());
        told.event(&AgentEnd { messages: vec![], will_retry: false }.into());
        assert!(!told.open().run && !told.open().turn);
        told.end();
        assert_eq!(told.open(), Open::default());
    }
}
