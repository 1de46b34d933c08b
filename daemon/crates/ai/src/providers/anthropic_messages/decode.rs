//! Decodes answers of the messages API: events, stop reasons, token counts.

use agentd_protocol::{
    message::{Cost, StopReason, Usage},
    model::{Model, ModelCost},
};
use serde::de::Error as _;
use serde_json::value::RawValue;

use super::{
    api_types::{AnswerMessage, ErrorDetails, StreamEvent, UsageReport, is_error},
    blocks::Blocks,
    compat::{Compat, FallbackModel},
    usual_delta::usual_delta,
};
use crate::{
    Delta,
    cost::cost,
    failure::{Evidence, Failure, FailureKind, Refusal, classify, classify_message, is_refusal},
    http::{AnswerDecoder, DecodeStep, ErrorBody, Server},
};

/// Decodes one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct MessagesDecoder {
    server: Server,
    /// The requested model.
    model: String,
    /// The models that may answer in its place.
    fallbacks: Vec<FallbackModel>,
    /// The prices of the model that answers, if it is not the requested one.
    price: Option<ModelCost>,
    blocks: Blocks,
    counts: Counts,
    ending: Ending,
}

impl MessagesDecoder {
    /// A decoder for an answer of `server` by `model`.
    pub(super) fn new(server: Server, model: &Model) -> Self {
        Self {
            server,
            model: model.id.clone(),
            fallbacks: Compat::of(model)
                .fallback_models
                .into_iter()
                .filter(|other| other.provider == model.provider)
                .collect(),
            price: None,
            blocks: Blocks::default(),
            counts: Counts::default(),
            ending: Ending::default(),
        }
    }

    /// Emits what the start of the message holds.
    fn begin(&mut self, message: &mut AnswerMessage<'_>, out: &mut Vec<Delta>) {
        if let Some(id) = message.id.take().filter(|id| !id.is_empty()) {
            out.push(Delta::ResponseId(id));
        }
        if let Some(model) = message.model.take().filter(|model| !model.is_empty() && *model != self.model) {
            self.price =
                self.fallbacks.iter().find(|other| other.model == model).and_then(|other| other.cost.clone());
            out.push(Delta::ResponseModel(model));
        }
        self.count(message.usage.as_deref(), out);
        let explanation = message.stop_details.take().and_then(|details| details.explanation);
        self.ending.take(message.stop_reason.take(), explanation);
    }

    fn count(&mut self, report: Option<&UsageReport>, out: &mut Vec<Delta>) {
        if let Some(report) = report {
            let mut usage = self.counts.take(report);
            if let Some(price) = &self.price {
                usage.cost = cost(price, &usage);
            }
            out.push(Delta::Usage(usage));
        }
    }

    fn last_step(&self) -> DecodeStep {
        self.ending.step(&self.server, self.blocks.has_calls())
    }

    /// The failure that `data` reports. A failure in this API's own form is shown unchanged.
    fn failure(&self, is_event: bool, error: Option<&RawValue>, data: &str) -> Failure {
        let details = ErrorDetails::of(error);
        let code = details.code.and_then(|code| u16::try_from(code).ok());
        let code = code.filter(|code| (400..600).contains(code));
        if !is_event {
            return self.server.refusal(code, &ErrorBody::read(data));
        }
        let kind = classify(&Evidence {
            provider: &self.server.provider,
            status: code.or_else(|| status(details.kind.as_deref()?)),
            error_type: details.kind.as_deref(),
            text: data,
        });
        self.server.failure(kind, data.to_owned())
    }
}

impl AnswerDecoder for MessagesDecoder {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, serde_json::Error> {
        if name != "error"
            && let Some((number, delta)) = usual_delta(data)
        {
            self.blocks.extend(number, delta, out);
            return Ok(DecodeStep::More);
        }
        let event: StreamEvent<'_> = serde_json::from_str(data)?;
        let kind = if event.kind.is_empty() { name } else { event.kind };
        if name == "error" || kind == "error" || is_error(event.error) {
            let is_event = name == "error" || kind == "error";
            return Ok(DecodeStep::failed(self.failure(is_event, event.error, data)));
        }
        let number = event.index.unwrap_or(0);
        match kind {
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.blocks.extend(number, delta, out);
                }
            }
            "content_block_start" => {
                self.blocks.start(number, event.content_block.unwrap_or_default(), out);
            }
            "content_block_stop" => self.blocks.stop(number, out),
            "message_start" => {
                if let Some(mut message) = event.message {
                    self.begin(&mut message, out);
                }
            }
            "message_delta" => {
                let delta = event.delta.unwrap_or_default();
                let details = delta.stop_details.or(event.stop_details);
                self.ending.take(delta.stop_reason, details.and_then(|details| details.explanation));
                self.count(event.usage.as_deref(), out);
            }
            "message_stop" => return Ok(self.last_step()),
            // Pings, and unknown events.
            _ => {}
        }
        Ok(DecodeStep::More)
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        let mut message: AnswerMessage<'_> = serde_json::from_str(json)?;
        if message.kind == "error" || is_error(message.error) {
            return Ok(DecodeStep::failed(self.failure(message.kind == "error", message.error, json.trim())));
        }
        let Some(content) = message.content.take() else {
            return Err(serde_json::Error::custom("no content"));
        };
        self.begin(&mut message, out);
        for (number, block) in (0..).zip(content) {
            self.blocks.start(number, block, out);
            self.blocks.stop(number, out);
        }
        Ok(self.last_step())
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> DecodeStep {
        DecodeStep::failed(Failure::new(FailureKind::Retryable, "Anthropic stream ended before message_stop"))
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.blocks.seal(incomplete, out);
    }
}

/// The HTTP status that the vendor documents for an error type.
fn status(error_type: &str) -> Option<u16> {
    Some(match error_type {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// The end of an answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Ending {
    /// The reason in the provider's words.
    pub(super) reason: Option<String>,
    /// The provider's explanation.
    pub(super) explanation: Option<String>,
}

impl Ending {
    /// Takes the values that are given; the others stay.
    pub(super) fn take(&mut self, reason: Option<String>, explanation: Option<String>) {
        let given = |text: &String| !text.trim().is_empty();
        self.reason = reason.filter(given).or(self.reason.take());
        self.explanation = explanation.filter(given).or(self.explanation.take());
    }

    /// The last step of an answer of `server`. `called`: the model made tool calls.
    pub(super) fn step(&self, server: &Server, called: bool) -> DecodeStep {
        let raw_stop_reason = self.reason.clone();
        let stop_reason = match self.reason.as_deref() {
            Some("tool_use") => StopReason::ToolUse,
            Some("max_tokens") => StopReason::Length,
            // Some servers report the end of the turn though the model waits for tool results.
            None | Some("end_turn" | "stop_sequence" | "pause_turn") if called => StopReason::ToolUse,
            None | Some("end_turn" | "stop_sequence" | "pause_turn") => StopReason::Stop,
            Some(other) => {
                let failure = self.failure(other, server);
                return DecodeStep::Failed { failure, raw_stop_reason };
            }
        };
        DecodeStep::Done { stop_reason, raw_stop_reason }
    }

    fn failure(&self, reason: &str, server: &Server) -> Failure {
        match reason {
            "refusal" => {
                let text = self.explanation.as_deref().unwrap_or(Refusal::wordless());
                server.failure(FailureKind::ModelRefusal, text.to_owned())
            }
            "sensitive" => {
                let text = "The provider's content policy stopped the answer (stop reason: sensitive).";
                Failure::new(FailureKind::ModelRefusal, text)
            }
            other => {
                let text = format!("Unhandled stop reason: {other}");
                let kind = if is_refusal(other) {
                    FailureKind::ModelRefusal
                } else {
                    classify_message(&server.provider, &text)
                };
                server.failure(kind, text)
            }
        }
    }
}

/// The counts of one answer so far.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Counts {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cache_write1h: Option<u64>,
    reasoning: Option<u64>,
}

impl Counts {
    /// Takes a report; counts that it leaves out stay unchanged.
    pub(super) fn take(&mut self, report: &UsageReport) -> Usage {
        let set = |count: &mut u64, news: Option<u64>| *count = news.unwrap_or(*count);
        set(&mut self.input, report.input_tokens);
        set(&mut self.output, report.output_tokens);
        set(&mut self.cache_read, report.cache_read_input_tokens);
        set(&mut self.cache_write, report.cache_creation_input_tokens);
        self.cache_write1h = report.cache_creation.ephemeral_1h_input_tokens.or(self.cache_write1h);
        let reasoning = report.output_tokens_details.thinking_tokens.or(report.thinking_tokens);
        self.reasoning = reasoning.or(self.reasoning);
        let parts = [self.input, self.output, self.cache_read, self.cache_write];
        Usage {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            cache_write1h: self.cache_write1h,
            reasoning: self.reasoning,
            total_tokens: parts.into_iter().fold(0, u64::saturating_add),
            cost: Cost::default(),
        }
    }
}

#[cfg(test)]
mod stop_tests {
    use super::*;
    use crate::http::Redactor;

    fn step(reason: Option<&str>, explanation: Option<&str>, called: bool) -> DecodeStep {
        let url = reqwest::Url::parse("http://host/v1/messages").unwrap();
        let server = Server::new(&url, "p".into(), Redactor::default());
        let mut ending = Ending::default();
        ending.take(reason.map(str::to_owned), explanation.map(str::to_owned));
        ending.take(None, Some(" ".into()));
        ending.step(&server, called)
    }

    #[test]
    fn every_reason_has_its_meaning() {
        use StopReason::{Length, Stop, ToolUse};
        for (reason, called, expected) in [
            (Some("end_turn"), false, Stop),
            (Some("stop_sequence"), false, Stop),
            (Some("pause_turn"), false, Stop),
            (None, false, Stop),
            (Some("max_tokens"), false, Length),
            (Some("max_tokens"), true, Length),
            (Some("tool_use"), true, ToolUse),
            (Some("end_turn"), true, ToolUse),
            (None, true, ToolUse),
        ] {
            let raw_stop_reason = reason.map(str::to_owned);
            let expected = DecodeStep::Done { stop_reason: expected, raw_stop_reason };
            assert_eq!(step(reason, None, called), expected, "{reason:?}");
        }
    }

    #[test]
    fn reasons_that_are_failures() {
        use FailureKind::{ContextOverflow, Fatal, ModelRefusal};
        let check = |reason: &str, explanation: Option<&str>, kind: FailureKind, text: &str| {
            let failure = Failure::new(kind, text);
            // A session file keeps only the message, and for a refusal its code.
            if kind != ModelRefusal {
                assert_eq!(classify_message("p", text), kind, "{text}");
            }
            let expected = DecodeStep::Failed { failure, raw_stop_reason: Some(reason.to_owned()) };
            assert_eq!(step(Some(reason), explanation, false), expected);
        };
        check("refusal", None, ModelRefusal, "The model refused to complete the request");
        check("refusal", Some("Please try again: 503."), ModelRefusal, "Please try again: 503.");
        check(
            "sensitive",
            None,
            ModelRefusal,
            "The provider's content policy stopped the answer (stop reason: sensitive).",
        );
        check("odd", None, Fatal, "Unhandled stop reason: odd");
        check(
            "model_context_window_exceeded",
            None,
            ContextOverflow,
            "Unhandled stop reason: model_context_window_exceeded",
        );
    }
}

#[cfg(test)]
mod usage_tests {
    use super::*;

    fn take(counts: &mut Counts, report: &str) -> Usage {
        counts.take(&serde_json::from_str(report).unwrap())
    }

    #[test]
    fn what_is_left_out_stays() {
        let mut counts = Counts::default();
        let first = take(
            &mut counts,
            r#"{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":5,"cache_creation_input_tokens":7,
                "cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":3}}"#,
        );
        let expected = Usage {
            input: 10,
            output: 1,
            cache_read: 5,
            cache_write: 7,
            cache_write1h: Some(3),
            reasoning: None,
            total_tokens: 23,
            cost: Cost::default(),
        };
        assert_eq!(first, expected);
        let second = take(
            &mut counts,
            r#"{"input_tokens":null,"output_tokens":20,"cache_creation":null,"output_tokens_details":{"thinking_tokens":9}}"#,
        );
        let expected = Usage { output: 20, reasoning: Some(9), total_tokens: 42, ..expected };
        assert_eq!(second, expected);
        let third =
            take(&mut counts, r#"{"input_tokens":2,"thinking_tokens":11,"output_tokens_details":null}"#);
        assert_eq!(third, Usage { input: 2, reasoning: Some(11), total_tokens: 34, ..expected });
    }
}

#[cfg(test)]
mod tests;
