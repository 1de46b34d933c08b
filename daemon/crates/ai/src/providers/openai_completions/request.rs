//! Requests of the chat completions API.

use std::{borrow::Cow, sync::Arc};

use agentd_protocol::tool::ToolSpec;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    api_types::{CacheControl, ChatMessage, Content, ContentPart, Function, RequestBody, Tool},
    compat::Compat,
    messages::{messages, normalized_call_id},
    thinking,
};
use crate::{
    CacheRetention, Request,
    estimate::{input_tokens, max_answer_tokens},
    handoff::{self, SystemPlacement, Target, Turn},
    providers::{
        request_parts::sampling_params,
        strict_schema::{Strictness, strict, wants_strict},
    },
};

/// The longest cache key that OpenAI takes, in characters.
const MAX_CACHE_KEY: usize = 64;

/// The JSON text of a request.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(request: &Request, compat: &Compat) -> Result<Bytes, serde_json::Error> {
    let model = &*request.model;
    let readable = handoff::readable(&request.messages);
    let transcript = handoff::prepare(
        &readable,
        &Target {
            model,
            block_images: request.block_images,
            system: if compat.supports_mid_convo_system_messages {
                SystemPlacement::InPlace
            } else {
                SystemPlacement::Folded
            },
            call_id: &|id| normalized_call_id(id, &model.provider),
        },
    );
    let system_role = if model.reasoning && compat.supports_developer_role { "developer" } else { "system" };
    let mut messages = messages(&transcript.prompt, &transcript.turns, model, compat, system_role);
    let mut tools = tools(&transcript.tools, &transcript.turns, compat);
    if compat.anthropic_cache_control
        && let Some(control) = cache_control(compat, request.cache_retention)
    {
        mark_cached(&mut messages, tools.as_deref_mut(), control);
    }
    let mut fields = fields(request, compat);
    let limit = max_answer_tokens(model, input_tokens(&readable));
    if let Some(tokens) = limit {
        fields.insert(compat.max_tokens_field.clone(), json!(tokens));
    }
    fields.extend(thinking::fields(model, compat, request.thinking_level, &request.thinking_budgets, limit));
    if let Some(name) = request.forced_tool.as_ref().filter(|_| tools.is_some()) {
        fields.insert("tool_choice".into(), json!({ "type": "function", "function": { "name": name } }));
    }
    if compat.zai_tool_stream && tools.is_some() {
        fields.insert("tool_stream".into(), json!(true));
    }
    let name = request.credentials.account.deployment.as_deref().unwrap_or(&model.id);
    let body =
        RequestBody { model: name, messages, tools, fields, sampling_params: sampling_params(request) };
    serde_json::to_vec(&body).map(Bytes::from)
}

/// All fields but the model, the messages, the tools and the limit of the answer.
fn fields(request: &Request, compat: &Compat) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("stream", json!(true));
    if compat.supports_usage_in_streaming {
        set("stream_options", json!({ "include_usage": true }));
    }
    if compat.supports_store {
        set("store", json!(false));
    }
    let retention = request.cache_retention;
    let long = retention == CacheRetention::Long && compat.supports_long_cache_retention;
    let wants_key = match compat.prompt_cache_key_mode.as_str() {
        "enabled" => true,
        "disabled" => false,
        _ => compat.is_openai || long,
    };
    if wants_key && retention != CacheRetention::None && !request.session_id.is_empty() {
        let key: String = request.session_id.chars().take(MAX_CACHE_KEY).collect();
        set("prompt_cache_key", json!(key));
    }
    if long {
        set("prompt_cache_retention", json!("24h"));
    }
    if let Some(routing) = &compat.open_router_routing {
        set("provider", routing.clone());
    }
    if let Some(routing) = gateway_routing(compat) {
        set("providerOptions", json!({ "gateway": routing }));
    }
    if let Some(priority) = &compat.vllm_priority {
        set("priority", priority.clone());
    }
    fields
}

/// The providers that Vercel's gateway may choose, and their order; `None` leaves the choice to the gateway.
fn gateway_routing(compat: &Compat) -> Option<Map<String, Value>> {
    let routing = compat.vercel_gateway_routing.as_ref()?.as_object()?;
    let known =
        routing.iter().filter(|(name, value)| matches!(name.as_str(), "only" | "order") && !value.is_null());
    let known: Map<String, Value> = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    (!known.is_empty()).then_some(known)
}

/// The tools; `None` leaves the field out.
fn tools<'a>(specs: &'a [Arc<ToolSpec>], turns: &[Turn<'_>], compat: &Compat) -> Option<Vec<Tool<'a>>> {
    let has_history = turns.iter().any(|turn| matches!(turn, Turn::Results(_)));
    if specs.is_empty() && !(compat.requires_tools_with_tool_history && has_history) {
        return None;
    }
    Some(specs.iter().map(|spec| tool(spec, compat)).collect())
}

fn tool<'a>(spec: &'a ToolSpec, compat: &Compat) -> Tool<'a> {
    let rewritten = Some(spec).filter(|spec| compat.supports_strict_mode && wants_strict(spec));
    let rewritten = rewritten.and_then(|spec| strict(&spec.parameters, Strictness::OpenAi));
    let is_strict = rewritten.is_some().then_some(true);
    let parameters = match rewritten {
        Some(schema) => Cow::Owned(schema),
        // A tool without arguments may have no schema, but servers require an object.
        None if spec.parameters.is_null() => Cow::Owned(json!({ "type": "object", "properties": {} })),
        None => Cow::Borrowed(&spec.parameters),
    };
    let function =
        Function { name: &spec.name, description: &spec.description, parameters, strict: is_strict };
    Tool { kind: "function", function, cache_control: None }
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

/// Marks the system prompt, the last tool, and the last text of the conversation.
pub(super) fn mark_cached(
    messages: &mut [ChatMessage<'_>],
    tools: Option<&mut [Tool<'_>]>,
    control: CacheControl,
) {
    let is_system = |role: &str| matches!(role, "system" | "developer");
    if let Some(first) = messages.first_mut().filter(|message| is_system(message.role)) {
        mark_text(first, control);
    }
    if let Some(tool) = tools.and_then(<[_]>::last_mut) {
        tool.cache_control = Some(control);
    }
    for message in messages.iter_mut().rev().filter(|message| !is_system(message.role)) {
        if mark_text(message, control) {
            break;
        }
    }
}

/// Marks the last text of a message; false when it has none.
fn mark_text(message: &mut ChatMessage<'_>, control: CacheControl) -> bool {
    if let Content::Text(text) = &mut message.content {
        if text.is_empty() {
            return false;
        }
        message.content = Content::Parts(vec![ContentPart::text(std::mem::take(text))]);
    }
    let Content::Parts(parts) = &mut message.content else { return false };
    for part in parts.iter_mut().rev() {
        if let ContentPart::Text { cache_control, .. } = part {
            *cache_control = Some(control);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
