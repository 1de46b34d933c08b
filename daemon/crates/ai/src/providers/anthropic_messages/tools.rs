//! Tools as this API wants them described.

use std::borrow::Cow;

use agentd_protocol::tool::ToolSpec;
use serde_json::{Value, json};

use super::{
    compat::Compat,
    wire::outgoing::{InputSchema, Tool},
};
use crate::providers::strict_schema::{Strictness, strict, wants_strict};

/// The tools of a request.
pub(super) fn tools<'a>(specs: &'a [ToolSpec], compat: &Compat) -> Vec<Tool<'a>> {
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

/// The part of a schema that this API takes: it refuses others at the top, such as `anyOf`.
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
        assert_eq!(serde_json::to_value(tools(&[spec], compat)).unwrap(), json!([expected]));
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
