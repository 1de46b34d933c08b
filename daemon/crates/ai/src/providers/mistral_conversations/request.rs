//! Requests of this API.

use std::borrow::Cow;

use agentd_protocol::{
    model::{Model, ThinkingLevel},
    tool::ToolSpec,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    api_types::{Function, RequestBody, Tool},
    messages::messages,
};
use crate::{
    CacheRetention, Request,
    estimate::{input_tokens, max_answer_tokens},
    handoff::{self, SystemPlacement, Target},
    providers::{
        request_parts::sampling_params,
        strict_schema::{Strictness, strict, wants_strict},
    },
};

/// The effort for a level that the model's map does not name.
const USUAL_EFFORT: &str = "high";

/// The JSON text of a request.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(request: &Request) -> Result<Bytes, serde_json::Error> {
    let model = &*request.model;
    let readable = handoff::readable(&request.messages);
    let target = Target {
        model,
        block_images: request.block_images,
        system: system_placement(model),
        // Ids become legal when they are written, since all ids of a request have to differ.
        call_id: &str::to_owned,
    };
    let transcript = handoff::prepare(&readable, &target);
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("stream", json!(true));
    if let Some(tokens) = max_answer_tokens(model, input_tokens(&readable)) {
        set("max_tokens", json!(tokens));
    }
    if let Some((name, value)) = thinking(model, request.thinking_level) {
        set(name, json!(value));
    }
    if let Some(key) = cache_key(request) {
        set("prompt_cache_key", json!(key));
    }
    if let Some(name) = request.forced_tool.as_ref().filter(|_| !transcript.tools.is_empty()) {
        fields.insert("tool_choice".to_owned(), json!({ "type": "function", "function": { "name": name } }));
    }
    let body = RequestBody {
        model: &model.id,
        messages: messages(&transcript.prompt, &transcript.turns),
        tools: transcript.tools.iter().map(|spec| tool(spec)).collect(),
        fields,
        configured: sampling_params(request),
    };
    serde_json::to_vec(&body).map(Bytes::from)
}

/// The key of the conversation in the provider's cache.
pub(super) fn cache_key(request: &Request) -> Option<&str> {
    let wanted = request.cache_retention != CacheRetention::None && !request.session_id.is_empty();
    wanted.then_some(request.session_id.as_str())
}

fn system_placement(model: &Model) -> SystemPlacement {
    let switch = model.compat.as_ref().and_then(|compat| compat.get("supportsMidConvoSystemMessages"));
    if switch == Some(&Value::Bool(true)) { SystemPlacement::InPlace } else { SystemPlacement::Folded }
}

/// The field that asks for thinking: an effort for models with a map of levels, else a mode of the prompt.
fn thinking(model: &Model, level: ThinkingLevel) -> Option<(&'static str, &str)> {
    let is_on = level != ThinkingLevel::Off;
    let map = model.thinking_level_map.as_ref().filter(|_| model.reasoning);
    match map {
        Some(map) => {
            let effort = map.get(level.as_str()).and_then(Value::as_str);
            let effort = effort.or_else(|| is_on.then_some(USUAL_EFFORT))?;
            Some(("reasoning_effort", effort))
        }
        None => (model.reasoning && is_on).then_some(("prompt_mode", "reasoning")),
    }
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let rewritten = Some(spec)
        .filter(|spec| wants_strict(spec))
        .and_then(|spec| strict(&spec.parameters, Strictness::OpenAi));
    let is_strict = rewritten.is_some();
    let parameters = match rewritten {
        Some(schema) => Cow::Owned(schema),
        // A tool without arguments may have no schema, but the API requires an object.
        None if spec.parameters.is_null() => Cow::Owned(json!({ "type": "object", "properties": {} })),
        None => Cow::Borrowed(&spec.parameters),
    };
    let function =
        Function { name: &spec.name, description: &spec.description, parameters, strict: is_strict };
    Tool { kind: "function", function }
}

#[cfg(test)]
mod tests;
