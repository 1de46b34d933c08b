//! What the events of the messages API mean.

use agentd_protocol::model::{Model, ModelCost};
use serde::de::Error as _;
use serde_json::value::RawValue;

use super::{
    blocks::Blocks,
    compat::{Compat, FallbackModel},
    stop::Ending,
    usage::Counts,
    wire::incoming::{ErrorDetails, Event, Message, Usage, is_error},
};
use crate::{
    Delta,
    cost::cost,
    failure::{Evidence, Failure, FailureKind, classify},
    http::{ErrorBody, Server, Step, Wire},
};

/// Reads one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Reader {
    server: Server,
    /// The model asked for.
    model: String,
    /// The models that may answer in its place.
    fallbacks: Vec<FallbackModel>,
    /// The prices of the one that does.
    price: Option<ModelCost>,
    blocks: Blocks,
    counts: Counts,
    ending: Ending,
}

impl Reader {
    /// A reader for an answer of `server`, asked for `model`.
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

    /// What is known from the beginning.
    fn begin(&mut self, message: &mut Message<'_>, out: &mut Vec<Delta>) {
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

    fn count(&mut self, report: Option<&Usage>, out: &mut Vec<Delta>) {
        if let Some(report) = report {
            let mut usage = self.counts.take(report);
            if let Some(price) = &self.price {
                usage.cost = cost(price, &usage);
            }
            out.push(Delta::Usage(usage));
        }
    }

    fn last_step(&self) -> Step {
        self.ending.step(&self.server, self.blocks.has_calls())
    }

    /// The failure that `data` tells of. A failure in this API's own form is shown as it came.
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

impl Wire for Reader {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let event: Event<'_> = serde_json::from_str(data)?;
        let kind = if event.kind.is_empty() { name } else { event.kind };
        if name == "error" || kind == "error" || is_error(event.error) {
            let is_event = name == "error" || kind == "error";
            return Ok(Step::failed(self.failure(is_event, event.error, data)));
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
            // Pings, and what is yet to be invented.
            _ => {}
        }
        Ok(Step::More)
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let mut message: Message<'_> = serde_json::from_str(json)?;
        if message.kind == "error" || is_error(message.error) {
            return Ok(Step::failed(self.failure(message.kind == "error", message.error, json.trim())));
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

    fn end(&mut self, _: &mut Vec<Delta>) -> Step {
        Step::failed(Failure::new(FailureKind::Retryable, "Anthropic stream ended before message_stop"))
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.blocks.seal(incomplete, out);
    }
}

/// The status that a failure would have had before the answer began, as the vendor documents it.
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

#[cfg(test)]
mod tests;
