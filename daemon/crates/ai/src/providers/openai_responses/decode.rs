//! What the events of the responses API mean.

use std::sync::Arc;

use agentd_protocol::model::Model;
use serde::de::Error as _;
use serde_json::{Value, value::RawValue};

use super::{
    answer::outcome,
    blocks::{Blocks, Key, Kind},
    trouble,
    usage::usage,
    wire::incoming::{Event, Item, Response, json_text, refusal, text},
};
use crate::{
    Delta,
    failure::{Failure, FailureKind, Refusal},
    http::{Server, Step, Wire},
};

/// Reads one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Reader {
    server: Server,
    /// The model asked for.
    model: Arc<Model>,
    has_id: bool,
    has_model: bool,
    blocks: Blocks,
    refusal: Refusal,
}

impl Reader {
    /// A reader for an answer of `server`, asked for `model`.
    pub(in crate::providers) fn new(server: Server, model: &Arc<Model>) -> Self {
        let (blocks, refusal) = (Blocks::default(), Refusal::default());
        Self { server, model: Arc::clone(model), has_id: false, has_model: false, blocks, refusal }
    }

    /// Takes who answers.
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

    /// Takes a response that has ended in the way that `event` says.
    fn ended(
        &mut self,
        event: &str,
        response: &Response<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<Step, serde_json::Error> {
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
            (Step::Done { raw_stop_reason, .. }, Some(failure)) => Step::Failed { failure, raw_stop_reason },
            (step, _) => step,
        })
    }
}

impl Wire for Reader {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let event: Event<'_> = serde_json::from_str(data)?;
        let kind = event.kind.as_deref().unwrap_or(name);
        let item_id = event.item_id.as_deref().unwrap_or_default();
        let key = Key { output_index: event.output_index, item_id };
        let Some(kind) = kind.strip_prefix("response.") else {
            return Ok(match event.error {
                _ if kind == "error" => Step::failed(trouble::of_event(&self.server, data)),
                Some(error) if error.get().starts_with(['{', '"']) => {
                    Step::failed(trouble::of_body(&self.server, data))
                }
                _ => Step::More,
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
                    let item: Item<'_> = serde_json::from_str(item.get())?;
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
        Ok(Step::More)
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let response: Response<'_> = serde_json::from_str(json)?;
        let is_response = response.output.is_some() || response.object.as_deref() == Some("response");
        if !is_response {
            let is_error = response.object.as_deref() == Some("error")
                || response.error.is_some_and(|error| error.get().starts_with(['{', '"']));
            if is_error {
                return Ok(Step::failed(trouble::of_body(&self.server, json)));
            }
            return Err(serde_json::Error::custom("no output"));
        }
        self.ended("completed", &response, out)
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Step {
        Step::failed(Failure::new(
            FailureKind::Retryable,
            "OpenAI Responses stream ended before a terminal response event",
        ))
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.blocks.seal(incomplete, out);
    }
}

#[cfg(test)]
mod tests;
