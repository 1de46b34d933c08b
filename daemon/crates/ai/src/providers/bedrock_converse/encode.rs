//! Requests of the Converse API.

use agentd_protocol::message::Message;
use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    messages::messages,
    thinking::Thinking,
    tools,
    traits::Traits,
    wire::outgoing::{Block, Body, CachePoint, Role, SystemBlock, WireMessage},
};
use crate::{
    CacheRetention, Request,
    estimate::input_tokens,
    handoff::{self, SystemPlacement, Target},
    providers::{anthropic_messages::call_id, sampling},
};

/// Configured fields that belong into `inferenceConfig`, under the names of this API and of others.
const INFERENCE: [(&str, &str); 7] = [
    ("maxTokens", "maxTokens"),
    ("max_tokens", "maxTokens"),
    ("temperature", "temperature"),
    ("topP", "topP"),
    ("top_p", "topP"),
    ("stopSequences", "stopSequences"),
    ("stop_sequences", "stopSequences"),
];

/// Configured fields that belong into the request itself.
const TOP: [&str; 7] = [
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
];

/// The model's own fields, where they are configured as such.
const OWN: &str = "additionalModelRequestFields";

/// Encodes `request`.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(request: &Request) -> Result<Bytes, serde_json::Error> {
    let traits = Traits::of(request);
    let readable: Vec<&Message> = handoff::readable(&request.messages);
    let thinking = Thinking::of(request, &traits, input_tokens(&readable));
    let target = Target {
        model: &request.model,
        block_images: request.block_images,
        system: SystemPlacement::Folded,
        call_id: &call_id::normalized,
    };
    let transcript = handoff::prepare(&readable, &target);
    let mut system = Vec::with_capacity(2);
    if !transcript.prompt.trim().is_empty() {
        system.push(SystemBlock::Text(&transcript.prompt));
    }
    let mut messages = messages(&transcript.turns, &traits);
    if let Some(point) = cache_point(request, &traits) {
        mark(&mut system, &mut messages, point);
    }
    let mut body = Body {
        messages,
        system,
        inference_config: Map::new(),
        tool_config: tools::config(&transcript.tools, &transcript.turns, &traits),
        additional_model_request_fields: thinking.fields,
        others: Map::new(),
    };
    if let Some(limit) = thinking.max_tokens {
        body.inference_config.insert("maxTokens".into(), limit.into());
    }
    configured(request, thinking.has_own_temperature, &mut body);
    serde_json::to_vec(&body).map(Bytes::from)
}

/// Puts the configured fields where they belong.
fn configured(request: &Request, has_own_temperature: bool, body: &mut Body<'_>) {
    for (name, value) in sampling::sampling_params(request) {
        if name == "temperature" && has_own_temperature {
            continue;
        }
        if let Some((_, ours)) = INFERENCE.iter().find(|(other, _)| *other == name) {
            body.inference_config.insert((*ours).to_owned(), value);
        } else if TOP.contains(&name.as_str()) {
            body.others.insert(name, value);
        } else if let (OWN, Value::Object(fields)) = (name.as_str(), &value) {
            body.additional_model_request_fields.extend(fields.clone());
        } else {
            body.additional_model_request_fields.insert(name, value);
        }
    }
}

/// The marker to set, if any.
fn cache_point(request: &Request, traits: &Traits) -> Option<CachePoint> {
    let ttl = match request.cache_retention {
        CacheRetention::None => return None,
        CacheRetention::Short => None,
        CacheRetention::Long => Some("1h"),
    };
    traits.caching.then_some(CachePoint { kind: "default", ttl })
}

/// Marks the system prompt, and the end of the conversation unless an answer ends it.
fn mark(system: &mut Vec<SystemBlock<'_>>, messages: &mut [WireMessage<'_>], point: CachePoint) {
    if !system.is_empty() {
        system.push(SystemBlock::CachePoint(point));
    }
    if let Some(last) = messages.last_mut().filter(|message| message.role == Role::User) {
        last.content.push(Block::CachePoint(point));
    }
}

#[cfg(test)]
mod tests;
