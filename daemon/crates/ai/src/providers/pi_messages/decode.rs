//! Decodes answers of this API: events and token counts.

use agentd_protocol::message::{StopReason, Usage};
use serde::{Deserialize, de::Error as _};
use serde_json::{Error, Value, value::RawValue};

use crate::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind, classify_message},
    http::{AnswerDecoder, DecodeStep, ErrorBody, Server},
    lenient::{nullable, number, text},
    providers::call_id::generated_id,
};

/// Decodes one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct PiMessagesDecoder {
    server: Server,
    blocks: Vec<Block>,
}

/// A block, and its length so far in bytes.
#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
struct Block {
    length: usize,
    is_sealed: bool,
}

impl PiMessagesDecoder {
    /// A decoder for an answer of `server`.
    pub(super) fn new(server: Server) -> Self {
        Self { server, blocks: Vec::new() }
    }

    fn open(
        &mut self,
        event: &StreamEvent<'_>,
        kind: BlockKind,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, Error> {
        let index = self.blocks.len();
        if event.content_index != u64::try_from(index).ok() {
            return Err(out_of_order(event));
        }
        self.blocks.push(Block::default());
        out.push(Delta::Open { index, kind });
        Ok(DecodeStep::More)
    }

    /// The block of an event.
    fn block(&mut self, event: &StreamEvent<'_>) -> Result<(usize, &mut Block), Error> {
        let index = event.content_index.and_then(|index| usize::try_from(index).ok());
        let block = index.and_then(|index| Some((index, self.blocks.get_mut(index)?)));
        block.filter(|(_, block)| !block.is_sealed).ok_or_else(|| out_of_order(event))
    }

    fn extend(&mut self, event: StreamEvent<'_>, out: &mut Vec<Delta>) -> Result<DecodeStep, Error> {
        let (index, block) = self.block(&event)?;
        let delta = event.delta.unwrap_or_default();
        block.length += delta.len();
        out.push(Delta::Extend { index, delta });
        Ok(DecodeStep::More)
    }

    /// Ends a block. `whole`: its text, of which pieces may be missing.
    fn close(
        &mut self,
        event: &StreamEvent<'_>,
        whole: Option<&str>,
        signature: Option<String>,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, Error> {
        let (index, block) = self.block(event)?;
        if let Some(rest) = whole.and_then(|whole| whole.get(block.length..)).filter(|rest| !rest.is_empty())
        {
            out.push(Delta::Extend { index, delta: rest.to_owned() });
        }
        block.is_sealed = true;
        let redacted = event.redacted == Some(Value::Bool(true));
        out.push(Delta::Seal { index, seal: BlockSeal { signature, redacted, incomplete: false } });
        Ok(DecodeStep::More)
    }

    /// Emits the id, the model and the token counts of the answer.
    fn report(&self, event: &mut StreamEvent<'_>, out: &mut Vec<Delta>) -> Result<(), Error> {
        out.extend(event.response_id.take().filter(|id| !id.is_empty()).map(Delta::ResponseId));
        out.extend(event.response_model.take().filter(|model| !model.is_empty()).map(Delta::ResponseModel));
        if let Some(report) = event.usage.take().filter(Value::is_object) {
            let mut usage: Usage = serde_json::from_value(report)?;
            // The gateway computed the cost.
            usage.cost.total_from_provider.get_or_insert(false);
            out.push(Delta::Usage(usage));
        }
        Ok(())
    }

    fn failed(&self, event: StreamEvent<'_>, data: &str) -> DecodeStep {
        let provider = &self.server.provider;
        let raw_stop_reason = event.reason;
        let failure = match event.error_message.filter(|text| !text.is_empty()) {
            // The gateway was aborted, not this request: retryable.
            Some(text) if raw_stop_reason.as_deref() == Some("aborted") => self
                .server
                .failure(FailureKind::Retryable, format!("The gateway cancelled the request: {text}")),
            Some(text) if event.code.as_deref() == Some("model_refused") => {
                self.server.failure(FailureKind::ModelRefusal, text)
            }
            Some(text) => self.server.failure(classify_message(provider, &text), text),
            None => self.server.refusal(None, &ErrorBody::read(data)),
        };
        DecodeStep::Failed { failure, raw_stop_reason }
    }
}

fn out_of_order(event: &StreamEvent<'_>) -> Error {
    let kind = event.kind.as_deref().unwrap_or_default();
    let index = event.content_index.map_or("none".to_owned(), |index| index.to_string());
    Error::custom(format!("{kind} with the content index {index}"))
}

impl AnswerDecoder for PiMessagesDecoder {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, Error> {
        let mut event: StreamEvent<'_> = serde_json::from_str(data)?;
        let kind = event.kind.clone().unwrap_or_else(|| name.to_owned());
        match kind.as_str() {
            "text_start" => self.open(&event, BlockKind::Text, out),
            "thinking_start" => self.open(&event, BlockKind::Thinking, out),
            "toolcall_start" => {
                let id = event.id.take().filter(|id| !id.is_empty()).unwrap_or_else(generated_id);
                let name = event.tool_name.take().unwrap_or_default();
                self.open(&event, BlockKind::ToolCall { id, name }, out)
            }
            "text_delta" | "thinking_delta" | "toolcall_delta" => self.extend(event, out),
            "text_end" | "thinking_end" => {
                let (whole, signature) = (event.content.take(), event.content_signature.take());
                self.close(&event, whole.as_deref(), signature, out)
            }
            "toolcall_end" => {
                // The pieces are the text of the arguments; without pieces, the finished call has them.
                let has_pieces = self.block(&event)?.1.length > 0;
                let whole =
                    event.tool_call.arguments.map(|arguments| arguments.get()).filter(|_| !has_pieces);
                let signature = event.tool_call.thought_signature.take();
                self.close(&event, whole, signature, out)
            }
            "done" => {
                self.report(&mut event, out)?;
                let stop_reason = match event.reason.as_deref() {
                    Some("length") => StopReason::Length,
                    Some("toolUse") => StopReason::ToolUse,
                    _ => StopReason::Stop,
                };
                Ok(DecodeStep::Done { stop_reason, raw_stop_reason: None })
            }
            "error" => {
                self.report(&mut event, out)?;
                Ok(self.failed(event, data))
            }
            _ if event.kind.is_none() && event.error.is_some() => Ok(self.failed(event, data)),
            _ => Ok(DecodeStep::More),
        }
    }

    /// This API always streams: a single value is an error or one event.
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, Error> {
        match self.event("", json, out)? {
            DecodeStep::More => Err(Error::custom("no events")),
            step => Ok(step),
        }
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> DecodeStep {
        let text = format!("{}'s stream ended without a terminal event", self.server.provider);
        DecodeStep::failed(Failure::new(FailureKind::Retryable, text))
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        for (index, block) in self.blocks.iter_mut().enumerate() {
            if !std::mem::replace(&mut block.is_sealed, true) {
                out.push(Delta::Seal { index, seal: BlockSeal { incomplete, ..BlockSeal::default() } });
            }
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type", deserialize_with = "text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "number")]
    pub(super) content_index: Option<u64>,
    #[serde(deserialize_with = "text")]
    pub(super) delta: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) content: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) content_signature: Option<String>,
    pub(super) redacted: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) tool_name: Option<String>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) tool_call: FinishedCall<'a>,
    #[serde(deserialize_with = "text")]
    pub(super) reason: Option<String>,
    pub(super) usage: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(super) response_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) response_model: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) error_message: Option<String>,
    /// A field of agentd: `model_refused` if the model refused.
    #[serde(deserialize_with = "text")]
    pub(super) code: Option<String>,
    pub(super) error: Option<Value>,
}

/// A finished call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FinishedCall<'a> {
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(deserialize_with = "text")]
    pub(super) thought_signature: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use agentd_protocol::{message::AssistantMessage, model::Model};
    use serde_json::json;

    use super::*;
    use crate::{
        Accumulator,
        http::{BodyDecoder, Redactor},
    };

    fn fold(body: &[u8]) -> (AssistantMessage, Option<FailureKind>) {
        let url = reqwest::Url::parse("http://host:1/v1").unwrap();
        let server = Server::new(&url, "radius".into(), Redactor::default());
        let mut decoder = BodyDecoder::new(server.clone(), PiMessagesDecoder::new(server));
        let mut deltas = Vec::new();
        decoder.feed(body, &mut deltas);
        if !decoder.is_finished() {
            decoder.end(&mut deltas);
        }
        let mut accumulator = Accumulator::new(Arc::new(Model::placeholder()), 0);
        for delta in deltas {
            accumulator.fold(delta);
        }
        let kind = accumulator.failure().map(|failure| failure.kind);
        (accumulator.into_message(), kind)
    }

    fn composed(name: &str) -> (AssistantMessage, Option<FailureKind>) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/composed");
        fold(&std::fs::read(folder.join(format!("pi-messages-{name}.sse"))).unwrap())
    }

    #[test]
    fn an_answer_with_everything() {
        let (message, _) = composed("full");
        assert_eq!(
            serde_json::to_value(&message.content).unwrap(),
            json!([
                {"type": "thinking", "thinking": "Hm. Yes.", "thinkingSignature": "sig-1"},
                {"type": "text", "text": "Both — ✓", "textSignature": "sig-2"},
                {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "a"}, "thoughtSignature": "sig-3"},
                {"type": "toolCall", "id": "c2", "name": "now", "arguments": {"zone": "utc"}},
            ])
        );
        assert_eq!((message.stop_reason, message.response_id.as_deref()), (StopReason::ToolUse, Some("r-1")));
        assert_eq!(message.response_model.as_deref(), Some("claude-x"));
        assert_eq!((message.usage.input, message.usage.cost.total), (10, 0.25));
    }

    #[test]
    fn failures_are_sorted() {
        let check = |name: &str, kind: FailureKind, text: &str| {
            let (message, found) = composed(name);
            assert_eq!((found, message.error_message.as_deref()), (Some(kind), Some(text)), "{name}");
        };
        check("error", FailureKind::Retryable, "529 overloaded");
        check("refusal", FailureKind::ModelRefusal, "That is not something to try again.");
        check("filter", FailureKind::ModelRefusal, "Provider finish_reason: content_filter");
        check("aborted", FailureKind::Retryable, "The gateway cancelled the request: upstream closed");
        check("redacted", FailureKind::Retryable, "radius's stream ended without a terminal event");
        let (redacted, _) = composed("redacted");
        assert_eq!(serde_json::to_value(&redacted.content).unwrap()[0]["redacted"], true);
        let (_, kind) = fold(br#"{"error":{"message":"Invalid API key","code":"unauthorized"}}"#);
        assert_eq!(kind, Some(FailureKind::Auth));
        let (message, kind) = fold(b"data: {\"type\":\"text_delta\",\"contentIndex\":3,\"delta\":\"x\"}\n\n");
        assert_eq!(kind, Some(FailureKind::Fatal));
        assert!(message.error_message.unwrap().contains("text_delta with the content index 3"));
    }

    /// A call without an id could not be answered.
    #[test]
    fn calls_without_an_id_get_different_ones() {
        let start = |index: usize, id: &str| {
            format!(
                "data: {{\"type\":\"toolcall_start\",\"contentIndex\":{index}{id},\"toolName\":\"ls\"}}\n\n"
            )
        };
        let body =
            [start(0, ",\"id\":null"), start(1, ",\"id\":\"\""), start(2, ""), start(3, ",\"id\":\"c1\"")];
        let (message, _) = fold(body.concat().as_bytes());
        let ids: Vec<&str> = message.tool_calls().map(|call| &*call.id).collect();
        let (given, made) = ids.split_last().unwrap();
        assert_eq!((*given, made.len()), ("c1", 3));
        let different: std::collections::HashSet<_> = made.iter().collect();
        assert!(different.len() == 3 && made.iter().all(|id| id.starts_with("call_")), "{ids:?}");
    }
}
