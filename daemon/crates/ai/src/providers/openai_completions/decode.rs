//! Decodes answers of the chat completions API: events, stop reasons.

use agentd_protocol::message::StopReason;
use serde::de::Error as _;

use super::{api_types::Chunk, blocks::AnswerState, compat::Compat};
use crate::{
    Delta,
    failure::{Failure, FailureKind, classify_message, is_refusal},
    http::{AnswerDecoder, DecodeStep, Server},
};

/// Decodes one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct CompletionsDecoder {
    server: Server,
    state: AnswerState,
    requires_finish_reason: bool,
}

impl CompletionsDecoder {
    /// A decoder for an answer of `server` by `model`.
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
            // Some servers report `stop` though the model waits for tool results.
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

#[cfg(test)]
mod tests;
