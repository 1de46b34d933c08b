//! The spans of a session that have begun and not ended.

use agentd_agent::observer::CallPurpose;

use super::open_span::OpenSpan;
use crate::{
    data::{Attributes, Value},
    hub::Hub,
    ids::TraceContext,
};

/// What has begun and not ended.
#[derive(Default)]
pub(super) struct OpenSpans {
    pub(super) run: Option<OpenRun>,
    pub(super) turn: Option<OpenSpan>,
    pub(super) compaction: Option<OpenSpan>,
    pub(super) calls: Vec<OpenCall>,
    pub(super) tools: Vec<(String, OpenSpan)>,
    pub(super) last_call: u64,
}

/// A run, with its sums.
pub(super) struct OpenRun {
    pub(super) span: OpenSpan,
    pub(super) turns: u64,
    pub(super) tool_calls: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cost: f64,
    /// How the last turn ended.
    pub(super) outcome: Outcome,
}

/// How work ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Completed,
    Aborted,
    Failed(Value),
}

/// A model call.
pub(super) struct OpenCall {
    pub(super) number: u64,
    pub(super) purpose: CallPurpose,
    pub(super) span: OpenSpan,
    /// The attributes of its metrics.
    pub(super) attributes: Attributes,
    pub(super) has_chunk: bool,
}

impl OpenSpans {
    /// The span that model calls and tool calls of a run are below.
    pub(super) fn above_calls(&self) -> Option<TraceContext> {
        let run = self.run.as_ref().map(|run| run.span.context);
        self.turn.as_ref().map(|turn| turn.context).or(run)
    }

    /// An event of the run; one of a session without a run is counted alone.
    pub(super) fn event_of_run(&mut self, name: &'static str, attributes: Attributes) {
        let span = match (&mut self.run, &mut self.compaction) {
            (Some(run), _) => &mut run.span,
            (None, Some(compaction)) => compaction,
            (None, None) => return,
        };
        span.event(name, attributes);
    }

    pub(super) fn end_turn(&mut self, hub: &Hub) {
        for (_, mut tool) in self.tools.drain(..) {
            tool.set("agentd.outcome", "aborted");
            tool.end(hub);
        }
        self.end_calls(CallPurpose::Answer, hub);
        if let Some(turn) = self.turn.take() {
            turn.end(hub);
        }
    }

    pub(super) fn end_compaction(&mut self, hub: &Hub) {
        self.end_calls(CallPurpose::Summary, hub);
        if let Some(compaction) = self.compaction.take() {
            compaction.end(hub);
        }
    }

    /// Ends calls whose task is gone.
    fn end_calls(&mut self, purpose: CallPurpose, hub: &Hub) {
        for mut call in self.calls.extract_if(.., |call| call.purpose == purpose) {
            call.span.set("agentd.outcome", "aborted");
            call.span.end(hub);
        }
    }
}
