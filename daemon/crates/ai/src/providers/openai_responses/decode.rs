//! Decodes answers of the responses API: events, outcomes, token counts.

use std::sync::Arc;

use agentd_protocol::{
    message::{Cost, StopReason, Usage},
    model::Model,
};
use serde::de::Error as _;
use serde_json::{Value, value::RawValue};

use super::{
    api_types::{OutputItem, Response, StreamEvent, json_text, refusal, text},
    blocks::{Blocks, Key, Kind},
    errors,
};
use crate::{
    Delta, cost,
    failure::{Failure, FailureKind, Refusal, classify_message, is_refusal},
    http::{AnswerDecoder, DecodeStep, Server},
};

/// Decodes one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct ResponsesDecoder {
    server: Server,
    /// The requested model.
    model: Arc<Model>,
    has_id: bool,
    has_model: bool,
    blocks: Blocks,
    refusal: Refusal,
}

impl ResponsesDecoder {
    /// A decoder for an answer of `server` by `model`.
    pub(in crate::providers) fn new(server: Server, model: &Arc<Model>) -> Self {
        let (blocks, refusal) = (Blocks::default(), Refusal::default());
        Self { server, model: Arc::clone(model), has_id: false, has_model: false, blocks, refusal }
    }

    /// Emits the id and the model of the answer.
    fn meet(&mut self, response: &Response<'_>, out: &mut Vec<Delta>) {
        if let Some(id) = response.id.as_deref().filter(|id| !id.is_empty() && !self.has_id) {
            self.has_id = true;
            out.push(Delta::ResponseId(id.to_owned()));
        }
        if let Some(model) = response.model.as_deref().filter(|model| !model.is_empty() && !self.has_model) {
            self.has_model = true;
            if model != self.model.id {
                out.push(Delta::ResponseModel(model.to_owned()));
            }
        }
    }

    /// Takes a response that has ended as `event` names it.
    fn ended(
        &mut self,
        event: &str,
        response: &Response<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, serde_json::Error> {
        self.meet(response, out);
        if let Some(items) = &response.output {
            let said: String = items.iter().filter_map(|item| refusal(item)).collect();
            self.refusal.set(&said);
            self.blocks.listed(items, out)?;
        }
        if let Some(report) = response.usage {
            let report: Value = serde_json::from_str(report.get())?;
            out.extend(usage(&report, response.service_tier.as_deref(), &self.model).map(Delta::Usage));
        }
        let step = outcome(&self.server, event, response, self.blocks.has_calls());
        Ok(match (step, self.refusal.failure(&self.server)) {
            (DecodeStep::Done { raw_stop_reason, .. }, Some(failure)) => {
                DecodeStep::Failed { failure, raw_stop_reason }
            }
            (step, _) => step,
        })
    }
}

impl AnswerDecoder for ResponsesDecoder {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, serde_json::Error> {
        let event: StreamEvent<'_> = serde_json::from_str(data)?;
        let kind = event.kind.as_deref().unwrap_or(name);
        let item_id = event.item_id.as_deref().unwrap_or_default();
        let key = Key { output_index: event.output_index, item_id };
        let Some(kind) = kind.strip_prefix("response.") else {
            return Ok(match event.error {
                _ if kind == "error" => DecodeStep::failed(errors::of_event(&self.server, data)),
                Some(error) if error.get().starts_with(['{', '"']) => {
                    DecodeStep::failed(errors::of_body(&self.server, data))
                }
                _ => DecodeStep::More,
            });
        };
        match kind {
            "output_text.delta" => {
                self.blocks.extend(Kind::Text, key, text(event.delta).unwrap_or_default(), out);
            }
            "refusal.delta" => {
                let piece = text(event.delta).unwrap_or_default();
                self.refusal.add(&piece);
                self.blocks.extend(Kind::Text, key, piece, out);
            }
            "refusal.done" => {
                if let Some(whole) = text(event.refusal) {
                    self.refusal.set(&whole);
                    self.blocks.complete(Kind::Text, key, &whole, out);
                }
            }
            "function_call_arguments.delta" => {
                self.blocks.extend(Kind::Call, key, text(event.delta).unwrap_or_default(), out);
            }
            "reasoning_summary_text.delta" | "reasoning_text.delta" => {
                self.blocks.extend(Kind::Thinking, key, text(event.delta).unwrap_or_default(), out);
            }
            "reasoning_summary_part.added" | "reasoning_summary_part.done" => self.blocks.part_break(key),
            "output_text.done" => {
                if let Some(whole) = text(event.text) {
                    self.blocks.complete(Kind::Text, key, &whole, out);
                }
            }
            "function_call_arguments.done" => {
                if let Some(whole) = json_text(event.arguments) {
                    self.blocks.complete(Kind::Call, key, &whole, out);
                }
            }
            "output_item.added" => {
                if let Some(item) = event.item {
                    let item: OutputItem<'_> = serde_json::from_str(item.get())?;
                    self.blocks.added(event.output_index, &item, out);
                }
            }
            "output_item.done" => {
                if let Some(item) = event.item {
                    self.refusal.set(&refusal(item).unwrap_or_default());
                    self.blocks.done(event.output_index, item, out)?;
                }
            }
            "created" | "in_progress" => {
                if let Some(response) = event.response {
                    let response: Response<'_> = serde_json::from_str(response.get())?;
                    self.meet(&response, out);
                }
            }
            "completed" | "done" | "incomplete" | "failed" | "cancelled" => {
                let response = event.response.map_or("{}", RawValue::get);
                let response: Response<'_> = serde_json::from_str(response)?;
                let status = if kind == "done" { "completed" } else { kind };
                return self.ended(status, &response, out);
            }
            _ => {}
        }
        Ok(DecodeStep::More)
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        let response: Response<'_> = serde_json::from_str(json)?;
        let is_response = response.output.is_some() || response.object.as_deref() == Some("response");
        if !is_response {
            let is_error = response.object.as_deref() == Some("error")
                || response.error.is_some_and(|error| error.get().starts_with(['{', '"']));
            if is_error {
                return Ok(DecodeStep::failed(errors::of_body(&self.server, json)));
            }
            return Err(serde_json::Error::custom("no output"));
        }
        self.ended("completed", &response, out)
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> DecodeStep {
        DecodeStep::failed(Failure::new(
            FailureKind::Retryable,
            "OpenAI Responses stream ended before a terminal response event",
        ))
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.blocks.seal(incomplete, out);
    }
}

/// The end of an answer by its response object. `event`: the status in the name of its event; `called`: the model made a tool call.
pub(super) fn outcome(server: &Server, event: &str, response: &Response<'_>, called: bool) -> DecodeStep {
    let has_error = response.error.is_some_and(|error| error.get().starts_with(['{', '"']));
    let status = match response.status.as_deref() {
        _ if event == "failed" || (has_error && event != "cancelled") => "failed",
        Some(status @ ("completed" | "incomplete" | "failed" | "cancelled")) => status,
        // Some servers leave the status at `in_progress`.
        _ => event,
    };
    match status {
        "incomplete" => incomplete(server, response),
        "failed" | "cancelled" => DecodeStep::Failed {
            failure: errors::of_response(server, status, response),
            raw_stop_reason: Some(status.to_owned()),
        },
        _ => DecodeStep::Done {
            stop_reason: if called { StopReason::ToolUse } else { StopReason::Stop },
            raw_stop_reason: Some(status.to_owned()),
        },
    }
}

fn incomplete(server: &Server, response: &Response<'_>) -> DecodeStep {
    let reason = errors::incomplete_reason(response).unwrap_or_else(|| "unknown".to_owned());
    if reason == "max_output_tokens" {
        return DecodeStep::Done { stop_reason: StopReason::Length, raw_stop_reason: Some(reason) };
    }
    let message = format!("Response incomplete: {reason}");
    let kind = if is_refusal(&reason) {
        FailureKind::ModelRefusal
    } else {
        classify_message(&server.provider, &message)
    };
    DecodeStep::Failed { failure: server.failure(kind, message), raw_stop_reason: Some(reason) }
}

/// Reads a usage report; `None` if the value is not one. `tier`: the service tier that answered.
pub(super) fn usage(report: &Value, tier: Option<&str>, model: &Model) -> Option<Usage> {
    let report = report.as_object()?;
    let number = |value: Option<&Value>| {
        let value = value?;
        // Some servers count in floats.
        value.as_u64().or_else(|| value.as_f64().filter(|float| *float >= 0.0).map(|float| float as u64))
    };
    let top = |name: &str| number(report.get(name));
    let detail =
        |group: &str, name: &str| number(report.get(group).and_then(|group| group.get(name))).unwrap_or(0);
    let prompt = top("input_tokens").unwrap_or(0);
    let output = top("output_tokens").unwrap_or(0);
    let cache_read = detail("input_tokens_details", "cached_tokens").min(prompt);
    let cache_write = detail("input_tokens_details", "cache_write_tokens").min(prompt - cache_read);
    let mut usage = Usage {
        input: prompt - cache_read - cache_write,
        output,
        cache_read,
        cache_write,
        cache_write1h: None,
        reasoning: Some(detail("output_tokens_details", "reasoning_tokens")),
        total_tokens: top("total_tokens").unwrap_or_else(|| prompt.saturating_add(output)),
        cost: Cost::default(),
    };
    if let Some(factor) = tier.and_then(|tier| factor(tier, &model.id)) {
        usage.cost = scaled(cost(&model.cost, &usage), factor);
    }
    Some(usage)
}

/// The price of a service tier as a multiple of the listed prices; `None` for the default tier.
fn factor(tier: &str, model: &str) -> Option<f64> {
    match tier {
        "flex" => Some(0.5),
        "priority" | "fast" if model == "gpt-5.5" => Some(2.5),
        "priority" | "fast" => Some(2.0),
        _ => None,
    }
}

fn scaled(cost: Cost, factor: f64) -> Cost {
    let (input, output) = (cost.input * factor, cost.output * factor);
    let (cache_read, cache_write) = (cost.cache_read * factor, cost.cache_write * factor);
    let total = input + output + cache_read + cache_write;
    Cost { input, output, cache_read, cache_write, total, total_from_provider: cost.total_from_provider }
}

#[cfg(test)]
mod usage_tests {
    use agentd_protocol::model::ModelCost;
    use serde_json::json;

    use super::*;

    fn model(id: &str) -> Model {
        let cost = ModelCost { input: 2.0, output: 8.0, cache_read: 0.5, ..ModelCost::default() };
        Model { id: id.into(), cost, ..Model::placeholder() }
    }

    fn check(report: Value, expected: [u64; 6]) {
        let found = usage(&report, None, &model("m")).unwrap();
        let reasoning = found.reasoning.unwrap();
        let total = found.total_tokens;
        assert_eq!(
            [found.input, found.output, found.cache_read, found.cache_write, reasoning, total],
            expected,
            "{report}"
        );
        assert_eq!(found.cost, Cost::default());
    }

    #[test]
    fn cached_tokens_are_no_input() {
        check(json!({"input_tokens": 100, "output_tokens": 20}), [100, 20, 0, 0, 0, 120]);
        check(
            json!({"input_tokens": 50, "output_tokens": 9, "total_tokens": 60,
                "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
                "output_tokens_details": {"reasoning_tokens": 7}}),
            [35, 9, 10, 5, 7, 60],
        );
        check(json!({"input_tokens": 5.0, "input_tokens_details": {"cached_tokens": 9}}), [0, 0, 5, 0, 0, 5]);
        check(json!({"input_tokens": 5, "input_tokens_details": null}), [5, 0, 0, 0, 0, 5]);
        assert_eq!(usage(&Value::Null, None, &model("m")), None);
    }

    fn check_tier(tier: &str, id: &str, expected: f64) {
        let report = json!({"input_tokens": 1_000_000, "output_tokens": 1_000_000});
        let cost = usage(&report, Some(tier), &model(id)).unwrap().cost;
        assert_eq!((cost.input, cost.output), (2.0 * expected, 8.0 * expected), "{tier}");
        assert_eq!((cost.total, cost.total_from_provider.is_some()), (10.0 * expected, expected > 0.0));
    }

    #[test]
    fn the_service_tier_changes_the_price() {
        check_tier("flex", "m", 0.5);
        check_tier("priority", "m", 2.0);
        check_tier("fast", "m", 2.0);
        check_tier("priority", "gpt-5.5", 2.5);
        // The accumulator prices it as usual.
        check_tier("default", "m", 0.0);
    }
}

#[cfg(test)]
mod tests;
