//! Checks of the tools that clients provide.

use agentd_agent::ArgumentSchema;
use agentd_protocol::{
    client_tools::ClientTool,
    error::{ErrorCode, Failure},
};

/// Tools that the clients of a session can provide together.
pub(crate) const MAX_TOOLS: usize = 128;

/// The longest name.
const MAX_NAME: usize = 64;

/// The largest tool, in bytes of JSON: it is sent to the model with every request.
const MAX_TOOL_BYTES: usize = 64 << 10;

/// Checks tools by themselves: their names, schemas and sizes. Compiles the schemas: takes a moment, and blocks.
///
/// # Errors
/// Names the tool, what is wrong with it, and what was expected.
pub fn check_client_tools(tools: &[ClientTool]) -> Result<(), Failure> {
    if tools.is_empty() {
        return Err(invalid("tools", "at least one tool", "none"));
    }
    if tools.len() > MAX_TOOLS {
        return Err(invalid("tools", &format!("at most {MAX_TOOLS} tools"), &tools.len().to_string()));
    }
    for (index, tool) in tools.iter().enumerate() {
        check(tool, &format!("tools[{index}]"))?;
        if tools[..index].iter().any(|other| other.name == tool.name) {
            let field = format!("tools[{index}].name");
            return Err(invalid(&field, "each name once", &format!("\"{}\" again", tool.name)));
        }
    }
    Ok(())
}

fn check(tool: &ClientTool, at: &str) -> Result<(), Failure> {
    let of_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if tool.name.is_empty() || tool.name.len() > MAX_NAME || !tool.name.chars().all(of_name) {
        let expected = format!("1 to {MAX_NAME} letters, digits, _ and -");
        return Err(invalid(&format!("{at}.name"), &expected, &format!("{:?}", tool.name)));
    }
    if tool.description.trim().is_empty() {
        return Err(invalid(&format!("{at}.description"), "a text for the model", "none"));
    }
    let field = format!("{at}.parameters");
    let Some(schema) = tool.parameters.as_object() else {
        return Err(invalid(&field, "a JSON Schema object", &tool.parameters.to_string()));
    };
    if schema.get("type").and_then(serde_json::Value::as_str) != Some("object") {
        let found = schema.get("type").map_or("none".to_owned(), ToString::to_string);
        return Err(invalid(&format!("{field}.type"), "\"object\"", &found));
    }
    let bytes = serde_json::to_vec(tool).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_TOOL_BYTES {
        return Err(invalid(at, &format!("at most {MAX_TOOL_BYTES} bytes"), &bytes.to_string()));
    }
    ArgumentSchema::try_compile(&tool.parameters).map_err(|error| {
        let expected = format!("a valid JSON Schema that can be checked, for the tool \"{}\"", tool.name);
        invalid(&field, &expected, &format!("one that is not: {error}"))
    })
}

fn invalid(field: &str, expected: &str, got: &str) -> Failure {
    Failure::new(
        ErrorCode::InvalidField,
        format!("Invalid field \"{field}\": expected {expected}, got {got}"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tool(name: &str, parameters: Value) -> ClientTool {
        ClientTool { name: name.into(), description: "d".into(), parameters, ..ClientTool::default() }
    }

    fn good(name: &str) -> ClientTool {
        tool(name, json!({"type": "object", "properties": {"a": {"type": "string"}}}))
    }

    #[test]
    fn what_is_wrong_is_named() {
        check_client_tools(&[good("a"), good("a-B_9"), good(&"x".repeat(64))]).unwrap();
        for (tools, says) in [
            (vec![], "\"tools\": expected at least one"),
            (vec![good("a"), good("")], "\"tools[1].name\": expected 1 to 64"),
            (vec![good("a b")], "got \"a b\""),
            (vec![good(&"x".repeat(65))], "tools[0].name"),
            (vec![good("é")], "letters, digits, _ and -"),
            (
                vec![good("a"), good("b"), good("a")],
                "\"tools[2].name\": expected each name once, got \"a\" again",
            ),
            (vec![ClientTool { description: " ".into(), ..good("a") }], "tools[0].description"),
            (
                vec![tool("a", json!(true))],
                "\"tools[0].parameters\": expected a JSON Schema object, got true",
            ),
            (vec![tool("a", json!({}))], "\"tools[0].parameters.type\": expected \"object\", got none"),
            (vec![tool("a", json!({"type": "array"}))], "got \"array\""),
            (vec![tool("a", json!({"type": "object", "required": 3}))], "a valid JSON Schema"),
            (
                vec![tool("a", json!({"type": "object", "$ref": "http://127.0.0.1:9/x"}))],
                "a valid JSON Schema",
            ),
            (vec![ClientTool { snippet: Some("x".repeat(70_000)), ..good("a") }], "at most 65536 bytes"),
            ((0..129).map(|n| good(&format!("t{n}"))).collect(), "at most 128 tools, got 129"),
        ] {
            let failure = check_client_tools(&tools).unwrap_err();
            assert_eq!(failure.code, ErrorCode::InvalidField);
            assert!(failure.error.contains(says), "{says:?} is missing in {failure}");
        }
    }
}
