//! What the program of a tool printed, as the result of the call. Pure.

use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use agentd_tools::{TextLimits, truncate_head};
use serde::Deserialize;
use serde_json::Value;

/// An answer in JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answer {
    content: Content,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    is_error: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

/// The result that an output in JSON says; `None` for any other output, which is the text of the result as it is.
pub(super) fn answer(output: &str) -> Option<ToolResult> {
    let output = output.trim();
    if !output.starts_with('{') {
        return None;
    }
    let Answer { content, details, is_error } = serde_json::from_str(output).ok()?;
    let content = match content {
        Content::Text(text) => vec![ContentBlock::text(text)],
        Content::Blocks(blocks) => blocks
            .into_iter()
            .filter(|block| matches!(block, ContentBlock::Text { .. } | ContentBlock::Image(_)))
            .collect(),
    };
    let content = content.into_iter().map(bounded).collect();
    let is_error = is_error.filter(|is_error| *is_error);
    Some(ToolResult { content, details, is_error, ..ToolResult::default() })
}

/// A text as long as a model can take it.
fn bounded(block: ContentBlock) -> ContentBlock {
    let Some(text) = block.as_text() else { return block };
    let truncation = truncate_head(text, TextLimits::default());
    if !truncation.truncated {
        return block;
    }
    let left_out = text.len() - truncation.content.len();
    ContentBlock::text(format!("{}\n\n[{left_out} more bytes are left out]", truncation.content))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_with_content_is_a_result() {
        let text = answer(r#" {"content": "done", "details": {"a": 1}} "#).unwrap();
        assert_eq!(text, ToolResult { details: Some(json!({"a": 1})), ..ToolResult::text("done") });
        let failed = answer(r#"{"content": [{"type": "text", "text": "no"}], "isError": true}"#).unwrap();
        assert_eq!(failed, ToolResult { is_error: Some(true), ..ToolResult::text("no") });
        let image = json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]});
        assert_eq!(answer(&image.to_string()).unwrap().content.len(), 1);
        for plain in [
            "",
            "done",
            "[1]",
            "{not json",
            r#"{"contents": 1}"#,
            r#"{"content": "x", "more": 1}"#,
            r#"{"content": 5}"#,
        ] {
            assert_eq!(answer(plain), None, "{plain}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let long = json!({ "content": "line\n".repeat(100_000) }).to_string();
        let result = answer(&long).unwrap();
        let text = result.content[0].as_text().unwrap();
        assert!(text.len() < 60_000 && text.ends_with("more bytes are left out]"), "{}", text.len());
    }
}
