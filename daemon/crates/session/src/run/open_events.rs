//! Events of a run that have begun and not ended, for the code that ends them when the run breaks down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentd_protocol::{
    event::{Event, MessageStart},
    message::Message,
};

/// Shared by the run that tells, and those who come after one that broke down.
#[derive(Clone, Default)]
pub(crate) struct OpenEvents(Arc<Mutex<OpenParts>>);

/// Events that have begun and not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenParts {
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

impl OpenEvents {
    /// A run begins.
    pub(crate) fn begin(&self) {
        *self.lock() = OpenParts { active: true, ..OpenParts::default() };
    }

    /// The session has settled.
    pub(crate) fn end(&self) {
        *self.lock() = OpenParts::default();
    }

    /// Records an event that was published.
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

    /// The open parts.
    pub(crate) fn snapshot(&self) -> OpenParts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, OpenParts> {
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
        let open_events = OpenEvents::default();
        open_events.begin();
        open_events.event(&AgentStart {}.into());
        open_events.event(&TurnStart {}.into());
        open_events.message_ended("e1");
        open_events.event(&MessageStart { message: answer.clone() }.into());
        let open = OpenParts {
            active: true,
            run: true,
            turn: true,
            answer: true,
            calls: vec![],
            first: Some("e1".into()),
        };
        assert_eq!(open_events.snapshot(), open);
        open_events.message_ended("e2");
        open_events.event(&call("c1"));
        open_events.event(&call("c2"));
        let ended = ToolExecutionEnd {
            tool_call_id: "c1".into(),
            tool_name: "bash".into(),
            result: ToolResult::text(""),
            is_error: false,
            duration_ms: None,
        };
        open_events.event(&ended.into());
        assert_eq!(open_events.snapshot(), OpenParts { answer: false, calls: vec!["c2".into()], ..open });
        open_events.event(&TurnEnd { message: answer, tool_results: vec![] }.into());
        open_events.event(&AgentEnd { messages: vec![], will_retry: false }.into());
        assert!(!open_events.snapshot().run && !open_events.snapshot().turn);
        open_events.end();
        assert_eq!(open_events.snapshot(), OpenParts::default());
    }
}
