//! What the events of the chat completions API mean.

use agentd_protocol::message::{Cost, StopReason, Usage};
use serde::de::Error as _;
use serde_json::Value;

use super::{api_types::Chunk, blocks::AnswerState, compat::Compat};
use crate::{
    Delta,
    failure::{Failure, FailureKind, classify_message, is_refusal},
    http::{AnswerDecoder, DecodeStep, Server},
};

/// Reads one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct CompletionsDecoder {
    server: Server,
    state: AnswerState,
    requires_finish_reason: bool,
}

impl CompletionsDecoder {
    /// A reader for an answer of `server`, asked for `model`.
    pub(super) fn new(server: Server, model: &str, compat: &Compat) -> Self {
        Self {
            server,
            state: AnswerState::new(model, compat.reports_cost),
            requires_finish_reason: compat.supports_finish_reason,
        }
    }

    fn chunk(&mut self, chunk: Chunk, name: &str, data: &str, out: &mut Vec<Delta>) -> DecodeStep {
        if let Some((status, body)) = chunk.failure(name, data) {
            return DecodeStep::failed(self.server.refusal(status, &body));
        }
        self.state.take(chunk, out);
        DecodeStep::More
    }
}

impl AnswerDecoder for CompletionsDecoder {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, serde_json::Error> {
        let chunk = serde_json::from_str(data)?;
        Ok(self.chunk(chunk, name, data, out))
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        let chunk: Chunk = serde_json::from_str(json)?;
        if chunk.choices.is_empty() && !chunk.is_error() {
            return Err(serde_json::Error::custom("no choices"));
        }
        Ok(match self.chunk(chunk, "", json, out) {
            DecodeStep::More => self.end(out),
            step => step,
        })
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> DecodeStep {
        let reason = self.state.finish_reason().map(str::to_owned);
        let called = self.state.has_calls();
        let refusal = self.state.refusal().failure(&self.server);
        let has_ended = reason.is_some() || !self.requires_finish_reason;
        if let Some(failure) = refusal.filter(|_| has_ended) {
            return DecodeStep::Failed { failure, raw_stop_reason: reason };
        }
        let stop_reason = match reason.as_deref() {
            None if self.requires_finish_reason => {
                return DecodeStep::failed(Failure::new(
                    FailureKind::Retryable,
                    "Stream ended without finish_reason",
                ));
            }
            // Some servers say `stop` though the model waits for the results of its calls.
            None | Some("stop" | "end") if called => StopReason::ToolUse,
            None | Some("stop" | "end") => StopReason::Stop,
            Some("length") => StopReason::Length,
            Some("function_call" | "tool_calls") => StopReason::ToolUse,
            Some(other) => {
                let message = format!("Provider finish_reason: {other}");
                let kind = if is_refusal(other) {
                    FailureKind::ModelRefusal
                } else {
                    classify_message(&self.server.provider, &message)
                };
                let failure = Failure::new(kind, message);
                return DecodeStep::Failed { failure, raw_stop_reason: reason };
            }
        };
        DecodeStep::Done { stop_reason, raw_stop_reason: reason }
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.state.seal(incomplete, out);
    }

    fn has_all_content(&self) -> bool {
        self.state.finish_reason().is_some()
    }
}

/// Reads a usage report; `None` when it is none. `reports_cost` says whether its `cost` is what is paid.
pub(super) fn usage(report: &Value, reports_cost: bool) -> Option<Usage> {
    let report = report.as_object()?;
    let number = |value: Option<&Value>| {
        let value = value?;
        // Some servers count in floats.
        value.as_u64().or_else(|| value.as_f64().filter(|float| *float >= 0.0).map(|float| float as u64))
    };
    let top = |name: &str| number(report.get(name));
    let detail = |group: &str, name: &str| number(report.get(group)?.get(name));
    let prompt = top("prompt_tokens").unwrap_or(0);
    let output = top("completion_tokens").unwrap_or(0);
    let cache_read = detail("prompt_tokens_details", "cached_tokens")
        .or_else(|| top("prompt_cache_hit_tokens"))
        .or_else(|| top("cached_tokens"))
        .unwrap_or(0)
        .min(prompt);
    let cache_write =
        detail("prompt_tokens_details", "cache_write_tokens").unwrap_or(0).min(prompt - cache_read);
    let cost = report.get("cost").and_then(Value::as_f64).filter(|_| reports_cost);
    Some(Usage {
        input: prompt - cache_read - cache_write,
        output,
        cache_read,
        cache_write,
        cache_write1h: None,
        reasoning: Some(detail("completion_tokens_details", "reasoning_tokens").unwrap_or(0)),
        total_tokens: prompt.saturating_add(output),
        cost: match cost {
            Some(total) => Cost { total, total_from_provider: Some(true), ..Cost::default() },
            None => Cost::default(),
        },
    })
}

#[cfg(test)]
mod usage_tests {
    use serde_json::json;

    use super::*;

    fn check(report: Value, expected: (u64, u64, u64, u64, u64, u64)) {
        let found = usage(&report, false).unwrap();
        let parts = (found.input, found.output, found.cache_read, found.cache_write);
        assert_eq!(
            (parts.0, parts.1, parts.2, parts.3, found.reasoning.unwrap(), found.total_tokens),
            expected
        );
    }

    #[test]
    fn cached_tokens_are_no_input() {
        check(json!({"prompt_tokens": 100, "completion_tokens": 20}), (100, 20, 0, 0, 0, 120));
        check(
            json!({"prompt_tokens": 50, "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 1}}),
            (35, 2, 10, 5, 1, 52),
        );
        check(json!({"prompt_tokens": 50, "prompt_cache_hit_tokens": 20}), (30, 0, 20, 0, 0, 50));
        check(json!({"prompt_tokens": 50.0, "cached_tokens": 60}), (0, 0, 50, 0, 0, 50));
        check(json!({"prompt_tokens": 5, "prompt_tokens_details": null}), (5, 0, 0, 0, 0, 5));
    }

    #[test]
    fn a_reported_cost_counts_where_it_is_what_is_paid() {
        let report = json!({"prompt_tokens": 1, "cost": 0.25});
        let cost = usage(&report, true).unwrap().cost;
        assert_eq!((cost.total, cost.total_from_provider), (0.25, Some(true)));
        assert_eq!(usage(&report, false).unwrap().cost, Cost::default());
        assert_eq!(usage(&Value::Null, true), None);
    }
}

#[cfg(test)]
mod tests;
