//! What the session is doing, for clients that watch all sessions.
//!
//! Nothing is counted for this while nobody asks. A question is answered from the state of the session; only in the middle of an
//! answer the run is asked, too, as for a client that attaches.

use agentd_protocol::{
    Json,
    command::Work,
    daemon::{ActivityState, InFlight, RunningWork, SessionActivity},
    message::{AssistantMessage, ContentBlock, Message},
};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::session_actor::Actor;
use crate::run::{OpenCall, OpenParts};

/// The characters of a command that are told.
const SUBJECT_CHARS: usize = 200;

/// The bytes of an answer for each token, where the provider has not counted them.
const BYTES_PER_TOKEN: usize = 4;

/// The arguments that say most about a call, the most telling first.
const TELLING_ARGUMENTS: [&str; 6] = ["command", "path", "pattern", "url", "query", "code"];

impl Actor {
    /// Answers what the session is doing: at once, or in the middle of an answer when the run has told what it says so far.
    pub(super) fn tell_activity(&mut self, done: oneshot::Sender<SessionActivity>) {
        let activities = &mut self.joining.activities;
        // Those that were not answered in time have left.
        activities.retain(|waiting| !waiting.is_closed());
        activities.push(done);
        if !(self.open_events.snapshot().answer && self.run.ask()) {
            self.answer_activities(None);
        }
    }

    /// Answers everyone who waits for what the session is doing.
    pub(super) fn answer_activities(&mut self, in_flight: Option<&InFlight>) {
        if self.joining.activities.is_empty() {
            return;
        }
        let activity = self.activity(in_flight);
        for waiting in self.joining.activities.drain(..) {
            // The watcher may have left.
            let _ = waiting.send(activity.clone());
        }
    }

    fn activity(&mut self, in_flight: Option<&InFlight>) -> SessionActivity {
        let open = self.open_events.snapshot();
        let answer = in_flight.and_then(|shown| shown.message.as_ref()).and_then(streaming);
        let state = self.activity_state(&open, answer);
        let mut running: Vec<RunningWork> = open.calls.iter().map(running_call).collect();
        let commands = self.user_bash.running.iter();
        running.extend(commands.map(|command| running_command(&command.work, command.since_ms)));
        let choice = self.chooser.in_use();
        let stats = self.journal.stats(choice.model.context_window);
        SessionActivity {
            session_id: self.context.session_id.clone(),
            since_ms: since(state, &open, &running),
            state,
            provider: choice.model.provider.clone(),
            model_id: choice.model.id.clone(),
            thinking_level: choice.level,
            running,
            answer_tokens: answer.map(answer_tokens),
            tokens: stats.tokens.total,
            output_tokens: stats.tokens.output,
            cost: stats.cost,
            context_tokens: stats.context_usage.as_ref().and_then(|usage| usage.tokens),
            context_window: stats.context_usage.map(|usage| usage.context_window),
            commands: u32::try_from(self.context.processes.running()).unwrap_or(u32::MAX),
        }
    }

    fn activity_state(&self, open: &OpenParts, answer: Option<&AssistantMessage>) -> ActivityState {
        if !self.dialogs.is_empty() {
            return ActivityState::Asking;
        }
        if self.compacting.is_active() {
            return ActivityState::Compacting;
        }
        if self.run.is_pausing() {
            return ActivityState::Retrying;
        }
        if !open.calls.is_empty() {
            return ActivityState::Running;
        }
        match answer.map(|answer| answer.content.last()) {
            Some(Some(ContentBlock::Thinking { .. })) => ActivityState::Thinking,
            Some(Some(_)) => ActivityState::Answering,
            Some(None) => ActivityState::Waiting,
            None if self.run.is_active() => ActivityState::Waiting,
            None if self.user_bash.is_active() => ActivityState::Running,
            None => ActivityState::Idle,
        }
    }
}

/// The answer that streams.
fn streaming(message: &Json<Message>) -> Option<&AssistantMessage> {
    match message.get() {
        Some(Message::Assistant(answer)) => Some(answer),
        _ => None,
    }
}

/// When a state began, where that is known.
fn since(state: ActivityState, open: &OpenParts, running: &[RunningWork]) -> Option<i64> {
    match state {
        ActivityState::Idle | ActivityState::Compacting | ActivityState::Retrying => None,
        ActivityState::Waiting | ActivityState::Thinking | ActivityState::Answering => {
            Some(open.step_ms).filter(|ms| *ms > 0)
        }
        // A question about a call is asked once the call has begun.
        ActivityState::Running | ActivityState::Asking => {
            running.iter().filter_map(|work| work.since_ms).min()
        }
    }
}

fn running_call(call: &OpenCall) -> RunningWork {
    RunningWork {
        tool: call.start.tool_name.clone(),
        subject: call.start.args.get().and_then(telling_argument),
        since_ms: Some(call.since_ms),
    }
}

fn running_command(work: &Work, since_ms: i64) -> RunningWork {
    RunningWork {
        tool: "bash".into(),
        subject: work.name.as_deref().map(beginning),
        since_ms: Some(since_ms),
    }
}

fn telling_argument(args: &Map<String, Value>) -> Option<String> {
    let named = TELLING_ARGUMENTS.iter().find_map(|name| args.get(*name)?.as_str());
    named.map(beginning)
}

fn beginning(text: &str) -> String {
    text.chars().take(SUBJECT_CHARS).collect()
}

/// The tokens of an answer that streams: as counted by the provider, or by its length where that says more.
fn answer_tokens(answer: &AssistantMessage) -> u64 {
    let bytes: usize = answer.content.iter().map(block_bytes).sum();
    answer.usage.output.max((bytes / BYTES_PER_TOKEN) as u64)
}

fn block_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text, .. } => text.len(),
        ContentBlock::Thinking { thinking, .. } => thinking.len(),
        ContentBlock::Image(_) => 0,
        ContentBlock::ToolCall(call) => {
            call.name.len() + call.arguments.values().filter_map(Value::as_str).map(str::len).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_counted_or_estimated() {
        let mut answer = AssistantMessage::pending("a", "p", "m", 0);
        assert_eq!(answer_tokens(&answer), 0);
        answer.content.push(ContentBlock::text("x".repeat(40)));
        assert_eq!(answer_tokens(&answer), 10);
        answer.usage.output = 7;
        assert_eq!(answer_tokens(&answer), 10);
        answer.usage.output = 12;
        assert_eq!(answer_tokens(&answer), 12);
    }

    #[test]
    fn the_most_telling_argument_is_cut() {
        let subject = |args: Value| args.as_object().and_then(telling_argument);
        assert_eq!(subject(json!({"path": "a", "command": "ls"})).as_deref(), Some("ls"));
        assert_eq!(subject(json!({"path": "ä".repeat(300)})).map(|text| text.chars().count()), Some(200));
        assert_eq!(subject(json!({"content": "long", "path": 7})), None);
    }

    #[test]
    fn a_state_begins_with_its_step_or_its_first_command() {
        let open = OpenParts { step_ms: 5, ..OpenParts::default() };
        let work = |since_ms| RunningWork { tool: "bash".into(), subject: None, since_ms };
        let running = [work(None), work(Some(9)), work(Some(7))];
        for (state, expected) in [
            (ActivityState::Idle, None),
            (ActivityState::Waiting, Some(5)),
            (ActivityState::Answering, Some(5)),
            (ActivityState::Running, Some(7)),
            (ActivityState::Asking, Some(7)),
            (ActivityState::Retrying, None),
        ] {
            assert_eq!(since(state, &open, &running), expected, "{state:?}");
        }
        assert_eq!(since(ActivityState::Waiting, &OpenParts::default(), &[]), None);
    }
}
