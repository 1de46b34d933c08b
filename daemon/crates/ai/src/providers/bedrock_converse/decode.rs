//! Decodes answers of the Converse API: events, stop reasons, token counts.

use agentd_protocol::message::{Cost, StopReason, Usage};
use serde::de::Error as _;
use serde_json::Value;

use super::{
    api_types::{BlockStart, StreamEvent, UsageReport, WholeAnswer},
    blocks::Blocks,
};
use crate::{
    Delta,
    failure::{Failure, FailureKind, classify_message, is_refusal},
    http::{AnswerDecoder, AwsError, DecodeStep, ErrorBody, Framing, Server},
};

/// Decodes one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct ConverseDecoder {
    server: Server,
    blocks: Blocks,
    stop_reason: Option<String>,
}

impl ConverseDecoder {
    /// A decoder for an answer of `server`.
    pub(super) fn new(server: Server) -> Self {
        Self { server, blocks: Blocks::default(), stop_reason: None }
    }

    fn last_step(&self) -> DecodeStep {
        last_step(self.stop_reason.as_deref(), self.blocks.has_calls(), &self.server)
    }
}

impl AnswerDecoder for ConverseDecoder {
    const FRAMING: Framing = Framing::AwsEventStream;

    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, serde_json::Error> {
        let event: StreamEvent = match name {
            "contentBlockDelta" | "contentBlockStart" | "contentBlockStop" | "messageStop" | "metadata" => {
                serde_json::from_str(data)?
            }
            // The start of the message, and unknown events.
            _ => return Ok(DecodeStep::More),
        };
        let number = event.content_block_index.unwrap_or(0);
        match name {
            "contentBlockDelta" => self.blocks.extend(number, event.delta, out),
            "contentBlockStart" => {
                self.blocks.start(number, BlockStart { tool_use: event.start.tool_use }, out);
            }
            "contentBlockStop" => self.blocks.stop(number, out),
            "messageStop" => {
                self.stop_reason = event.stop_reason.filter(|reason| !reason.is_empty());
            }
            _ => {
                out.extend(event.usage.map(|report| Delta::Usage(usage(&report))));
                // The token counts come last.
                if self.stop_reason.is_some() {
                    return Ok(self.last_step());
                }
            }
        }
        Ok(DecodeStep::More)
    }

    fn exception(&mut self, name: &str, data: &str, server: &Server) -> DecodeStep {
        DecodeStep::failed(server.aws_refusal(None, &AwsError::of(name, data)))
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        let whole: WholeAnswer = serde_json::from_str(json)?;
        let Some(output) = whole.output else {
            if let Some(error) = AwsError::in_body(json) {
                return Ok(DecodeStep::failed(self.server.aws_refusal(None, &error)));
            }
            let value: Value = serde_json::from_str(json)?;
            if value.get("error").is_some_and(|error| !error.is_null()) || value.get("message").is_some() {
                return Ok(DecodeStep::failed(self.server.refusal(None, &ErrorBody::read(json))));
            }
            return Err(serde_json::Error::custom("no output"));
        };
        for (number, block) in (0..).zip(output.message.content) {
            self.blocks.whole(number, block, out);
        }
        out.extend(whole.usage.map(|report| Delta::Usage(usage(&report))));
        self.stop_reason = whole.stop_reason;
        Ok(self.last_step())
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> DecodeStep {
        self.last_step()
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.blocks.seal(incomplete, out);
    }

    fn has_all_content(&self) -> bool {
        self.stop_reason.is_some()
    }
}

/// The last step of an answer of `server` that ended for `reason`. `called`: the model made tool calls.
pub(super) fn last_step(reason: Option<&str>, called: bool, server: &Server) -> DecodeStep {
    let stop_reason = match reason {
        // Some models report the end of the turn though they wait for tool results.
        Some("end_turn" | "stop_sequence") if called => StopReason::ToolUse,
        Some("end_turn" | "stop_sequence") => StopReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("tool_use") => StopReason::ToolUse,
        Some(other) => {
            let text = format!("Provider stopped with: {other}");
            let kind = if is_refusal(other) {
                FailureKind::ModelRefusal
            } else {
                classify_message(&server.provider, &text)
            };
            let failure = server.failure(kind, text);
            return DecodeStep::Failed { failure, raw_stop_reason: Some(other.to_owned()) };
        }
        None => {
            let text = "Bedrock stream ended without a stop reason";
            return DecodeStep::failed(Failure::new(FailureKind::Retryable, text));
        }
    };
    DecodeStep::Done { stop_reason, raw_stop_reason: reason.map(str::to_owned) }
}

/// The token counts of an answer. The input excludes the tokens that were read from or written to the cache.
pub(super) fn usage(report: &UsageReport) -> Usage {
    let count = Option::unwrap_or_default;
    let (input, output): (u64, u64) = (count(report.input_tokens), count(report.output_tokens));
    let (cache_read, cache_write) =
        (count(report.cache_read_input_tokens), count(report.cache_write_input_tokens));
    let sum = [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add);
    let hour = report.cache_details.iter().filter(|detail| detail.ttl.as_deref() == Some("1h"));
    let hour = hour.filter_map(|detail| detail.input_tokens).fold(0, u64::saturating_add);
    Usage {
        input,
        output,
        cache_read,
        cache_write,
        cache_write1h: Some(hour).filter(|hour| *hour > 0),
        reasoning: None,
        total_tokens: report.total_tokens.filter(|total| *total > 0).unwrap_or(sum),
        cost: Cost::default(),
    }
}

#[cfg(test)]
mod stop_tests {
    use super::*;
    use crate::http::Redactor;

    fn step(reason: Option<&str>, called: bool) -> DecodeStep {
        let url = reqwest::Url::parse("http://host/").unwrap();
        last_step(reason, called, &Server::new(&url, "p".into(), Redactor::default()))
    }

    #[test]
    fn every_reason_has_its_meaning() {
        use StopReason::{Length, Stop, ToolUse};
        for (reason, called, stop_reason) in [
            ("end_turn", false, Stop),
            ("end_turn", true, ToolUse),
            ("stop_sequence", false, Stop),
            ("tool_use", true, ToolUse),
            ("max_tokens", true, Length),
            ("model_context_window_exceeded", false, Length),
        ] {
            let expected = DecodeStep::Done { stop_reason, raw_stop_reason: Some(reason.to_owned()) };
            assert_eq!(step(Some(reason), called), expected);
        }
    }

    #[test]
    fn reasons_that_are_failures() {
        use FailureKind::{Fatal, ModelRefusal};
        for (reason, kind) in [
            ("guardrail_intervened", ModelRefusal),
            ("content_filtered", ModelRefusal),
            ("refusal", ModelRefusal),
            ("malformed_model_output", Fatal),
            ("odd", Fatal),
        ] {
            let failure = Failure::new(kind, format!("Provider stopped with: {reason}"));
            let expected = DecodeStep::Failed { failure, raw_stop_reason: Some(reason.to_owned()) };
            assert_eq!(step(Some(reason), false), expected);
        }
        let DecodeStep::Failed { failure, raw_stop_reason: None } = step(None, true) else { panic!() };
        assert_eq!(failure.kind, FailureKind::Retryable);
        // A session file keeps only the message, which has to mean the same.
        assert_eq!(classify_message("p", &failure.message), failure.kind);
    }
}

#[cfg(test)]
mod usage_tests {
    use super::*;

    fn check(report: &str, expected: Usage) {
        assert_eq!(usage(&serde_json::from_str(report).unwrap()), expected, "{report}");
    }

    #[test]
    fn counts() {
        let none = Usage { cost: Cost::default(), ..Usage::default() };
        check(
            r#"{"inputTokens":10,"outputTokens":4,"totalTokens":14}"#,
            Usage { input: 10, output: 4, total_tokens: 14, ..none.clone() },
        );
        check(
            r#"{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheWriteInputTokens":9,"cacheDetails":
                [{"ttl":"5m","inputTokens":4},{"ttl":"1h","inputTokens":5}]}"#,
            Usage {
                input: 1,
                output: 2,
                cache_read: 3,
                cache_write: 9,
                cache_write1h: Some(5),
                total_tokens: 15,
                ..none.clone()
            },
        );
        check(r#"{"inputTokens":null,"outputTokens":-1,"cacheDetails":null}"#, none);
    }
}

#[cfg(test)]
mod tests;
