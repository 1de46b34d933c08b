//! Requests of this API.

use std::borrow::Cow;

use agentd_protocol::tool::ToolSpec;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    contents::contents,
    family::Family,
    schema::parameters,
    thinking,
    wire::outgoing::{Body, Content, Declaration, Part, Tool},
};
use crate::{
    Request,
    estimate::{input_tokens, max_answer_tokens},
    handoff::{self, SystemPlacement, Target, call_id::sanitized},
    providers::{
        sampling::sampling_params,
        strict_schema::{Strictness, strict, wants_strict},
    },
};

/// The longest id of a call that is taken, in characters.
const MAX_ID: usize = 64;

/// Members of a request itself; all other configured fields are members of `generationConfig`.
const TOP_LEVEL: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
    "modelArmorConfig",
];

/// The JSON text of a request.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(request: &Request) -> Result<Bytes, serde_json::Error> {
    let model = &*request.model;
    let family = Family::of(model);
    let readable = handoff::readable(&request.messages);
    let has_ids = family.has_call_ids();
    let call_id = |id: &str| if has_ids { normalized(id) } else { id.to_owned() };
    let transcript = handoff::prepare(
        &readable,
        &Target {
            model,
            block_images: request.block_images,
            system: SystemPlacement::Folded,
            call_id: &call_id,
        },
    );
    let (tools, is_strict) = tools(&transcript.tools, &family);
    let mut generation_config = Map::new();
    if let Some(tokens) = max_answer_tokens(model, input_tokens(&readable)) {
        generation_config.insert("maxOutputTokens".into(), json!(tokens));
    }
    if let Some(config) = thinking::config(request, &family) {
        generation_config.insert("thinkingConfig".into(), config);
    }
    let mut configured = Map::new();
    for (name, value) in sampling_params(request) {
        match value {
            value if TOP_LEVEL.contains(&name.as_str()) => {
                configured.insert(name, value);
            }
            Value::Object(members) if name == "generationConfig" => generation_config.extend(members),
            value => {
                generation_config.insert(name, value);
            }
        }
    }
    let prompt = Some(transcript.prompt.as_str()).filter(|prompt| !prompt.is_empty());
    let body = Body {
        contents: contents(&transcript.turns, &family),
        system_instruction: prompt.map(|text| Content { role: "user", parts: vec![Part::text(text)] }),
        tools,
        tool_config: is_strict.then(|| json!({ "functionCallingConfig": { "mode": "VALIDATED" } })),
        generation_config,
        configured,
    };
    serde_json::to_vec(&body).map(Bytes::from)
}

/// The tools, and whether any of them wants its arguments constrained.
fn tools<'a>(specs: &'a [ToolSpec], family: &Family) -> (Vec<Tool<'a>>, bool) {
    if specs.is_empty() {
        return (Vec::new(), false);
    }
    let mut is_strict = false;
    let declarations = specs.iter().map(|spec| {
        let wished = family.is_modern_gemini() && wants_strict(spec);
        let rewritten =
            Some(spec).filter(|_| wished).and_then(|spec| strict(&spec.parameters, Strictness::OpenAi));
        is_strict |= rewritten.is_some();
        Declaration {
            name: &spec.name,
            description: &spec.description,
            parameters_json_schema: parameters(rewritten.map_or(Cow::Borrowed(&spec.parameters), Cow::Owned)),
        }
    });
    let function_declarations = declarations.collect();
    (vec![Tool { function_declarations }], is_strict)
}

/// The legal form of an id that another model gave.
fn normalized(id: &str) -> String {
    let mut id = sanitized(id);
    // Only ASCII is left, so every place is a boundary.
    id.truncate(MAX_ID);
    if id.is_empty() { "call".to_owned() } else { id }
}

#[cfg(test)]
mod tests;
