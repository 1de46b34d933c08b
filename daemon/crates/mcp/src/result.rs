//! The result of a call, as the model gets it.

use std::path::PathBuf;

use agentd_process::OutputStorage;
use agentd_protocol::{
    message::{ContentBlock, ImageContent},
    text_bounds,
    tool::ToolResult,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// The longest text of a result, in bytes: a longer one goes to a file, and the model gets its beginning and its end.
const MAX_TEXT: usize = 20_480;

/// Bytes of each of these.
const HALF: usize = MAX_TEXT / 2;

/// Bytes of text that are worth a token, roughly.
const BYTES_PER_TOKEN: usize = 4;

/// The longest blob that is kept in a file, in bytes.
const MAX_BLOB: usize = 16 << 20;

/// Where contents go that are too long to show, or no text.
pub(crate) struct Spill<'a> {
    /// The session's place for long outputs.
    pub(crate) storage: &'a OutputStorage,
    /// The server, for names and texts.
    pub(crate) server: &'a str,
    /// The tool or prompt, by the server's name.
    pub(crate) tool: &'a str,
    /// Whether the model can read the server's resources.
    pub(crate) reads_resources: bool,
}

/// Turns the answer to `tools/call` into a result. Writes files; blocks.
///
/// # Errors
/// The text of a call that failed, for the model.
pub(crate) fn tool_result(mut answer: Value, spill: &Spill<'_>) -> Result<ToolResult, String> {
    let Some(members) = answer.as_object_mut() else {
        return Err(format!("MCP tool {}/{} gave a result that is no object", spill.server, spill.tool));
    };
    members.remove("_meta");
    let blocks = match members.get("content") {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        _ => &[],
    };
    let mut content: Vec<ContentBlock> = Vec::new();
    for block in blocks {
        content.push(read_block(block, spill));
    }
    if content.is_empty()
        && let Some(structured) = members.get("structuredContent")
    {
        content.push(ContentBlock::text(structured.to_string()));
    }
    let is_error = members.get("isError") == Some(&Value::Bool(true));
    let file = shorten(&mut content, spill);
    if is_error && !content.iter().any(has_something) {
        content =
            vec![ContentBlock::text(format!("MCP tool {}/{} returned an error", spill.server, spill.tool))];
    }
    let mut details = json!({"server": spill.server, "tool": spill.tool});
    if let Some(file) = &file {
        details["fullOutputPath"] = json!(file.display().to_string());
    }
    // What is long is in the file; the session's file does not keep it a second time.
    let structured_content =
        if file.is_some() || content_bytes(&answer) > MAX_TEXT { None } else { Some(answer) };
    Ok(ToolResult {
        content,
        details: Some(details),
        structured_content,
        is_error: is_error.then_some(true),
        ..ToolResult::default()
    })
}

fn has_something(block: &ContentBlock) -> bool {
    block.as_text().is_none_or(|text| !text.trim().is_empty())
}

/// Bytes of an answer as JSON, roughly: its texts.
fn content_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(content_bytes).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + content_bytes(value)).sum(),
        _ => 8,
    }
}

/// A block of content as the model gets it. Writes files; blocks.
pub(crate) fn read_block(block: &Value, spill: &Spill<'_>) -> ContentBlock {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => ContentBlock::text(text("text")),
        "image" if !text("data").is_empty() => image(text("data"), text("mimeType")),
        "audio" => ContentBlock::text(format!("[audio {} omitted]", text("mimeType"))),
        "resource_link" => ContentBlock::text(resource_link(block, spill)),
        "resource" => resource(block.get("resource").unwrap_or(&Value::Null), spill),
        kind => ContentBlock::text(format!("[content of the unknown kind \"{kind}\" omitted]")),
    }
}

fn image(data: &str, mime_type: &str) -> ContentBlock {
    ContentBlock::Image(ImageContent { data: data.to_owned(), mime_type: mime_type.to_owned() })
}

fn resource_link(block: &Value, spill: &Spill<'_>) -> String {
    let text = |key: &str| block.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut line = format!("[Resource {}", text("uri").unwrap_or("without a URI"));
    if let Some(name) = text("title").or(text("name")) {
        line.push_str(&format!(" \"{name}\""));
    }
    let size = block.get("size").and_then(Value::as_u64).map(|bytes| format!("{bytes} bytes"));
    let facts: Vec<String> = text("mimeType").map(str::to_owned).into_iter().chain(size).collect();
    if !facts.is_empty() {
        line.push_str(&format!(" ({})", facts.join(", ")));
    }
    if let Some(description) = text("description") {
        line.push_str(&format!(": {description}"));
    }
    if spill.reads_resources {
        line.push_str(&format!(". Read it with read_mcp_resource (server \"{}\")", spill.server));
    }
    line.push(']');
    line
}

/// An embedded resource: text and images as they are, others in a file.
fn resource(resource: &Value, spill: &Spill<'_>) -> ContentBlock {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let kind = text("mimeType").unwrap_or("application/octet-stream");
    if let Some(content) = text("text") {
        return ContentBlock::text(content);
    }
    let uri = text("uri").unwrap_or("without a URI");
    let Some(blob) = text("blob") else {
        return ContentBlock::text(format!("[Resource {uri} ({kind}) without content]"));
    };
    if kind.starts_with("image/") {
        return image(blob, kind);
    }
    let Ok(bytes) = BASE64_STANDARD.decode(blob.trim()) else {
        return ContentBlock::text(format!("[Resource {uri} ({kind}): its blob is not Base64]"));
    };
    let is_text = kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml");
    match String::from_utf8(bytes) {
        Ok(content) if is_text => ContentBlock::text(content),
        Ok(content) => ContentBlock::text(saved(uri, kind, content.as_bytes(), spill)),
        Err(error) => ContentBlock::text(saved(uri, kind, error.as_bytes(), spill)),
    }
}

/// Keeps a blob in a file; the line that says where.
fn saved(uri: &str, kind: &str, bytes: &[u8], spill: &Spill<'_>) -> String {
    if bytes.len() > MAX_BLOB {
        return format!("[Resource {uri} ({kind}, {} bytes) is too large to be kept]", bytes.len());
    }
    match spill.storage.store(bytes) {
        Ok(path) => {
            format!("[Resource {uri} ({kind}, {} bytes) is in the file {}]", bytes.len(), path.display())
        }
        Err(error) => format!("[Resource {uri} ({kind}) could not be kept in a file: {error}]"),
    }
}

/// Keeps texts that are too long together in a file, and leaves their beginning and end. Images stay.
fn shorten(content: &mut Vec<ContentBlock>, spill: &Spill<'_>) -> Option<PathBuf> {
    let texts: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
    if texts.iter().map(|text| text.len()).sum::<usize>() <= MAX_TEXT {
        return None;
    }
    let whole = texts.join("\n");
    let (head, tail) = (text_bounds::head(&whole, HALF), text_bounds::tail(&whole, HALF));
    let left_out = whole[head.len()..whole.len() - tail.len()].chars().count();
    let written = spill.storage.store(whole.as_bytes());
    let place = match &written {
        Ok(path) => format!("[Full output: {} (read it with offset/limit)]", path.display()),
        Err(error) => format!("[The full output could not be kept in a file: {error}]"),
    };
    let text = format!(
        "Warning: truncated output (original token count: {})\nTotal output lines: {}\n\n{head}…{left_out} chars \
         truncated…{tail}\n\n{place}",
        whole.len().div_ceil(BYTES_PER_TOKEN),
        whole.lines().count(),
    );
    content.retain(|block| block.as_text().is_none());
    content.insert(0, ContentBlock::text(text));
    written.ok()
}

/// Reads a block without anything on disk, for the laws: contents that would go to a file are left out.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz_block(block: &Value) {
    let nowhere = std::path::Path::new("/nonexistent/agentd");
    let storage = OutputStorage::from(nowhere);
    let spill = Spill { storage: &storage, server: "s", tool: "t", reads_resources: true };
    let read = read_block(block, &spill);
    assert!(matches!(read, ContentBlock::Text { .. } | ContentBlock::Image(_)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(answer: Value) -> Result<ToolResult, String> {
        let folder = tempfile::tempdir().unwrap();
        tool_result(
            answer,
            &Spill { storage: &folder.path().into(), server: "s", tool: "t", reads_resources: true },
        )
    }

    fn texts(result: &ToolResult) -> Vec<&str> {
        result.content.iter().map(|block| block.as_text().unwrap_or("(image)")).collect()
    }

    #[test]
    fn every_kind_of_content_reaches_the_model() {
        let result = result(json!({"_meta": {"x": 1}, "content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "x:1", "name": "n", "title": "T", "mimeType": "text/plain", "size": 3,
             "description": "D"},
            {"type": "resource", "resource": {"uri": "x:2", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "x:3", "mimeType": "application/json", "blob": "e30="}},
            {"type": "resource", "resource": {"uri": "x:4", "mimeType": "image/png", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "x:5", "mimeType": "text/plain", "blob": "###"}},
            {"type": "video"},
            3
        ]}))
        .unwrap();
        assert_eq!(
            texts(&result),
            [
                "hello",
                "(image)",
                "[audio audio/wav omitted]",
                "[Resource x:1 \"T\" (text/plain, 3 bytes): D. Read it with read_mcp_resource (server \"s\")]",
                "inside",
                "{}",
                "(image)",
                "[Resource x:5 (text/plain): its blob is not Base64]",
                "[content of the unknown kind \"video\" omitted]",
                "[content of the unknown kind \"\" omitted]",
            ]
        );
        assert_eq!(result.details, Some(json!({"server": "s", "tool": "t"})));
        assert_eq!(result.structured_content.unwrap().get("_meta"), None);
    }

    #[test]
    fn structured_content_alone_is_shown_as_json() {
        let structured = result(json!({"structuredContent": {"a": 1}})).unwrap();
        assert_eq!(texts(&structured), ["{\"a\":1}"]);
        assert!(texts(&result(json!({"content": []})).unwrap()).is_empty());
        assert!(result(json!(null)).unwrap_err().contains("s/t"));
    }

    #[test]
    fn errors_say_at_least_which_tool_failed() {
        let failed = result(json!({"isError": true, "content": [{"type": "text", "text": " "}]})).unwrap();
        assert_eq!((texts(&failed), failed.is_error), (vec!["MCP tool s/t returned an error"], Some(true)));
        let failed =
            result(json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]})).unwrap();
        assert_eq!((texts(&failed), failed.is_error), (vec!["no such file"], Some(true)));
    }

    #[test]
    fn what_is_too_long_is_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let storage = OutputStorage::from(folder.path());
        let spill = Spill { storage: &storage, server: "s", tool: "t", reads_resources: false };
        let long = "é\n".repeat(9_000);
        let answer = json!({"content": [
            {"type": "text", "text": long}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        ], "structuredContent": {"again": long}});
        let result = tool_result(answer, &spill).unwrap();
        let path = result.details.as_ref().unwrap()["fullOutputPath"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), long);
        let shown = texts(&result);
        assert_eq!((shown.len(), shown[1]), (2, "(image)"));
        assert!(shown[0].starts_with(
            "Warning: truncated output (original token count: 6750)\nTotal output lines: 9000\n\né"
        ));
        assert!(shown[0].contains("chars truncated…") && shown[0].contains(path));
        assert!(shown[0].len() < MAX_TEXT + 500 && result.structured_content.is_none());
    }
}
