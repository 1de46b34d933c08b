//! What a subagent has done so far: its session writes it, those who wait for it read it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use agentd_agent::observer::{CallPurpose, ModelCall, SessionObserver};
use agentd_ai::failure::Failure;
use agentd_protocol::{
    error::ErrorCode,
    event::Event,
    message::{AssistantMessage, ContentBlock, StopReason, Usage},
    subagent::SubagentProgress,
};
use tokio::sync::watch;

use super::handed_in::HandedIn;

/// The state of one subagent. It outlives the stay of its session in memory.
pub(crate) struct ChildState {
    work: Mutex<Work>,
    /// What its tool `yield` was called with.
    pub(crate) handed_in: HandedIn,
    /// Counts changes.
    changed: watch::Sender<u64>,
}

/// Its work so far.
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
}

/// How the last answer of a subagent ended.
pub(crate) struct LastAnswer {
    pub(crate) text: String,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) error: Option<String>,
}

impl ChildState {
    pub(crate) fn new(handed_in: HandedIn) -> Arc<Self> {
        let work = Work {
            begun: None,
            requests: 0,
            tool_calls: 0,
            usage: Usage::default(),
            last_tool: None,
            last_text: String::new(),
            last_stop: None,
            last_error: None,
            model: None,
        };
        Arc::new(Self { work: Mutex::new(work), handed_in, changed: watch::Sender::new(0) })
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        // Single assignments and sums.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
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
            drop(work);
            self.changed.send_modify(|changes| *changes += 1);
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
    fn answered(&mut self, answer: &AssistantMessage) {
        self.requests += 1;
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
