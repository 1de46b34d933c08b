//! Requests of the messages API.

use agentd_protocol::message::Message;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    api_types::{ApiMessage, CacheControl, RequestBody, Role, SystemBlock, Tool},
    compat::Compat,
    messages::{messages, tools},
    thinking::Thinking,
};
use crate::{
    CacheRetention, Request,
    handoff::{self, SystemPlacement, Target},
    providers::{call_id::normalized_call_id, request_parts::sampling_params},
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
            call_id: &normalized_call_id,
        },
    );
    let prompt = Some(transcript.prompt.as_str()).filter(|prompt| !prompt.trim().is_empty());
    let mut system: Vec<SystemBlock<'_>> =
        prompt.map(|text| SystemBlock { kind: "text", text, cache_control: None }).into_iter().collect();
    let mut tools = tools(&transcript.tools, compat);
    let mut messages = messages(&transcript.turns, compat);
    if let Some(control) = cache_control(compat, request.cache_retention) {
        mark_cached(&mut system, &mut tools, &mut messages, compat, control);
    }
    let has_tools = !tools.is_empty();
    let mut fields = fields(compat, thinking);
    // A model that thinks refuses to be told which tool to call.
    if let Some(name) = request.forced_tool.as_ref().filter(|_| has_tools && !thinking.is_on()) {
        fields.insert("tool_choice".into(), json!({ "type": "tool", "name": name }));
    }
    let body = RequestBody {
        model: &model.id,
        max_tokens: thinking.max_tokens(),
        system,
        tools,
        messages,
        fields,
        sampling_params: accepted_sampling_params(request, compat, thinking),
    };
    Ok(Encoded { json: serde_json::to_vec(&body).map(Bytes::from)?, has_tools })
}

/// All fields besides the lists.
fn fields(compat: &Compat, thinking: &Thinking) -> Map<String, Value> {
    let mut fields = thinking.fields();
    let others = compat.fallback_models.iter().map(|other| json!({ "model": other.model }));
    let others: Vec<Value> = others.collect();
    if !others.is_empty() {
        fields.insert("fallbacks".into(), Value::Array(others));
    }
    fields
}

/// The configured fields that the model accepts.
fn accepted_sampling_params(request: &Request, compat: &Compat, thinking: &Thinking) -> Map<String, Value> {
    let mut params = sampling_params(request);
    // A thinking model refuses any temperature but its own.
    if thinking.is_on() || !compat.supports_temperature {
        params.shift_remove("temperature");
    }
    params
}

/// The cache marker to set, if any.
pub(super) fn cache_control(compat: &Compat, retention: CacheRetention) -> Option<CacheControl> {
    let ttl = match retention {
        CacheRetention::None => return None,
        CacheRetention::Short => None,
        CacheRetention::Long => compat.supports_long_cache_retention.then_some("1h"),
    };
    Some(CacheControl { kind: "ephemeral", ttl })
}

/// Marks the system prompt, the last tool, and the end of the conversation unless an answer ends it.
pub(super) fn mark_cached(
    system: &mut [SystemBlock<'_>],
    tools: &mut [Tool<'_>],
    messages: &mut [ApiMessage<'_>],
    compat: &Compat,
    control: CacheControl,
) {
    for block in system {
        block.cache_control = Some(control);
    }
    if let Some(tool) = tools.last_mut().filter(|_| compat.supports_cache_control_on_tools) {
        tool.cache_control = Some(control);
    }
    let last = messages.last_mut().filter(|message| message.role == Role::User);
    if let Some(block) = last.and_then(|message| message.content.last_mut()) {
        block.cache_control = Some(control);
    }
}

#[cfg(test)]
mod tests;
