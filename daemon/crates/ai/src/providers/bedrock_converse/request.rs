//! Requests of the Converse API.

use std::{borrow::Cow, sync::Arc};

use agentd_protocol::{message::Message, tool::ToolSpec as Spec};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    api_types::{
        ApiMessage, CachePoint, InputSchema, MessageBlock, RequestBody, Role, SystemBlock, Tool, ToolConfig,
        ToolSpec,
    },
    messages::messages,
    model_traits::ModelTraits,
    thinking::Thinking,
};
use crate::{
    CacheRetention, Request,
    estimate::input_tokens,
    handoff::{self, AssistantPart, SystemPlacement, Target, Turn},
    providers::{
        call_id,
        request_parts::sampling_params,
        strict_schema::{Strictness, strict, wants_strict},
    },
};

/// Configured fields that belong into `inferenceConfig`, by their names in this API and in others.
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

/// The member for fields of the model's own.
const OWN: &str = "additionalModelRequestFields";

/// Encodes `request`.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(request: &Request) -> Result<Bytes, serde_json::Error> {
    let traits = ModelTraits::of(request);
    let readable: Vec<&Message> = handoff::readable(&request.messages);
    let thinking = Thinking::of(request, &traits, input_tokens(&readable));
    let target = Target {
        model: &request.model,
        block_images: request.block_images,
        system: SystemPlacement::Folded,
        call_id: &call_id::normalized_call_id,
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
    let mut tool_config = tool_config(&transcript.tools, &transcript.turns, &traits);
    // Other models than these refuse the choice, and a Claude that thinks does.
    let takes_choice = (traits.claude && thinking.fields.is_empty()) || traits.nova;
    if let Some(config) = tool_config.as_mut().filter(|_| takes_choice && !transcript.tools.is_empty()) {
        let forced = request.forced_tool.as_ref();
        config.tool_choice = forced.map(|name| json!({ "tool": { "name": name } }));
    }
    let mut body = RequestBody {
        messages,
        system,
        inference_config: Map::new(),
        tool_config,
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
fn configured(request: &Request, has_own_temperature: bool, body: &mut RequestBody<'_>) {
    for (name, value) in sampling_params(request) {
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

/// The cache marker to set, if any.
fn cache_point(request: &Request, traits: &ModelTraits) -> Option<CachePoint> {
    let ttl = match request.cache_retention {
        CacheRetention::None => return None,
        CacheRetention::Short => None,
        CacheRetention::Long => Some("1h"),
    };
    traits.caching.then_some(CachePoint { kind: "default", ttl })
}

/// Marks the system prompt, and the end of the conversation unless an answer ends it.
fn mark(system: &mut Vec<SystemBlock<'_>>, messages: &mut [ApiMessage<'_>], point: CachePoint) {
    if !system.is_empty() {
        system.push(SystemBlock::CachePoint(point));
    }
    if let Some(last) = messages.last_mut().filter(|message| message.role == Role::User) {
        last.content.push(MessageBlock::CachePoint(point));
    }
}

/// The most strict tools of a request, a limit of the service.
const MAX_STRICT_TOOLS: usize = 20;

/// The most parameters with several types in the strict tools of a request, a limit of the service.
const MAX_STRICT_UNIONS: usize = 16;

/// The description of a tool that was called earlier and is no longer available.
const GONE: &str = "This tool is not available any more. Do not call it.";

/// The tools of a request. This API refuses a transcript with tool calls but no tools, so tools that are gone are then declared as
/// unavailable.
pub(super) fn tool_config<'a>(
    specs: &'a [Arc<Spec>],
    turns: &'a [Turn<'a>],
    traits: &ModelTraits,
) -> Option<ToolConfig<'a>> {
    let mut room = StrictRoom { tools: MAX_STRICT_TOOLS, unions: MAX_STRICT_UNIONS };
    let mut tools: Vec<Tool<'a>> = specs.iter().map(|spec| tool(spec, traits, &mut room)).collect();
    if tools.is_empty() {
        for name in called(turns) {
            if !tools.iter().any(|tool| tool.tool_spec.name == name) {
                let json = Cow::Owned(json!({ "type": "object", "properties": {} }));
                let input_schema = InputSchema { json };
                let tool_spec = ToolSpec { name, description: Some(GONE), input_schema, strict: None };
                tools.push(Tool { tool_spec });
            }
        }
    }
    (!tools.is_empty()).then_some(ToolConfig { tools, tool_choice: None })
}

/// The names of the tools that were called, in the order of the calls.
fn called<'a>(turns: &'a [Turn<'a>]) -> impl Iterator<Item = &'a str> {
    let parts = turns.iter().flat_map(|turn| match turn {
        Turn::Assistant(parts) => parts.as_slice(),
        _ => &[],
    });
    parts.filter_map(|part| match part {
        AssistantPart::ToolCall { name, .. } => Some(*name),
        _ => None,
    })
}

/// The strict tools and unions that the limits still allow.
struct StrictRoom {
    tools: usize,
    unions: usize,
}

impl StrictRoom {
    /// The strict form of a schema, if there is room for it.
    fn strict(&mut self, schema: &Value) -> Option<Value> {
        let strict = strict(schema, Strictness::Anthropic)?;
        let unions = unions(&strict);
        if self.tools == 0 || unions > self.unions {
            return None;
        }
        self.tools -= 1;
        self.unions -= unions;
        Some(strict)
    }
}

/// The number of a schema's parts with several types.
fn unions(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let own = usize::from(
                members.contains_key("anyOf") || members.get("type").is_some_and(Value::is_array),
            );
            own + members.values().map(unions).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(unions).sum(),
        _ => 0,
    }
}

fn tool<'a>(spec: &'a Spec, traits: &ModelTraits, room: &mut StrictRoom) -> Tool<'a> {
    let wanted = traits.strict_tools && wants_strict(spec);
    let rewritten = wanted.then(|| room.strict(&spec.parameters)).flatten();
    let is_strict = rewritten.is_some();
    let json = match rewritten {
        Some(strict) => Cow::Owned(strict),
        None if spec.parameters.is_object() => Cow::Borrowed(&spec.parameters),
        None => Cow::Owned(json!({ "type": "object", "properties": {} })),
    };
    let description = Some(spec.description.as_str()).filter(|text| !text.trim().is_empty());
    let input_schema = InputSchema { json };
    let tool_spec =
        ToolSpec { name: &spec.name, description, input_schema, strict: is_strict.then_some(true) };
    Tool { tool_spec }
}

#[cfg(test)]
mod tools_tests {
    use std::sync::Arc;

    use agentd_protocol::{model::Model, tool::ConstrainedSampling};

    use super::*;
    use crate::Request;

    fn traits(strict_tools: bool) -> ModelTraits {
        let known = ModelTraits::of(&Request::new(Arc::new(Model::placeholder()), Vec::new()));
        ModelTraits { strict_tools, ..known }
    }

    fn spec(parameters: Value) -> Spec {
        Spec {
            name: "t".into(),
            description: "does".into(),
            parameters,
            constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
        }
    }

    fn written(specs: &[Spec], traits: &ModelTraits) -> Value {
        let specs: Vec<Arc<Spec>> = specs.iter().cloned().map(Arc::new).collect();
        serde_json::to_value(tool_config(&specs, &[], traits)).unwrap()
    }

    #[test]
    fn tools_are_described() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": []});
        assert_eq!(
            written(&[spec(schema.clone())], &traits(false)),
            json!({"tools": [{"toolSpec": {"name": "t", "description": "does", "inputSchema": {"json": schema}}}]})
        );
        let bare = Spec { description: " ".into(), ..spec(Value::Null) };
        assert_eq!(
            written(&[bare], &traits(true)),
            json!({"tools": [{"toolSpec": {"name": "t", "inputSchema": {"json": {"type": "object", "properties": {}}}}}]})
        );
        assert_eq!(written(&[], &traits(true)), Value::Null);
    }

    #[test]
    fn strict_tools_stay_within_the_limits_of_the_service() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let one = written(&[spec(schema.clone())], &traits(true));
        assert_eq!(
            one["tools"][0]["toolSpec"],
            json!({"name": "t", "description": "does", "strict": true, "inputSchema": {"json": {
                "type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "required": ["a"], "additionalProperties": false}}})
        );
        let count = |schema: &Value| {
            let specs = vec![spec(schema.clone()); 30];
            let written = written(&specs, &traits(true));
            let tools = written["tools"].as_array().unwrap().clone();
            tools.iter().filter(|tool| tool["toolSpec"]["strict"] == true).count()
        };
        assert_eq!(count(&schema), 16);
        assert_eq!(count(&json!({"type": "object", "properties": {}})), 20);
        assert_eq!(count(&json!({"type": "object", "properties": {"a": {"oneOf": []}}})), 0);
    }
}

#[cfg(test)]
mod tests;
