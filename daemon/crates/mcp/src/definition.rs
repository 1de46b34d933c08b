//! A tool as its server describes it. Pure.

use agentd_protocol::{
    text_bounds,
    tool::{ToolAnnotations, ToolSpec},
};
use serde_json::{Map, Value, json};

use crate::header_arguments::{self, HeaderArgument};

/// The longest description that models are given, in bytes. A server may write more, which would cost tokens in every request.
const MAX_DESCRIPTION: usize = 16 << 10;

/// The longest name for people, in bytes.
const MAX_TITLE: usize = 200;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolDefinition {
    /// The server's own name for it.
    pub(crate) name: String,
    /// The name for people.
    pub(crate) title: Option<String>,
    /// What the server says of it.
    pub(crate) annotations: Option<ToolAnnotations>,
    /// Its description for the model.
    pub(crate) description: String,
    /// JSON Schema of the arguments, as the server sent it, of type `object`.
    pub(crate) input_schema: Value,
    /// Arguments that HTTP repeats in headers; in the stateless revision alone.
    pub(crate) header_arguments: Vec<HeaderArgument>,
}

impl ToolDefinition {
    /// Reads a tool of an answer to `tools/list`. `with_headers`: the server is one of the stateless revision, reached by HTTP.
    ///
    /// # Errors
    /// Why it cannot be used; the server's other tools can.
    pub(crate) fn read(tool: &Value, with_headers: bool) -> Result<Self, String> {
        let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").filter(|name| !name.is_empty()).ok_or("a tool without a name")?;
        let annotations = annotations(tool);
        let title = text("title").and_then(bounded_title);
        let title = title.or_else(|| annotations.as_ref()?.title.clone());
        let input_schema = match tool.get("inputSchema") {
            None | Some(Value::Null) => object_schema(Map::new()),
            Some(Value::Object(schema)) => object_schema(schema.clone()),
            Some(_) => return Err(format!("the tool \"{name}\": its inputSchema is no object")),
        };
        if input_schema["type"] != "object" {
            return Err(format!("the tool \"{name}\": its inputSchema is not of type \"object\""));
        }
        let description = text("description").unwrap_or_default();
        let description = text_bounds::head(&description, MAX_DESCRIPTION).to_owned();
        let header_arguments = match with_headers {
            true => {
                header_arguments::read(&input_schema).map_err(|why| format!("the tool \"{name}\": {why}"))?
            }
            false => Vec::new(),
        };
        Ok(Self { name, title, annotations, description, input_schema, header_arguments })
    }

    /// The tool in MCP's own form: what [`Self::read`] reads.
    pub(crate) fn to_json(&self) -> Value {
        let Self { name, title, annotations, description, input_schema, .. } = self;
        let mut tool = json!({"name": name, "description": description, "inputSchema": input_schema});
        if let Some(title) = title {
            tool["title"] = json!(title);
        }
        if let Some(annotations) = annotations {
            tool["annotations"] = json!(annotations);
        }
        tool
    }

    /// The tool as models see it.
    pub(crate) fn spec(&self, name: String) -> ToolSpec {
        ToolSpec {
            name,
            description: self.description.clone(),
            parameters: self.input_schema.clone(),
            constrained_sampling: None,
        }
    }
}

/// A name for people without what would break a line, and of bounded length; `None` for an empty one.
fn bounded_title(title: String) -> Option<String> {
    let line = title.split(char::is_control).collect::<Vec<_>>().join(" ");
    let line = line.trim();
    (!line.is_empty()).then(|| text_bounds::head(line, MAX_TITLE).to_owned())
}

/// What a server says of a tool; what has another type than it should is left out.
fn annotations(tool: &Value) -> Option<ToolAnnotations> {
    let said = tool.get("annotations")?;
    let hint = |key: &str| said.get(key).and_then(Value::as_bool);
    let annotations = ToolAnnotations {
        title: said.get("title").and_then(Value::as_str).map(str::to_owned).and_then(bounded_title),
        read_only_hint: hint("readOnlyHint"),
        destructive_hint: hint("destructiveHint"),
        idempotent_hint: hint("idempotentHint"),
        open_world_hint: hint("openWorldHint"),
    };
    Some(annotations).filter(|annotations| *annotations != ToolAnnotations::default())
}

/// A schema with what providers need; all other keywords stay as the server sent them.
fn object_schema(mut schema: Map<String, Value>) -> Value {
    schema.entry("type").or_insert_with(|| json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_keep_their_keywords() {
        let schema = json!({"$anchor": "a", "if": {"x": 1}, "allOf": [{"$ref": "#/$defs/b"}]});
        let tool = ToolDefinition::read(&json!({"name": "t", "inputSchema": schema}), true).unwrap();
        assert_eq!(
            tool.input_schema,
            json!({"$anchor": "a", "if": {"x": 1}, "allOf": [{"$ref": "#/$defs/b"}], "type": "object", "properties": {}})
        );
        let bare = ToolDefinition::read(&json!({"name": "t", "annotations": {"title": "T"}}), true).unwrap();
        assert_eq!(bare.input_schema, json!({"type": "object", "properties": {}}));
        assert_eq!((bare.title.as_deref(), bare.description.as_str()), (Some("T"), ""));
    }

    #[test]
    fn annotations_are_read_as_far_as_they_can_be() {
        let read = |annotations: Value| {
            ToolDefinition::read(&json!({"name": "t", "annotations": annotations}), true).unwrap()
        };
        let said = json!({"title": " A\nb ", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": 1, "more": 2});
        let tool = read(said);
        let expected = ToolAnnotations {
            title: Some("A b".into()),
            read_only_hint: Some(true),
            destructive_hint: Some(false),
            ..ToolAnnotations::default()
        };
        assert_eq!((tool.title.as_deref(), tool.annotations), (Some("A b"), Some(expected)));
        for nothing in [json!(null), json!([true]), json!({}), json!({"title": " ", "readOnlyHint": "yes"})] {
            assert_eq!(read(nothing).annotations, None);
        }
        let long = read(json!({"title": "x".repeat(1000)}));
        assert_eq!(long.title.map(|title| title.len()), Some(MAX_TITLE));
    }

    #[test]
    fn what_cannot_be_called_is_refused_alone() {
        for (tool, says) in [
            (json!({}), "without a name"),
            (json!({"name": ""}), "without a name"),
            (json!({"name": "t", "inputSchema": true}), "no object"),
            (json!({"name": "t", "inputSchema": {"type": "array"}}), "not of type"),
            (json!(3), "without a name"),
            (
                json!({"name": "t", "inputSchema": {"properties": {"a": {"type": "string", "x-mcp-header": ""}}}}),
                "no name of a header",
            ),
        ] {
            let why = ToolDefinition::read(&tool, true).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}
