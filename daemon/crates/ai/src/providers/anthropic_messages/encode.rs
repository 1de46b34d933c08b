//! Requests of the messages API.

use agentd_protocol::message::Message;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    cache, call_id,
    compat::Compat,
    messages::messages,
    thinking::Thinking,
    tools::tools,
    wire::outgoing::{Body, SystemBlock},
};
use crate::{
    Request,
    handoff::{self, SystemPlacement, Target},
    providers::sampling,
};

/// A request that is ready to be sent.
pub(super) struct Encoded {
    /// The JSON text.
    pub(super) json: Bytes,
    /// Whether the model can call tools.
    pub(super) has_tools: bool,
}

/// Encodes `request`, whose messages are `readable`.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(
    request: &Request,
    readable: &[&Message],
    compat: &Compat,
    thinking: &Thinking,
) -> Result<Encoded, serde_json::Error> {
    let model = &*request.model;
    let transcript = handoff::prepare(
        readable,
        &Target {
            model,
            block_images: request.block_images,
            system: SystemPlacement::Folded,
            call_id: &call_id::normalized,
        },
    );
    let prompt = Some(transcript.prompt.as_str()).filter(|prompt| !prompt.trim().is_empty());
    let mut system: Vec<SystemBlock<'_>> =
        prompt.map(|text| SystemBlock { kind: "text", text, cache_control: None }).into_iter().collect();
    let mut tools = tools(&transcript.tools, compat);
    let mut messages = messages(&transcript.turns, compat);
    if let Some(control) = cache::control(compat, request.cache_retention) {
        cache::mark(&mut system, &mut tools, &mut messages, compat, control);
    }
    let has_tools = !tools.is_empty();
    let body = Body {
        model: &model.id,
        max_tokens: thinking.max_tokens(),
        system,
        tools,
        messages,
        fields: fields(compat, thinking),
        sampling_params: sampling_params(request, compat, thinking),
    };
    Ok(Encoded { json: serde_json::to_vec(&body).map(Bytes::from)?, has_tools })
}

/// Every field that is no list of its own.
fn fields(compat: &Compat, thinking: &Thinking) -> Map<String, Value> {
    let mut fields = thinking.fields();
    let others = compat.fallback_models.iter().map(|other| json!({ "model": other.model }));
    let others: Vec<Value> = others.collect();
    if !others.is_empty() {
        fields.insert("fallbacks".into(), Value::Array(others));
    }
    fields
}

/// The configured fields that the model takes.
fn sampling_params(request: &Request, compat: &Compat, thinking: &Thinking) -> Map<String, Value> {
    let mut params = sampling::sampling_params(request);
    // A thinking model has a temperature of its own, and refuses any other.
    if thinking.is_on() || !compat.supports_temperature {
        params.shift_remove("temperature");
    }
    params
}

#[cfg(test)]
mod tests;
