//! Spans and metrics of one session, made of what its observer is told.
//!
//! `invoke_agent` (a run) holds turns and compactions; a turn holds one `chat` and its tool calls, a compaction the `chat`s of its
//! summaries. A span that is still open when the one above it ends, because its task was dropped, ends with it.

mod content;
mod names;
mod open_span;
mod open_spans;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering};

use agentd_agent::observer::{CallPurpose, ModelCall, SessionObserver};
use agentd_ai::failure::Failure;
use agentd_protocol::{
    error::ErrorCode,
    event::{
        CompactionEnd, CompactionStart, Event, PermissionDecision, ToolExecutionEnd, ToolExecutionStart,
        TurnEnd,
    },
    message::{AssistantMessage, Message, StopReason},
    model::Model,
};

use self::{
    open_span::OpenSpan,
    open_spans::{OpenCall, OpenRun, OpenSpans, Outcome},
};
use crate::{
    data::{Attributes, SpanKind, Value},
    hub::Hub,
    ids::TraceContext,
    metrics::{Counter, Histogram},
};

/// The name of the agent in spans.
const AGENT: &str = "agentd";

/// Open tool calls of one session at most; more than any model makes at once.
const MAX_OPEN: usize = 1024;

/// The observer of a session.
pub(crate) struct SessionSpans {
    hub: Arc<Hub>,
    id: String,
    open: Mutex<OpenSpans>,
}

impl SessionSpans {
    pub(crate) fn new(hub: Arc<Hub>, id: &str) -> Self {
        hub.loaded.fetch_add(1, Ordering::Relaxed);
        Self { hub, id: id.to_owned(), open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, OpenSpans> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A text, where texts are sent.
    fn captured(&self, text: impl FnOnce() -> String) -> Option<String> {
        self.hub.config.captures_content.then(text)
    }

    fn message_begins(&self, message: Option<&Message>) {
        // An answer that failed before it began has its message at once.
        let Some(Message::Assistant(AssistantMessage { stop_reason: StopReason::Pending, .. })) = message
        else {
            return;
        };
        let mut open = self.lock();
        let answer = open.calls.iter_mut().rev().find(|call| call.purpose == CallPurpose::Answer);
        if let Some(call) = answer.filter(|call| !call.has_chunk) {
            call.has_chunk = true;
            let seconds = call.span.seconds();
            call.span.set("gen_ai.response.time_to_first_chunk", Value::Double(seconds));
            self.hub.metrics.record(Histogram::TimeToFirstChunk, seconds, call.attributes.clone());
        }
    }

    fn turn_begins(&self) {
        let mut open = self.lock();
        open.end_turn(&self.hub);
        let mut turn =
            OpenSpan::begin(open.run.as_ref().map(|run| run.span.context), "turn", SpanKind::Internal);
        turn.set("gen_ai.conversation.id", self.id.clone());
        if let Some(run) = &mut open.run {
            run.turns += 1;
            turn.set("agentd.turn.number", run.turns);
        }
        open.turn = Some(turn);
    }

    fn turn_ends(&self, end: &TurnEnd) {
        let mut open = self.lock();
        if let Some(Message::Assistant(answer)) = end.message.get() {
            // A call that failed has told its error; a model that could not be asked has none.
            let outcome = match answer.stop_reason {
                StopReason::Aborted => Outcome::Aborted,
                StopReason::Error => {
                    let told = open.turn.as_ref().and_then(OpenSpan::error_type);
                    let own = || names::error_type(answer, None).unwrap_or("_OTHER".into());
                    Outcome::Failed(told.unwrap_or_else(own))
                }
                _ => Outcome::Completed,
            };
            if let (Some(turn), Outcome::Failed(error)) = (&mut open.turn, &outcome) {
                let text =
                    self.captured(|| content::text(answer.error_message.as_deref().unwrap_or_default()));
                turn.fail(error.clone(), text);
            }
            if let Some(run) = &mut open.run {
                run.outcome = outcome;
            }
        }
        open.end_turn(&self.hub);
    }

    fn tool_begins(&self, start: &ToolExecutionStart) {
        let mut open = self.lock();
        let name = format!("execute_tool {}", start.tool_name);
        let mut span = OpenSpan::begin(open.above_calls(), name, SpanKind::Internal);
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", start.tool_name.clone());
        span.set("gen_ai.tool.type", "function");
        span.set("gen_ai.tool.call.id", start.tool_call_id.clone());
        span.set("gen_ai.conversation.id", self.id.clone());
        if let Some(arguments) = self.captured(|| content::text(start.args.text())) {
            span.set("gen_ai.tool.call.arguments", arguments);
        }
        if let Some(run) = &mut open.run {
            run.tool_calls += 1;
        }
        if open.tools.len() < MAX_OPEN {
            open.tools.push((start.tool_call_id.clone(), span));
        }
    }

    fn tool_ends(&self, end: &ToolExecutionEnd) {
        let mut open = self.lock();
        let Some(index) = open.tools.iter().position(|(id, _)| *id == end.tool_call_id) else { return };
        let (_, mut span) = open.tools.remove(index);
        drop(open);
        let mut attributes: Attributes = vec![
            ("gen_ai.operation.name".into(), "execute_tool".into()),
            ("gen_ai.tool.name".into(), end.tool_name.clone().into()),
        ];
        let result = self.captured(|| content::result(&end.result.content));
        if end.is_error {
            // A call that never started was refused: by its arguments, a permission, a budget, an abort.
            let error = if end.duration_ms.is_some() { "tool_error" } else { "not_started" };
            attributes.push(("error.type".into(), error.into()));
            span.fail(error, result);
        } else if let Some(result) = result {
            span.set("gen_ai.tool.call.result", result);
        }
        if let Some(duration_ms) = end.duration_ms {
            let seconds = std::time::Duration::from_millis(duration_ms).as_secs_f64();
            span.set("agentd.tool.duration", Value::Double(seconds));
            self.hub.metrics.record(Histogram::ToolDuration, seconds, attributes);
        }
        span.end(&self.hub);
    }

    fn compaction_begins(&self, start: &CompactionStart) {
        let mut open = self.lock();
        open.end_compaction(&self.hub);
        let mut span =
            OpenSpan::begin(open.run.as_ref().map(|run| run.span.context), "compaction", SpanKind::Internal);
        span.set("agentd.compaction.reason", names::word(&start.reason));
        span.set("gen_ai.conversation.id", self.id.clone());
        open.compaction = Some(span);
    }

    fn compaction_ends(&self, end: &CompactionEnd) {
        let mut open = self.lock();
        let outcome = match end {
            CompactionEnd { aborted: true, .. } => "aborted",
            CompactionEnd { result: Some(_), .. } => "completed",
            _ => "failed",
        };
        let attributes: Attributes = vec![
            ("agentd.compaction.reason".into(), names::word(&end.reason).into()),
            ("agentd.outcome".into(), outcome.into()),
        ];
        if let Some(span) = &mut open.compaction {
            span.set("agentd.outcome", outcome);
            if outcome == "failed" {
                let text = end.error_message.as_deref().unwrap_or_default();
                span.fail("_OTHER", self.captured(|| content::text(text)));
            }
        } else if let Some(run) = &mut open.run {
            // One that could not begin.
            run.span.event("agentd.compaction", attributes.clone());
        }
        open.end_compaction(&self.hub);
        drop(open);
        self.hub.metrics.add(Counter::Compactions, 1.0, attributes);
    }

    fn permission(&self, decision: &PermissionDecision) {
        let verdict = names::word(&decision.decision);
        let attributes: Attributes = vec![
            ("gen_ai.tool.name".into(), decision.tool.clone().into()),
            ("agentd.permission.decision".into(), verdict.into()),
            ("agentd.permission.by".into(), names::word(&decision.by).into()),
        ];
        self.hub.metrics.add(Counter::Permissions, 1.0, attributes.clone());
        let mut of_event = attributes;
        of_event.push(("agentd.permission.waited_ms".into(), decision.waited_ms.into()));
        let mut open = self.lock();
        let id = decision.tool_call_id.as_deref();
        let of_call = open.tools.iter().position(|(other, _)| Some(other.as_str()) == id);
        match of_call {
            Some(index) => open.tools[index].1.event("agentd.permission", of_event),
            None => open.event_of_run("agentd.permission", of_event),
        }
    }

    /// Attributes that say which model answers.
    fn model_attributes(model: &Model) -> Attributes {
        let mut attributes: Attributes = vec![
            ("gen_ai.operation.name".into(), "chat".into()),
            ("gen_ai.provider.name".into(), names::provider(&model.provider).into()),
            ("gen_ai.request.model".into(), model.id.clone().into()),
        ];
        let url = reqwest::Url::parse(&model.base_url).ok();
        if let Some((host, url)) = url.as_ref().and_then(|url| Some((url.host_str()?, url))) {
            attributes.push(("server.address".into(), host.to_owned().into()));
            attributes.extend(
                url.port_or_known_default().map(|port| ("server.port".into(), Value::from(u64::from(port)))),
            );
        }
        attributes
    }

    /// Counts the tokens and the cost of an answer.
    fn count_usage(&self, call: &OpenCall, answer: &AssistantMessage, run: Option<&mut OpenRun>) {
        let usage = &answer.usage;
        let input = usage.input + usage.cache_read + usage.cache_write;
        for (kind, tokens) in [("input", input), ("output", usage.output)] {
            if tokens > 0 {
                let mut attributes = call.attributes.clone();
                attributes.push(("gen_ai.token.type".into(), kind.into()));
                self.hub.metrics.record(Histogram::TokenUsage, tokens as f64, attributes);
            }
        }
        let cost = usage.cost.total;
        if cost > 0.0 {
            self.hub.metrics.add(Counter::Cost, cost, call.attributes.clone());
        }
        if let Some(run) = run {
            run.input_tokens += input;
            run.output_tokens += usage.output;
            run.cost += cost;
        }
    }
}

impl Drop for SessionSpans {
    fn drop(&mut self) {
        self.hub.loaded.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SessionObserver for SessionSpans {
    fn run_begins(&self, traceparent: Option<&str>) {
        self.hub.running.fetch_add(1, Ordering::Relaxed);
        let parent = traceparent.and_then(TraceContext::parse);
        let mut span = OpenSpan::begin(parent, format!("invoke_agent {AGENT}"), SpanKind::Internal);
        span.set("gen_ai.operation.name", "invoke_agent");
        span.set("gen_ai.agent.name", AGENT);
        span.set("gen_ai.agent.version", env!("CARGO_PKG_VERSION"));
        span.set("gen_ai.conversation.id", self.id.clone());
        let (turns, tool_calls, input_tokens, output_tokens, cost) = (0, 0, 0, 0, 0.0);
        let outcome = Outcome::Completed;
        self.lock().run =
            Some(OpenRun { span, turns, tool_calls, input_tokens, output_tokens, cost, outcome });
    }

    fn run_ends(&self, refused: Option<ErrorCode>) {
        self.hub.running.fetch_sub(1, Ordering::Relaxed);
        let mut open = self.lock();
        open.end_turn(&self.hub);
        open.end_compaction(&self.hub);
        let Some(mut run) = open.run.take() else { return };
        drop(open);
        if let Some(code) = refused {
            run.outcome = match code {
                ErrorCode::Aborted => Outcome::Aborted,
                code => Outcome::Failed(names::word(&code).into()),
            };
        }
        let OpenRun { mut span, turns, tool_calls, input_tokens, output_tokens, cost, outcome } = run;
        span.set("gen_ai.usage.input_tokens", input_tokens);
        span.set("gen_ai.usage.output_tokens", output_tokens);
        span.set("agentd.turns", turns);
        span.set("agentd.tool_calls", tool_calls);
        span.set("agentd.cost_usd", Value::Double(cost));
        let mut attributes: Attributes = vec![
            ("gen_ai.operation.name".into(), "invoke_agent".into()),
            ("gen_ai.agent.name".into(), AGENT.into()),
        ];
        span.set(
            "agentd.outcome",
            match &outcome {
                Outcome::Completed => "completed",
                Outcome::Aborted => "aborted",
                Outcome::Failed(_) => "failed",
            },
        );
        if let Outcome::Failed(error) = outcome {
            attributes.push(("error.type".into(), error.clone()));
            span.fail(error, None);
        }
        self.hub.metrics.record(Histogram::RunDuration, span.seconds(), attributes);
        span.end(&self.hub);
    }

    fn event(&self, event: &Event) {
        match event {
            Event::TurnStart(_) => self.turn_begins(),
            Event::TurnEnd(end) => self.turn_ends(end),
            Event::MessageStart(start) => self.message_begins(start.message.get()),
            Event::ToolExecutionStart(start) => self.tool_begins(start),
            Event::ToolExecutionEnd(end) => self.tool_ends(end),
            Event::CompactionStart(start) => self.compaction_begins(start),
            Event::CompactionEnd(end) => self.compaction_ends(end),
            Event::PermissionDecision(decision) => self.permission(decision),
            Event::AutoRetryStart(retry) => {
                let attributes: Attributes = vec![
                    ("agentd.retry.attempt".into(), u64::from(retry.attempt).into()),
                    ("agentd.retry.max_attempts".into(), u64::from(retry.max_attempts).into()),
                    ("agentd.retry.delay_ms".into(), retry.delay_ms.into()),
                ];
                self.lock().event_of_run("agentd.retry", attributes);
                self.hub.metrics.add(Counter::Retries, 1.0, Vec::new());
            }
            Event::ModelFallback(fallback) => {
                let attributes: Attributes = vec![
                    ("agentd.fallback.from".into(), named(&fallback.from).into()),
                    ("agentd.fallback.to".into(), named(&fallback.to).into()),
                    ("agentd.fallback.reason".into(), names::word(&fallback.reason).into()),
                ];
                self.lock().event_of_run("agentd.fallback", attributes.clone());
                self.hub.metrics.add(Counter::Fallbacks, 1.0, attributes);
            }
            Event::BudgetReached(reached) => {
                let attributes: Attributes = vec![
                    ("agentd.budget.scope".into(), reached.scope.as_str().into()),
                    ("agentd.budget.what".into(), reached.what.as_str().into()),
                ];
                self.hub.metrics.add(Counter::BudgetsReached, 1.0, attributes.clone());
                let mut of_event = attributes;
                of_event.push(("agentd.budget.limit".into(), Value::Double(reached.limit)));
                of_event.push(("agentd.budget.used".into(), Value::Double(reached.used)));
                self.lock().event_of_run("agentd.budget_reached", of_event);
            }
            Event::ProviderStalled(stall) => {
                let attributes: Attributes = vec![
                    ("agentd.stall.phase".into(), names::word(&stall.phase).into()),
                    ("agentd.stall.action".into(), names::word(&stall.action).into()),
                    ("agentd.stall.waited_ms".into(), stall.waited_ms.into()),
                ];
                let mut open = self.lock();
                match open.calls.last_mut() {
                    Some(call) => call.span.event("agentd.stall", attributes),
                    None => open.event_of_run("agentd.stall", attributes),
                }
            }
            _ => {}
        }
    }

    fn call_begins(&self, call: &ModelCall<'_>) -> u64 {
        let attributes = Self::model_attributes(call.model);
        let mut open = self.lock();
        let parent = match call.purpose {
            CallPurpose::Answer | CallPurpose::Extension => open.above_calls(),
            CallPurpose::Summary => {
                open.compaction.as_ref().map(|span| span.context).or_else(|| open.above_calls())
            }
        };
        let mut span = OpenSpan::begin(parent, format!("chat {}", call.model.id), SpanKind::Client);
        for (key, value) in &attributes {
            span.set(key.clone(), value.clone());
        }
        span.set("gen_ai.conversation.id", self.id.clone());
        span.set("gen_ai.request.stream", Value::Bool(true));
        span.set("agentd.thinking_level", call.level.as_str());
        span.set(
            "agentd.purpose",
            match call.purpose {
                CallPurpose::Answer => "answer",
                CallPurpose::Summary => "summary",
                CallPurpose::Extension => "extension",
            },
        );
        if let Some(messages) = self.captured(|| content::input(call.messages)) {
            span.set("gen_ai.input.messages", messages);
        }
        if let Some(run) = &mut open.run {
            // The model that answered last.
            for key in ["gen_ai.provider.name", "gen_ai.request.model"] {
                if let Some((key, value)) = attributes.iter().find(|(other, _)| *other == key) {
                    run.span.set(key.clone(), value.clone());
                }
            }
        }
        open.last_call += 1;
        let number = open.last_call;
        open.calls.push(OpenCall { number, purpose: call.purpose, span, attributes, has_chunk: false });
        number
    }

    fn call_ends(&self, call: u64, answer: &AssistantMessage, failure: Option<&Failure>) {
        let mut open = self.lock();
        let Some(index) = open.calls.iter().position(|open| open.number == call) else { return };
        let mut call = open.calls.remove(index);
        let usage = &answer.usage;
        let reason = names::finish_reason(answer);
        call.span.set("gen_ai.response.finish_reasons", Value::Texts(vec![reason.clone()]));
        // An answer names its model only where it is not the one that was asked.
        let has_failed = matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
        let asked = (!has_failed).then_some(&answer.model);
        if let Some(model) = answer.response_model.as_ref().or(asked) {
            call.span.set("gen_ai.response.model", model.clone());
            call.attributes.push(("gen_ai.response.model".into(), model.clone().into()));
        }
        if let Some(id) = &answer.response_id {
            call.span.set("gen_ai.response.id", id.clone());
        }
        call.span.set("gen_ai.usage.input_tokens", usage.input + usage.cache_read + usage.cache_write);
        call.span.set("gen_ai.usage.output_tokens", usage.output);
        let parts = [
            ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
            ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
            ("gen_ai.usage.reasoning.output_tokens", usage.reasoning.unwrap_or(0)),
        ];
        for (key, tokens) in parts.into_iter().filter(|(_, tokens)| *tokens > 0) {
            call.span.set(key, tokens);
        }
        call.span.set("agentd.cost_usd", Value::Double(usage.cost.total));
        self.count_usage(&call, answer, open.run.as_mut());
        if let Some(messages) = self.captured(|| content::output(answer, &reason)) {
            call.span.set("gen_ai.output.messages", messages);
        }
        if let Some(error) = names::error_type(answer, failure) {
            if let Some(turn) = open.turn.as_mut().filter(|_| call.purpose == CallPurpose::Answer) {
                turn.set("error.type", error.clone());
            }
            let text = answer.error_message.as_deref().unwrap_or_default();
            call.span.fail(error.clone(), self.captured(|| content::text(text)));
            call.attributes.push(("error.type".into(), error));
        }
        drop(open);
        self.hub.metrics.record(Histogram::CallDuration, call.span.seconds(), call.attributes);
        call.span.end(&self.hub);
    }

    fn traceparent(&self) -> Option<String> {
        if !self.hub.config.propagates {
            return None;
        }
        self.lock().above_calls().map(|context| context.header())
    }
}

fn named(model: &agentd_protocol::model::ModelName) -> String {
    format!("{}/{}", model.provider, model.id)
}

#[cfg(test)]
mod tests;
