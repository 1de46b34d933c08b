//! Events of a run that have begun and not ended, for the code that ends them when the run breaks down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentd_protocol::{
    event::{Event, MessageStart, ToolExecutionStart},
    message::Message,
};

use crate::clock::now_ms;

/// Shared by the run that tells, and those who come after one that broke down.
#[derive(Clone, Default)]
pub(crate) struct OpenEvents(Arc<Mutex<OpenParts>>);

/// Events that have begun and not ended.
#[derive(Debug, Clone, Default, PartialEq)]
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
    pub(crate) calls: Vec<OpenCall>,
    /// When the last answer or turn began: Unix time in milliseconds; 0 before the first.
    pub(crate) step_ms: i64,
    /// The entry of the run's first message.
    pub(crate) first: Option<String>,
}

/// A call that has begun and not ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenCall {
    /// Its `tool_execution_start`.
    pub(crate) start: ToolExecutionStart,
    /// When that was published: Unix time in milliseconds.
    pub(crate) since_ms: i64,
}

impl OpenCall {
    /// The id of the call.
    pub(crate) fn id(&self) -> &str {
        &self.start.tool_call_id
    }
}

impl OpenParts {
    /// Whether a call with that id is open.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.calls.iter().any(|call| call.id() == id)
    }

    /// A step of the run begins.
    fn step(&mut self) {
        self.step_ms = now_ms();
    }
}

impl OpenEvents {
    /// A run begins.
    pub(crate) fn begin(&self) {
        *self.lock() = OpenParts { active: true, step_ms: now_ms(), ..OpenParts::default() };
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
            Event::TurnStart(_) => {
                let mut open = self.lock();
                open.turn = true;
                open.step();
            }
            Event::TurnEnd(_) => self.lock().turn = false,
            Event::MessageStart(MessageStart { message })
                if matches!(message.get(), Some(Message::Assistant(_))) =>
            {
                let mut open = self.lock();
                open.answer = true;
                open.step();
            }
            Event::ToolExecutionStart(start) => {
                self.lock().calls.push(OpenCall { start: start.clone(), since_ms: now_ms() });
            }
            Event::ToolExecutionEnd(call) => {
                self.lock().calls.retain(|open| open.id() != call.tool_call_id);
            }
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
            ToolExecutionStart {
                tool_call_id: id.into(),
                tool_name: "bash".into(),
                args,
                parent_tool_call_id: None,
            }
            .into()
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
            step_ms: 0,
            first: Some("e1".into()),
        };
        // The clock is the system's.
        let snapshot = || OpenParts { step_ms: 0, ..open_events.snapshot() };
        assert!(open_events.snapshot().step_ms > 0);
        assert_eq!(snapshot(), open);
        open_events.message_ended("e2");
        open_events.event(&call("c1"));
        open_events.event(&call("c2"));
        let ended = ToolExecutionEnd {
            tool_call_id: "c1".into(),
            tool_name: "bash".into(),
            result: ToolResult::text(""),
            is_error: false,
            duration_ms: None,
            parent_tool_call_id: None,
        };
        open_events.event(&ended.into());
        let left = snapshot();
        assert_eq!(left.calls.iter().map(OpenCall::id).collect::<Vec<_>>(), ["c2"]);
        assert!(left.has_call("c2") && !left.has_call("c1") && left.calls[0].since_ms > 0);
        assert_eq!(left, OpenParts { answer: false, calls: left.calls.clone(), ..open });
        open_events.event(&TurnEnd { message: answer, tool_results: vec![] }.into());
        open_events.event(&AgentEnd { messages: vec![], will_retry: false }.into());
        assert!(!open_events.snapshot().run && !open_events.snapshot().turn);
        open_events.end();
        assert_eq!(open_events.snapshot(), OpenParts::default());
    }
}
