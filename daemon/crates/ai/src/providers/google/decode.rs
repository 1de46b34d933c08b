//! What the events of this API mean.

use std::collections::HashSet;

use serde::de::Error as _;
use serde_json::value::RawValue;

use super::{
    stop::{Ending, Reason},
    usage::usage,
    wire::incoming::{Candidate, Chunk, FunctionCall, Part},
};
use crate::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind},
    http::{Server, Step, Wire},
    partial_json::parse_arguments,
};

/// Reads one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Reader {
    server: Server,
    /// The model asked for.
    model: String,
    /// When it was asked.
    asked_at: u128,
    has_id: bool,
    has_model: bool,
    /// How many blocks there are.
    blocks: usize,
    /// The text or the thinking that grows.
    current: Option<Current>,
    /// The ids of the calls.
    calls: HashSet<String>,
    ending: Option<Ending>,
}

/// An open block.
#[cfg_attr(test, derive(Clone))]
struct Current {
    index: usize,
    kind: BlockKind,
    signature: Option<String>,
}

impl Reader {
    /// A reader for an answer of `server`, asked for `model` at a time in Unix milliseconds.
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

    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<Delta>) -> Step {
        if let Some((status, body)) = chunk.failure() {
            return Step::failed(self.server.refusal(status, &body));
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
        // Only one answer is asked for.
        if let Some(candidate) = chunk.candidates.into_iter().next() {
            self.candidate(candidate, out);
        }
        if let Some(name) = chunk.prompt_feedback.block_reason.filter(given) {
            let message = chunk.prompt_feedback.block_reason_message;
            self.ending.get_or_insert(Ending::Blocked(Reason { name, message }));
        }
        Step::More
    }

    fn candidate(&mut self, candidate: Candidate, out: &mut Vec<Delta>) {
        for part in candidate.content.parts {
            self.part(part, out);
        }
        if let Some(name) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
            self.ending = Some(Ending::Finished(Reason { name, message: candidate.finish_message }));
        }
    }

    fn part(&mut self, part: Part, out: &mut Vec<Delta>) {
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
        // A signature without a text of its own belongs to what came before.
        let goes_on = self.current.as_ref().is_some_and(|current| current.kind == kind);
        if !goes_on {
            self.close(false, out);
            self.current = Some(Current { index: self.open(kind.clone(), out), kind, signature: None });
        }
        let Some(current) = &mut self.current else { return };
        current.signature = signature.or(current.signature.take());
        if !text.is_empty() {
            out.push(Delta::Extend { index: current.index, delta: text });
        }
    }

    /// A call comes whole.
    fn call(&mut self, call: FunctionCall, signature: Option<String>, out: &mut Vec<Delta>) {
        self.close(false, out);
        let name = call.name.unwrap_or_default();
        let id = call.id.filter(|id| !id.is_empty() && !self.calls.contains(id));
        let id = id.unwrap_or_else(|| format!("{name}_{}_{}", self.asked_at, self.blocks + 1));
        self.calls.insert(id.clone());
        let index = self.open(BlockKind::ToolCall { id, name }, out);
        let arguments = call.args.unwrap_or_else(|| "{}".to_owned());
        // In the form in which arguments go out; what cannot be read is kept, and said to be so.
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
        if let Some(Current { index, signature, .. }) = self.current.take() {
            out.push(Delta::Seal { index, seal: BlockSeal { signature, redacted: false, incomplete } });
        }
    }
}

impl Wire for Reader {
    fn event(&mut self, _: &str, data: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        // Some proxies send errors in a list, as the vendor does outside of streams.
        if data.starts_with('[') {
            return self.list(data, out);
        }
        let chunk = serde_json::from_str(data)?;
        Ok(self.chunk(chunk, out))
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
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
            Step::More => self.end(out),
            step => step,
        })
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Step {
        match &self.ending {
            Some(ending) => ending.step(&self.server, !self.calls.is_empty()),
            None => Step::failed(Failure::new(
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

impl Reader {
    /// Takes a list of chunks: what the API streams where it is not asked for events.
    fn list(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
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
                Step::More => {}
                step => return Ok(step),
            }
        }
        Ok(Step::More)
    }
}

#[cfg(test)]
mod tests;
