//! Outcomes of tool calls, and the events and messages that report them.

use agentd_protocol::{
    Json,
    event::{Event, MessageEnd, MessageStart, ToolExecutionEnd, ToolExecutionStart},
    message::{Message, ToolCall, ToolResultMessage},
    tool::ToolResult,
};
use tokio_util::sync::CancellationToken;

use crate::{Host, HostError, host::StoppedCall};

/// The result of a call that never started because the run was aborted, or that was stopped alone.
pub(super) const ABORTED: &str = "Operation aborted";

/// The outcome of all calls of one answer.
pub(crate) struct CallBatch {
    /// The result messages in the order of the calls.
    pub(crate) results: Vec<Json<Message>>,
    /// Whether every result allows the run to end.
    pub(crate) terminate: bool,
}

/// The outcome of one call.
pub(super) struct CallOutcome {
    pub(super) result: ToolResult,
    pub(super) failed: bool,
    pub(super) duration_ms: Option<u64>,
}

impl CallOutcome {
    pub(super) fn failure(message: impl Into<String>) -> Self {
        Self { result: ToolResult::failure(message), failed: true, duration_ms: None }
    }
}

/// Ends the calls of one answer early, and notes which calls that met.
pub(super) struct CallStop<'a> {
    /// Aborts the run, and its calls with it.
    pub(super) run: &'a CancellationToken,
    /// Stops the calls alone; a child of the token of the run.
    pub(super) calls: CancellationToken,
    /// The calls that were running when they were stopped.
    pub(super) stopped: Vec<StoppedCall>,
}

impl CallStop<'_> {
    /// Notes a call that ended. A call that failed after it was stopped alone gets the result [`ABORTED`]; after an abort of the run it keeps its
    /// own text.
    pub(super) fn ended(&mut self, call: &ToolCall, outcome: CallOutcome) -> CallOutcome {
        if !self.calls.is_cancelled() {
            return outcome;
        }
        self.note(call, false);
        if outcome.failed && !self.run.is_cancelled() {
            return CallOutcome { duration_ms: outcome.duration_ms, ..CallOutcome::failure(ABORTED) };
        }
        outcome
    }

    /// Notes a call that was stopped and does not end; its result is [`ABORTED`].
    pub(super) fn survived(&mut self, call: &ToolCall) -> CallOutcome {
        self.note(call, true);
        CallOutcome::failure(ABORTED)
    }

    fn note(&mut self, call: &ToolCall, survives: bool) {
        self.stopped.push(StoppedCall { id: call.id.clone(), name: call.name.clone(), survives });
    }
}

pub(super) fn to_json<T: serde::Serialize>(value: T) -> Result<Json<T>, HostError> {
    Json::new(value).map_err(|error| HostError::NotStored(error.to_string()))
}

pub(super) fn start_event(call: &ToolCall) -> Result<Event, HostError> {
    Ok(Event::from(ToolExecutionStart {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        args: to_json(call.arguments.clone())?,
        parent_tool_call_id: None,
    }))
}

pub(super) fn end_event(call: &ToolCall, outcome: &CallOutcome) -> Event {
    Event::from(ToolExecutionEnd {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        result: outcome.result.clone(),
        is_error: outcome.failed,
        duration_ms: outcome.duration_ms,
        parent_tool_call_id: None,
    })
}

/// Publishes the end of one of `calls`. The host first gets the result of a call that waits for the results of others.
pub(super) async fn publish_end<H: Host>(
    host: &mut H,
    calls: &[ToolCall],
    call: &ToolCall,
    outcome: &CallOutcome,
) -> Result<(), HostError> {
    if calls.len() > 1 {
        let CallOutcome { result, failed, duration_ms } = outcome;
        let result = CallOutcome { result: result.clone(), failed: *failed, duration_ms: *duration_ms };
        host.call_ended(result_message(call, result, host.now_ms())).await;
    }
    host.emit(end_event(call, outcome)).await
}

fn result_message(call: &ToolCall, outcome: CallOutcome, timestamp: i64) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: outcome.result.content,
        details: outcome.result.details,
        usage: outcome.result.usage,
        nested_calls: None,
        is_error: outcome.failed,
        duration_ms: outcome.duration_ms,
        timestamp,
    }
}

/// Emits the result messages in the order of the calls.
pub(super) async fn emit_results<H: Host>(
    host: &mut H,
    calls: &[ToolCall],
    outcomes: Vec<CallOutcome>,
) -> Result<CallBatch, HostError> {
    let terminate = outcomes.iter().all(|outcome| outcome.result.terminate == Some(true));
    let mut results = Vec::with_capacity(calls.len());
    for (call, outcome) in calls.iter().zip(outcomes) {
        let message = result_message(call, outcome, host.now_ms());
        let message = to_json(Message::ToolResult(host.complete_result(message)))?;
        host.emit(MessageStart { message: message.clone() }.into()).await?;
        host.emit(MessageEnd { message: message.clone() }.into()).await?;
        results.push(message);
    }
    Ok(CallBatch { results, terminate })
}
