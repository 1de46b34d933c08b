//! What a subagent has done so far: its session writes it, those who wait for it read it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use agentd_agent::{
    ToolSet,
    observer::{CallPurpose, ModelCall, SessionObserver},
};
use agentd_ai::failure::Failure;
use agentd_protocol::{
    error::ErrorCode,
    event::Event,
    message::{AssistantMessage, ContentBlock, StopReason, Usage},
    subagent::{SubagentProgress, SubagentToolCall, YIELD_TOOL},
    text_bounds,
};
use tokio::sync::watch;

use super::handed_in::HandedIn;
use crate::clock::unix_ms;

/// The calls and lines that clients are shown.
const RECENT: usize = 5;

/// The longest beginning of arguments, and of a line, in bytes.
const LINE: usize = 200;

/// The state of one subagent. It outlives the stay of its session in memory.
pub(crate) struct ChildState {
    work: Mutex<Work>,
    /// What its tool `yield` was called with.
    pub(crate) handed_in: HandedIn,
    /// Whether its model is made to call that tool.
    is_forced: AtomicBool,
    /// Counts changes.
    changed: watch::Sender<u64>,
}

/// Its work so far.
#[derive(Default)]
struct Work {
    begun: Option<Instant>,
    requests: u64,
    tool_calls: u64,
    usage: Usage,
    last_tool: Option<String>,
    /// The text of its last answer.
    last_text: String,
    /// How its last answer ended.
    last_stop: Option<StopReason>,
    last_error: Option<String>,
    model: Option<String>,
    /// The tool whose result ended its run.
    ended_by: Option<String>,
    /// The calls that run.
    open_calls: Vec<OpenCall>,
    /// Those that ended last, the newest first.
    recent_calls: VecDeque<SubagentToolCall>,
}

/// A tool call that runs.
struct OpenCall {
    id: String,
    tool: String,
    /// The beginning of its arguments.
    args: String,
}

/// What clients are shown of the calls and words of a subagent.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RecentWork {
    /// The tool of the call that began last of those that run, and the beginning of its arguments.
    pub(crate) current: Option<(String, String)>,
    /// The calls that ended last, the newest first.
    pub(crate) calls: Vec<SubagentToolCall>,
    /// The last lines that it said.
    pub(crate) output: Vec<String>,
}

/// How the last answer of a subagent ended.
pub(crate) struct LastAnswer {
    pub(crate) text: String,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) error: Option<String>,
    /// The tool, other than `yield`, whose result ended the run after it: a hook or the tool said so.
    pub(crate) ended_by: Option<String>,
}

impl ChildState {
    pub(crate) fn new(handed_in: HandedIn) -> Arc<Self> {
        Arc::new(Self {
            work: Mutex::default(),
            handed_in,
            is_forced: AtomicBool::new(false),
            changed: watch::Sender::new(0),
        })
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        // Single assignments and sums.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has ended and goes on: what it does from here on is counted anew.
    pub(crate) fn restart(&self) {
        *self.work() = Work::default();
        self.force_yield(false);
        self.handed_in.restart();
    }

    /// Whether its model is made to hand in its result, from its next request on.
    pub(crate) fn force_yield(&self, is_forced: bool) {
        self.is_forced.store(is_forced, Ordering::Relaxed);
    }

    /// The tool that its model has to call, if it has that tool.
    pub(crate) fn forced_tool(&self, tools: &ToolSet) -> Option<String> {
        let is_forced = self.is_forced.load(Ordering::Relaxed) && tools.get(YIELD_TOOL).is_some();
        is_forced.then(|| YIELD_TOOL.to_owned())
    }

    /// Its time begins.
    pub(crate) fn begin(&self) {
        self.work().begun.get_or_insert_with(Instant::now);
    }

    /// A receiver of the number of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn progress(&self) -> SubagentProgress {
        let work = self.work();
        SubagentProgress {
            requests: work.requests,
            tool_calls: work.tool_calls,
            tokens: work.usage.total_tokens,
            cost: work.usage.cost.total,
            last_tool: work.last_tool.clone(),
            duration_ms: work
                .begun
                .map_or(0, |begun| u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// What it does now, and what it did last.
    pub(crate) fn recent(&self) -> RecentWork {
        let work = self.work();
        let mut output: Vec<String> = work
            .last_text
            .lines()
            .rev()
            .filter(|line| !line.trim().is_empty())
            .take(RECENT)
            .map(|line| text_bounds::head(line, LINE).to_owned())
            .collect();
        output.reverse();
        RecentWork {
            current: work.open_calls.last().map(|call| (call.tool.clone(), call.args.clone())),
            calls: work.recent_calls.iter().cloned().collect(),
            output,
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.work().usage.clone()
    }

    /// The model of its last answer, as `provider/id`.
    pub(crate) fn model(&self) -> Option<String> {
        self.work().model.clone()
    }

    pub(crate) fn last_answer(&self) -> LastAnswer {
        let work = self.work();
        LastAnswer {
            text: work.last_text.clone(),
            stop_reason: work.last_stop,
            error: work.last_error.clone(),
            ended_by: work.ended_by.clone(),
        }
    }

    /// Adds what subagents of its own took.
    pub(crate) fn add_usage(&self, usage: &Usage) {
        self.work().usage.add(usage);
    }

    fn see(&self, event: &Event) {
        if let Event::ToolExecutionStart(started) = event {
            let mut work = self.work();
            work.tool_calls += 1;
            work.last_tool = Some(started.tool_name.clone());
            // Those that a tool calls belong to its call.
            if started.parent_tool_call_id.is_none() {
                work.open_calls.push(OpenCall {
                    id: started.tool_call_id.clone(),
                    tool: started.tool_name.clone(),
                    args: text_bounds::head(started.args.raw().get(), LINE).to_owned(),
                });
            }
            drop(work);
            self.changed.send_modify(|changes| *changes += 1);
        }
        if let Event::ToolExecutionEnd(ended) = event {
            self.work().call_ended(&ended.tool_call_id);
            self.changed.send_modify(|changes| *changes += 1);
        }
        if let Event::ToolExecutionEnd(ended) = event
            && ended.result.terminate == Some(true)
            && ended.tool_name != YIELD_TOOL
        {
            self.work().ended_by = Some(ended.tool_name.clone());
        }
    }

    /// A model has answered. What summaries take counts, too; only answers of the work say how it goes.
    fn answered(&self, answer: &AssistantMessage, purpose: CallPurpose) {
        let mut work = self.work();
        work.usage.add(&answer.usage);
        if purpose == CallPurpose::Answer {
            work.answered(answer);
        }
        drop(work);
        self.changed.send_modify(|changes| *changes += 1);
    }
}

impl Work {
    fn call_ended(&mut self, id: &str) {
        let Some(at) = self.open_calls.iter().position(|call| call.id == id) else { return };
        let OpenCall { tool, args, .. } = self.open_calls.remove(at);
        self.recent_calls.truncate(RECENT - 1);
        self.recent_calls.push_front(SubagentToolCall { tool, args, end_ms: unix_ms() });
    }

    fn answered(&mut self, answer: &AssistantMessage) {
        self.requests += 1;
        self.ended_by = None;
        let texts = answer.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        // An answer of calls alone says nothing; what was said before counts.
        if !text.trim().is_empty() {
            self.last_text = text;
        }
        self.last_stop = Some(answer.stop_reason);
        self.last_error = answer.error_message.clone();
        self.model = Some(format!("{}/{}", answer.provider, answer.model));
    }
}

/// Looks on for the state of a subagent, and for telemetry if that is on.
pub(crate) struct ChildObserver {
    state: Arc<ChildState>,
    telemetry: Option<Arc<dyn SessionObserver>>,
    calls: Mutex<Calls>,
}

/// Calls of models that have begun and not ended.
#[derive(Default)]
struct Calls {
    last: u64,
    /// By their numbers: what for, and the number that telemetry has given.
    open: HashMap<u64, (CallPurpose, Option<u64>)>,
}

impl ChildObserver {
    pub(crate) fn new(state: Arc<ChildState>, telemetry: Option<Arc<dyn SessionObserver>>) -> Self {
        Self { state, telemetry, calls: Mutex::default() }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionObserver for ChildObserver {
    fn run_begins(&self, traceparent: Option<&str>) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.run_begins(traceparent);
        }
    }

    fn run_ends(&self, refused: Option<ErrorCode>) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.run_ends(refused);
        }
    }

    fn event(&self, event: &Event) {
        self.state.see(event);
        if let Some(telemetry) = &self.telemetry {
            telemetry.event(event);
        }
    }

    fn call_begins(&self, call: &ModelCall<'_>) -> u64 {
        let told = self.telemetry.as_ref().map(|telemetry| telemetry.call_begins(call));
        let mut calls = self.calls();
        calls.last += 1;
        let number = calls.last;
        calls.open.insert(number, (call.purpose, told));
        number
    }

    fn call_ends(&self, call: u64, answer: &AssistantMessage, failure: Option<&Failure>) {
        let Some((purpose, told)) = self.calls().open.remove(&call) else { return };
        self.state.answered(answer, purpose);
        if let (Some(telemetry), Some(told)) = (&self.telemetry, told) {
            telemetry.call_ends(told, answer, failure);
        }
    }

    fn traceparent(&self) -> Option<String> {
        self.telemetry.as_ref().and_then(|telemetry| telemetry.traceparent())
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{
        Json,
        event::{ToolExecutionEnd, ToolExecutionStart},
        tool::ToolResult,
    };
    use serde_json::{Map, Value, json};

    use super::*;

    fn begins(state: &ChildState, id: &str, args: Value, parent: Option<&str>) {
        let Value::Object(args) = args else { panic!() };
        let started = ToolExecutionStart {
            tool_call_id: id.to_owned(),
            tool_name: format!("tool-{id}"),
            args: Json::<Map<String, Value>>::new(args).unwrap(),
            parent_tool_call_id: parent.map(str::to_owned),
        };
        state.see(&started.into());
    }

    fn ends(state: &ChildState, id: &str) {
        let ended = ToolExecutionEnd {
            tool_call_id: id.to_owned(),
            tool_name: format!("tool-{id}"),
            result: ToolResult::text("r"),
            is_error: false,
            duration_ms: None,
            parent_tool_call_id: None,
        };
        state.see(&ended.into());
    }

    #[test]
    fn the_last_calls_and_lines_are_shown() {
        let state = ChildState::new(HandedIn::new(None));
        assert_eq!(state.recent(), RecentWork::default());
        begins(&state, "0", json!({"path": "a".repeat(1000)}), None);
        begins(&state, "1", json!({}), None);
        begins(&state, "below", json!({}), Some("1"));
        let (tool, args) = state.recent().current.unwrap();
        assert_eq!((tool.as_str(), args.as_str()), ("tool-1", "{}"));
        ends(&state, "1");
        let (tool, args) = state.recent().current.unwrap();
        assert!(tool == "tool-0" && args.starts_with("{\"path\":\"aaa") && args.len() == LINE, "{args}");
        ends(&state, "0");
        for id in ["2", "3", "4", "5", "6"] {
            begins(&state, id, json!({}), None);
            ends(&state, id);
        }
        let recent = state.recent();
        let tools: Vec<&str> = recent.calls.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!((recent.current, tools), (None, vec!["tool-6", "tool-5", "tool-4", "tool-3", "tool-2"]));
        let text = "1\n2\n\n3\n4\n5\n6\n";
        let answer = AssistantMessage {
            content: vec![ContentBlock::text(text)],
            ..AssistantMessage::pending("a", "p", "m", 0)
        };
        state.answered(&answer, CallPurpose::Answer);
        assert_eq!(state.recent().output, ["2", "3", "4", "5", "6"]);
    }
}
