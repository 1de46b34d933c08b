//! Decodes answers of this API: events and token counts.

use std::collections::HashSet;

use agentd_protocol::message::Usage;
use serde::de::Error as _;
use serde_json::{Value, value::RawValue};

use super::{
    api_types::{Candidate, CandidateCall, CandidatePart, Chunk},
    stop::{Ending, Reason},
};
use crate::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind},
    http::{AnswerDecoder, DecodeStep, Server},
    partial_json::parse_arguments,
};

/// Decodes one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct GoogleDecoder {
    server: Server,
    /// The requested model.
    model: String,
    /// The time of the request, in Unix milliseconds.
    asked_at: u128,
    has_id: bool,
    has_model: bool,
    /// The number of blocks.
    blocks: usize,
    /// The open block of text or thinking.
    current: Option<OpenBlock>,
    /// The ids of the calls.
    calls: HashSet<String>,
    ending: Option<Ending>,
}

/// An open block.
#[cfg_attr(test, derive(Clone))]
struct OpenBlock {
    index: usize,
    kind: BlockKind,
    signature: Option<String>,
}

impl GoogleDecoder {
    /// A decoder for an answer of `server` by `model` to a request at a time in Unix milliseconds.
    pub(super) fn new(server: Server, model: &str, asked_at: u128) -> Self {
        Self {
            server,
            model: model.to_owned(),
            asked_at,
            has_id: false,
            has_model: false,
            blocks: 0,
            current: None,
            calls: HashSet::new(),
            ending: None,
        }
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<Delta>) -> DecodeStep {
        if let Some((status, body)) = chunk.failure() {
            return DecodeStep::failed(self.server.refusal(status, &body));
        }
        let given = |text: &String| !text.is_empty();
        if let Some(id) = chunk.response_id.filter(|id| given(id) && !self.has_id) {
            self.has_id = true;
            out.push(Delta::ResponseId(id));
        }
        if let Some(model) = chunk.model_version.filter(|model| given(model) && !self.has_model) {
            self.has_model = true;
            let bare = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
            if bare(&model) != bare(&self.model) {
                out.push(Delta::ResponseModel(model));
            }
        }
        out.extend(chunk.usage_metadata.as_ref().and_then(usage).map(Delta::Usage));
        // A request asks for one candidate only.
        if let Some(candidate) = chunk.candidates.into_iter().next() {
            self.candidate(candidate, out);
        }
        if let Some(name) = chunk.prompt_feedback.block_reason.filter(given) {
            let message = chunk.prompt_feedback.block_reason_message;
            self.ending.get_or_insert(Ending::Blocked(Reason { name, message }));
        }
        DecodeStep::More
    }

    fn candidate(&mut self, candidate: Candidate, out: &mut Vec<Delta>) {
        for part in candidate.content.parts {
            self.part(part, out);
        }
        if let Some(name) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
            self.ending = Some(Ending::Finished(Reason { name, message: candidate.finish_message }));
        }
    }

    fn part(&mut self, part: CandidatePart, out: &mut Vec<Delta>) {
        let is_thought = part.is_thought();
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            self.call(call, signature, out);
            return;
        }
        let Some(text) = part.text else { return };
        if text.is_empty() && signature.is_none() {
            return;
        }
        let kind = if is_thought { BlockKind::Thinking } else { BlockKind::Text };
        // A signature without a text belongs to the block before.
        let goes_on = self.current.as_ref().is_some_and(|current| current.kind == kind);
        if !goes_on {
            self.close(false, out);
            self.current = Some(OpenBlock { index: self.open(kind.clone(), out), kind, signature: None });
        }
        let Some(current) = &mut self.current else { return };
        current.signature = signature.or(current.signature.take());
        if !text.is_empty() {
            out.push(Delta::Extend { index: current.index, delta: text });
        }
    }

    /// Takes a tool call, which comes whole.
    fn call(&mut self, call: CandidateCall, signature: Option<String>, out: &mut Vec<Delta>) {
        self.close(false, out);
        let name = call.name.unwrap_or_default();
        let id = call.id.filter(|id| !id.is_empty() && !self.calls.contains(id));
        let id = id.unwrap_or_else(|| format!("{name}_{}_{}", self.asked_at, self.blocks + 1));
        self.calls.insert(id.clone());
        let index = self.open(BlockKind::ToolCall { id, name }, out);
        let arguments = call.args.unwrap_or_else(|| "{}".to_owned());
        // Arguments in the form in which they are sent back; unreadable ones are kept as they are.
        let read = parse_arguments(&arguments).ok().and_then(|read| serde_json::to_string(&read).ok());
        out.push(Delta::Extend { index, delta: read.unwrap_or(arguments) });
        out.push(Delta::Seal { index, seal: BlockSeal { signature, ..BlockSeal::default() } });
    }

    fn open(&mut self, kind: BlockKind, out: &mut Vec<Delta>) -> usize {
        let index = self.blocks;
        self.blocks += 1;
        out.push(Delta::Open { index, kind });
        index
    }

    fn close(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        if let Some(OpenBlock { index, signature, .. }) = self.current.take() {
            out.push(Delta::Seal { index, seal: BlockSeal { signature, redacted: false, incomplete } });
        }
    }
}

impl AnswerDecoder for GoogleDecoder {
    fn event(&mut self, _: &str, data: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        // Some proxies send errors in a list, as the vendor does for answers that are not streamed.
        if data.starts_with('[') {
            return self.list(data, out);
        }
        let chunk = serde_json::from_str(data)?;
        Ok(self.chunk(chunk, out))
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        let step = if json.trim_start().starts_with('[') {
            self.list(json, out)?
        } else {
            let chunk: Chunk = serde_json::from_str(json)?;
            if chunk.is_foreign() {
                return Err(serde_json::Error::custom("no candidates"));
            }
            self.chunk(chunk, out)
        };
        Ok(match step {
            DecodeStep::More => self.end(out),
            step => step,
        })
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> DecodeStep {
        match &self.ending {
            Some(ending) => ending.step(&self.server, !self.calls.is_empty()),
            None => DecodeStep::failed(Failure::new(
                FailureKind::Retryable,
                "Google's stream ended without a finish reason",
            )),
        }
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.close(incomplete, out);
    }

    fn has_all_content(&self) -> bool {
        self.ending.is_some()
    }
}

impl GoogleDecoder {
    /// Takes a list of chunks, the form of a stream without server-sent events.
    fn list(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        let chunks: Vec<&RawValue> = serde_json::from_str(json)?;
        if chunks.is_empty() {
            return Err(serde_json::Error::custom("an empty list"));
        }
        for chunk in chunks {
            let chunk: Chunk = serde_json::from_str(chunk.get())?;
            if chunk.is_foreign() {
                return Err(serde_json::Error::custom("no candidates"));
            }
            match self.chunk(chunk, out) {
                DecodeStep::More => {}
                step => return Ok(step),
            }
        }
        Ok(DecodeStep::More)
    }
}

/// Reads a usage report; `None` if the value is not one.
pub(super) fn usage(report: &Value) -> Option<Usage> {
    let report = report.as_object()?;
    let number = |name: &str| report.get(name).and_then(Value::as_u64);
    let count = |name: &str| number(name).unwrap_or(0);
    let prompt = count("promptTokenCount");
    let cache_read = count("cachedContentTokenCount").min(prompt);
    let thoughts = count("thoughtsTokenCount");
    let output = count("candidatesTokenCount").saturating_add(thoughts);
    // Results of the provider's own tools count as input.
    let tool_use = count("toolUsePromptTokenCount");
    Some(Usage {
        input: (prompt - cache_read).saturating_add(tool_use),
        output,
        cache_read,
        reasoning: Some(thoughts),
        total_tokens: number("totalTokenCount")
            .unwrap_or_else(|| prompt.saturating_add(tool_use).saturating_add(output)),
        ..Usage::default()
    })
}

#[cfg(test)]
mod usage_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_no_input_and_thoughts_are_output() {
        let check = |report: Value, expected: [u64; 5]| {
            let found = usage(&report).unwrap();
            let found =
                [found.input, found.output, found.cache_read, found.reasoning.unwrap(), found.total_tokens];
            assert_eq!(found, expected, "{report}");
        };
        check(
            json!({"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}),
            [100, 20, 0, 0, 120],
        );
        check(
            json!({"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 20,
                "thoughtsTokenCount": 7, "totalTokenCount": 127}),
            [40, 27, 60, 7, 127],
        );
        check(json!({"promptTokenCount": 5, "toolUsePromptTokenCount": 3}), [8, 0, 0, 0, 8]);
        check(json!({"cachedContentTokenCount": 9, "promptTokenCount": null}), [0, 0, 0, 0, 0]);
        assert_eq!(usage(&Value::Null), None);
    }
}

#[cfg(test)]
mod tests;
