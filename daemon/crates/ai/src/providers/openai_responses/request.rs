//! Requests of the responses API.

use std::borrow::Cow;

use agentd_protocol::{
    model::{Model, ThinkingLevel},
    tool::ToolSpec,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    Dialect,
    api_types::{RequestBody, Tool},
    compat::Compat,
    input::{input, normalized_call_id},
};
use crate::{
    CacheRetention, Credentials, Request,
    estimate::{input_tokens, max_answer_tokens},
    handoff::{self, SystemPlacement, Target},
    providers::{
        request_parts::sampling_params,
        strict_schema::{Strictness, strict, wants_strict},
    },
};

/// The longest cache key that OpenAI takes, in characters.
const MAX_CACHE_KEY: usize = 64;

/// The smallest limit of an answer that OpenAI accepts, in tokens.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// Fields that OpenAI refuses for accounts that are signed in instead of using a key.
const REFUSED_WHEN_SIGNED_IN: [&str; 4] =
    ["max_output_tokens", "temperature", "prompt_cache_retention", "prompt_cache_options"];

/// The `instructions` of a request without a system prompt.
const NO_INSTRUCTIONS: &str = "You are a helpful assistant.";

/// The JSON text of a request.
///
/// # Errors
/// Only what the serialiser reports.
pub(in crate::providers) fn body(request: &Request, compat: &Compat) -> Result<Bytes, serde_json::Error> {
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
            call_id: &normalized_call_id,
        },
    );
    let system_role = if model.reasoning && compat.supports_developer_role { "developer" } else { "system" };
    let mut fields = fields(request, compat);
    if let Some(tokens) =
        max_answer_tokens(model, input_tokens(&readable)).filter(|_| compat.supports_max_output_tokens)
    {
        fields.insert("max_output_tokens".into(), json!(tokens.max(MIN_OUTPUT_TOKENS)));
    }
    if let Some(name) = request.forced_tool.as_ref().filter(|_| !transcript.tools.is_empty()) {
        fields.insert("tool_choice".into(), json!({ "type": "function", "name": name }));
    }
    let mut sampling_params = sampling_params(request);
    if is_signed_in(model, &request.credentials) {
        for name in REFUSED_WHEN_SIGNED_IN {
            fields.shift_remove(name);
            sampling_params.shift_remove(name);
        }
    }
    let (instructions, prompt) = match transcript.prompt.as_str() {
        "" if compat.dialect.has_instructions() => (Some(NO_INSTRUCTIONS), ""),
        prompt if compat.dialect.has_instructions() => (Some(prompt), ""),
        prompt => (None, prompt),
    };
    let body = RequestBody {
        model: request.credentials.account.deployment.as_deref().unwrap_or(&model.id),
        instructions,
        input: input(prompt, &transcript.turns, system_role),
        tools: transcript.tools.iter().map(|spec| tool(spec, compat)).collect(),
        fields,
        sampling_params,
    };
    serde_json::to_vec(&body).map(Bytes::from)
}

/// All fields but the model, the input, the tools and the limit of the answer.
fn fields(request: &Request, compat: &Compat) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("stream", json!(true));
    set("store", json!(false));
    let retention = request.cache_retention;
    let wants_key = compat.prompt_cache_key_mode != "disabled";
    if wants_key && retention != CacheRetention::None && !request.session_id.is_empty() {
        let key: String = request.session_id.chars().take(MAX_CACHE_KEY).collect();
        set("prompt_cache_key", json!(key));
    }
    if retention == CacheRetention::None && compat.supports_explicit_prompt_cache_mode {
        // These models cache every prompt unless told otherwise.
        set("prompt_cache_options", json!({ "mode": "explicit" }));
    }
    if retention == CacheRetention::Long && compat.supports_long_cache_retention {
        if compat.supports_explicit_prompt_cache_mode {
            set("prompt_cache_options", json!({ "ttl": "30m" }));
        } else {
            set("prompt_cache_retention", json!("24h"));
        }
    }
    if compat.dialect == Dialect::Codex {
        set("text", json!({ "verbosity": "low" }));
        set("tool_choice", json!("auto"));
        set("parallel_tool_calls", json!(true));
        set("include", json!(["reasoning.encrypted_content"]));
    }
    fields.extend(reasoning_fields(&request.model, compat, request.thinking_level));
    fields
}

/// Whether the request goes to OpenAI itself with the token of a sign-in: keys begin with `sk-`.
fn is_signed_in(model: &Model, credentials: &Credentials) -> bool {
    let is_openai = model.provider == "openai" && model.base_url.contains("api.openai.com");
    is_openai && credentials.key().is_some_and(|key| !key.starts_with("sk-"))
}

fn tool<'a>(spec: &'a ToolSpec, compat: &Compat) -> Tool<'a> {
    let rewritten = Some(spec).filter(|spec| compat.supports_strict_mode && wants_strict(spec));
    let rewritten = rewritten.and_then(|spec| strict(&spec.parameters, Strictness::OpenAi));
    // OpenAI takes a missing `strict` as true, and then refuses schemas that are not strict.
    let is_strict = compat.supports_strict_mode.then_some(match rewritten {
        None if compat.dialect.leaves_strictness_open() => None,
        _ => Some(rewritten.is_some()),
    });
    let parameters = match rewritten {
        Some(schema) => Cow::Owned(schema),
        // A tool without arguments may have no schema, but servers require an object.
        None if spec.parameters.is_null() => Cow::Owned(json!({ "type": "object", "properties": {} })),
        None => Cow::Borrowed(&spec.parameters),
    };
    Tool { kind: "function", name: &spec.name, description: &spec.description, parameters, strict: is_strict }
}

/// The fields that ask `model` to think at `level`; none for a model without reasoning.
pub(super) fn reasoning_fields(model: &Model, compat: &Compat, level: ThinkingLevel) -> Map<String, Value> {
    let mut fields = Map::new();
    if !model.reasoning {
        return fields;
    }
    let mapped = |level: ThinkingLevel| model.thinking_level_map.as_ref()?.get(level.as_str());
    let reasoning = match (level, mapped(level)) {
        _ if !compat.supports_reasoning_effort => None,
        (ThinkingLevel::Off, Some(Value::Null)) => None,
        // Copilot refuses the effort `none`.
        (ThinkingLevel::Off, _) if model.provider == "github-copilot" => None,
        (ThinkingLevel::Off, effort) => {
            let effort = effort.and_then(Value::as_str).unwrap_or("none");
            fields.insert("reasoning".into(), json!({ "effort": effort }));
            // xAI's models may reason nevertheless.
            if model.provider == "xai" {
                fields.insert("include".into(), json!(["reasoning.encrypted_content"]));
            }
            return fields;
        }
        (level, effort) => {
            let effort = effort.and_then(Value::as_str).unwrap_or(level.as_str());
            Some(json!({ "effort": effort, "summary": "auto" }))
        }
    };
    if let Some(reasoning) = reasoning {
        fields.insert("reasoning".into(), reasoning);
    }
    // Requests are not stored, so reasoning can be sent back only if the answer includes it. This also holds for a model that cannot turn
    // reasoning off.
    fields.insert("include".into(), json!(["reasoning.encrypted_content"]));
    fields
}

#[cfg(test)]
mod reasoning_tests {
    use super::{super::Dialect, *};

    fn check(overrides: Value, level: ThinkingLevel, expected: Value) {
        let of = |name: &str| overrides.get(name).and_then(Value::as_object).cloned();
        let model = Model {
            reasoning: overrides["reasoning"] != json!(false),
            provider: overrides["provider"].as_str().unwrap_or("openai").into(),
            compat: of("compat"),
            thinking_level_map: of("map"),
            ..Model::placeholder()
        };
        let found = Value::Object(reasoning_fields(&model, &Compat::of(&model, Dialect::OpenAi), level));
        assert_eq!(found, expected, "{overrides} {level:?}");
    }

    #[test]
    fn levels_become_efforts() {
        use ThinkingLevel::{High, Minimal, Off};
        let include = json!(["reasoning.encrypted_content"]);
        let on =
            |effort: &str| json!({"reasoning": {"effort": effort, "summary": "auto"}, "include": include});
        check(json!({}), High, on("high"));
        check(json!({"map": {"minimal": "low"}}), Minimal, on("low"));
        check(json!({}), Off, json!({"reasoning": {"effort": "none"}}));
        check(json!({"provider": "xai"}), Off, json!({"reasoning": {"effort": "none"}, "include": include}));
        check(json!({"map": {"off": "minimal"}}), Off, json!({"reasoning": {"effort": "minimal"}}));
        check(json!({"map": {"off": null}}), Off, json!({ "include": include }));
        check(json!({"provider": "github-copilot"}), Off, json!({ "include": include }));
        check(json!({"compat": {"supportsReasoningEffort": false}}), High, json!({ "include": include }));
        check(json!({"reasoning": false}), High, json!({}));
    }
}

#[cfg(test)]
mod tests;
