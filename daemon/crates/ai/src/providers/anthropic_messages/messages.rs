//! Encodes the turns of a transcript, its tool results and the tools as this API takes them.

use std::{borrow::Cow, sync::Arc};

use agentd_protocol::tool::ToolSpec;
use serde_json::{Value, json};

use super::{
    api_types::{ApiMessage, InputSchema, MessageBlock, MessageBlockBody, ResultContent, Role, Tool},
    compat::Compat,
};
use crate::{
    handoff::{AssistantPart, Part, ToolAnswer, Turn},
    providers::{
        call_id::CallIds,
        strict_schema::{Strictness, strict, wants_strict},
    },
};

/// Precedes images without any text (the text is pi's).
pub(super) const SEE_IMAGE: &str = "(see attached image)";

/// Encodes a transcript.
pub(super) fn messages<'a>(turns: &'a [Turn<'a>], compat: &Compat) -> Vec<ApiMessage<'a>> {
    let mut messages = Vec::with_capacity(turns.len());
    let mut ids = CallIds::default();
    // The ids of the last answer's calls; the results come in the same order.
    let mut calls: Vec<Cow<'a, str>> = Vec::new();
    for turn in turns {
        let (role, content) = match turn {
            Turn::System(text) => (Role::User, MessageBlockBody::text(text.as_str()).into_iter().collect()),
            Turn::User(parts) => (Role::User, content(parts)),
            Turn::Assistant(parts) => {
                calls.clear();
                (Role::Assistant, answer(parts, compat, &mut ids, &mut calls))
            }
            Turn::Results(answers) => (Role::User, result_blocks(answers, &calls)),
        };
        if !content.is_empty() {
            messages
                .push(ApiMessage { role, content: content.into_iter().map(MessageBlock::from).collect() });
        }
    }
    messages
}

/// The blocks of a prompt or of a result; may be empty.
pub(super) fn content<'a>(parts: &'a [Part<'a>]) -> Vec<MessageBlockBody<'a>> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Text(text) => MessageBlockBody::text(text.as_ref()),
        Part::Image(image) => Some(MessageBlockBody::image(image)),
    });
    let mut blocks: Vec<MessageBlockBody<'a>> = blocks.collect();
    let wordless = !blocks.iter().any(|block| matches!(block, MessageBlockBody::Text { .. }));
    if wordless && !blocks.is_empty() {
        blocks.insert(0, MessageBlockBody::Text { text: SEE_IMAGE.into() });
    }
    blocks
}

fn answer<'a>(
    parts: &'a [AssistantPart<'a>],
    compat: &Compat,
    ids: &mut CallIds<'a>,
    calls: &mut Vec<Cow<'a, str>>,
) -> Vec<MessageBlockBody<'a>> {
    let blocks = parts.iter().filter_map(|part| match part {
        AssistantPart::Text { text, .. } => MessageBlockBody::text(*text),
        AssistantPart::Thinking { signature, redacted: true, .. } => {
            signature.filter(|data| !data.is_empty()).map(|data| MessageBlockBody::RedactedThinking { data })
        }
        AssistantPart::Thinking { text, signature, redacted: false } => {
            match signature.filter(|signature| !signature.is_empty()) {
                Some(signature) => Some(MessageBlockBody::Thinking { thinking: text, signature }),
                None if text.trim().is_empty() => None,
                None if compat.allow_empty_signature => {
                    Some(MessageBlockBody::Thinking { thinking: text, signature: "" })
                }
                // The API refuses thinking without its signature.
                None => MessageBlockBody::text(*text),
            }
        }
        AssistantPart::ToolCall { id, name, arguments, .. } => {
            let id = ids.unique(id);
            calls.push(id.clone());
            Some(MessageBlockBody::ToolUse { id, name, input: arguments })
        }
    });
    let mut blocks: Vec<MessageBlockBody<'a>> = blocks.collect();
    // The API refuses an answer that ends with thinking, as one does that met its limit there. Nothing followed from that thinking.
    while let Some(MessageBlockBody::Thinking { .. } | MessageBlockBody::RedactedThinking { .. }) =
        blocks.last()
    {
        blocks.pop();
    }
    blocks
}

/// Stands for a result without text and images.
const NO_OUTPUT: &str = "(no tool output)";

/// Stands in an error result for its images, which this API accepts only after the results (the text is pi's).
const IMAGE_FOLLOWS: &str = "(image attached after the tool results)";

/// The results, then the images that are not allowed inside of them. `ids`: those of the calls, in the same order.
pub(super) fn result_blocks<'a>(
    answers: &'a [ToolAnswer<'a>],
    ids: &[Cow<'a, str>],
) -> Vec<MessageBlockBody<'a>> {
    let mut blocks = Vec::with_capacity(answers.len());
    let mut images = Vec::new();
    for (place, answer) in answers.iter().enumerate() {
        let id = ids.get(place).unwrap_or(&answer.call_id).clone();
        let content = if answer.is_error {
            let moved = images.len();
            images.extend(answer.parts.iter().filter_map(|part| match part {
                Part::Image(image) => Some(MessageBlockBody::image(image)),
                Part::Text(_) => None,
            }));
            if images.len() > moved {
                let text = format!("Images from the error result of tool call {id} ({}):", answer.tool_name);
                images.insert(moved, MessageBlockBody::Text { text: text.into() });
            }
            ResultContent::Text(joined(&answer.parts))
        } else if answer.parts.iter().any(|part| matches!(part, Part::Image(_))) {
            ResultContent::Blocks(content(&answer.parts))
        } else {
            ResultContent::Text(joined(&answer.parts))
        };
        blocks.push(MessageBlockBody::ToolResult { tool_use_id: id, content, is_error: answer.is_error });
    }
    blocks.append(&mut images);
    blocks
}

/// The text of a result, with a note in place of each run of images.
fn joined<'a>(parts: &'a [Part<'a>]) -> Cow<'a, str> {
    let mut texts: Vec<&'a str> = Vec::with_capacity(parts.len());
    let mut after_image = false;
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Image(_) if after_image => {}
            Part::Image(_) => texts.push(IMAGE_FOLLOWS),
        }
        after_image = matches!(part, Part::Image(_));
    }
    let text = match texts[..] {
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(texts.join("\n")),
    };
    if text.trim().is_empty() { NO_OUTPUT.into() } else { text }
}

/// The tools of a request.
pub(super) fn tools<'a>(specs: &'a [Arc<ToolSpec>], compat: &Compat) -> Vec<Tool<'a>> {
    specs.iter().map(|spec| tool(spec, compat)).collect()
}

fn tool<'a>(spec: &'a ToolSpec, compat: &Compat) -> Tool<'a> {
    let asked = compat.supports_strict_tools && wants_strict(spec);
    let rewritten = asked.then(|| strict(&spec.parameters, Strictness::Anthropic)).flatten();
    Tool {
        name: &spec.name,
        description: &spec.description,
        eager_input_streaming: compat.supports_eager_tool_input_streaming.then_some(true),
        strict: rewritten.is_some().then_some(true),
        input_schema: rewritten.map_or_else(|| schema(&spec.parameters), InputSchema::Strict),
        cache_control: None,
    }
}

/// The part of a schema that this API accepts: it refuses other keywords at the top, such as `anyOf`.
fn schema(parameters: &Value) -> InputSchema<'_> {
    let object = |name: &str| parameters.get(name).filter(|value| value.is_object());
    let required = parameters.get("required").filter(|value| value.is_array());
    InputSchema::Plain {
        kind: "object",
        properties: object("properties").map_or_else(|| Cow::Owned(json!({})), Cow::Borrowed),
        required: required.map_or_else(|| Cow::Owned(json!([])), Cow::Borrowed),
        defs: object("$defs"),
        definitions: object("definitions"),
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::tool::ConstrainedSampling;

    use super::*;

    fn check(parameters: Value, compat: &Compat, expected: Value) {
        let spec = ToolSpec {
            name: "t".into(),
            description: "does".into(),
            parameters,
            constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
        };
        assert_eq!(serde_json::to_value(tools(&[spec.into()], compat)).unwrap(), json!([expected]));
    }

    #[test]
    fn schemas_are_cut_down_to_what_is_taken() {
        let compat = Compat::of(&agentd_protocol::model::Model::placeholder());
        let tool = |schema: Value| json!({"name": "t", "description": "does", "input_schema": schema, "eager_input_streaming": true});
        check(Value::Null, &compat, tool(json!({"type": "object", "properties": {}, "required": []})));
        let properties = json!({"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/definitions/B"}});
        check(
            json!({"$schema": "s", "type": "object", "properties": properties, "required": ["a"],
                "additionalProperties": false, "anyOf": [], "$defs": {"A": {}}, "definitions": {"B": {}}}),
            &compat,
            tool(json!({"type": "object", "properties": properties, "required": ["a"], "$defs": {"A": {}},
                "definitions": {"B": {}}})),
        );
        check(
            json!({"properties": [], "required": null}),
            &compat,
            tool(json!({"type": "object", "properties": {}, "required": []})),
        );
    }

    #[test]
    fn strict_tools_where_they_are_known() {
        let mut compat = Compat::of(&agentd_protocol::model::Model::placeholder());
        compat.supports_strict_tools = true;
        compat.supports_eager_tool_input_streaming = false;
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            &compat,
            json!({"name": "t", "description": "does", "strict": true, "input_schema": {
                "type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "required": ["a"], "additionalProperties": false}}),
        );
        check(
            json!({"type": "object", "properties": {"a": {"oneOf": []}}}),
            &compat,
            json!({"name": "t", "description": "does", "input_schema": {
                "type": "object", "properties": {"a": {"oneOf": []}}, "required": []}}),
        );
    }
}
