//! Resources of a session's servers by their URLs: `mcp://<server>/<uri>`.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Inner, McpSession};
use crate::{resource_tools::RESOURCE_URL, server::McpServer};

impl McpSession {
    /// The content of the resource of `<server>/<uri>`. Connects the server where it is not connected. `Err(None)`: given up by `cancel`.
    ///
    /// # Errors
    /// The text for the model.
    pub async fn read_resource(
        &self,
        rest: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>, Option<String>> {
        let form = || {
            format!("A resource is named {RESOURCE_URL}<server>/<uri>, with the URI as the server lists it.")
        };
        let (name, uri) =
            rest.split_once('/').filter(|(_, uri)| !uri.is_empty()).ok_or_else(|| Some(form()))?;
        let server = self.0.wanted_server(name).map_err(Some)?;
        let answer = server.ask("resources/read", json!({"uri": uri}), Some(cancel)).await;
        let answer = answer.map_err(|error| {
            error.map(|error| {
                format!("Resource {uri} of the MCP server \"{name}\" could not be read: {error}")
            })
        })?;
        let content = server.build(answer, |answer| content_of(&answer)).await;
        content.map_err(|problem| {
            Some(format!("Resource {uri} of the MCP server \"{name}\" cannot be shown: {problem}"))
        })
    }
}

impl Inner {
    /// A server that the session uses, by its name.
    fn wanted_server(&self, name: &str) -> Result<Arc<McpServer>, String> {
        let servers = self.lock();
        let found = servers.get(name).filter(|it| it.is_wanted());
        found.map(|it| Arc::clone(&**it.server)).ok_or_else(|| {
            let names: Vec<&str> =
                servers.iter().filter(|(_, it)| it.is_wanted()).map(|(name, _)| name.as_str()).collect();
            let there = if names.is_empty() {
                "none is in use".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            format!("No MCP server \"{name}\"; {there}.")
        })
    }
}

/// The bytes of one content, or the texts of several.
fn content_of(answer: &Value) -> Result<Vec<u8>, String> {
    let contents = answer.get("contents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let bytes = |content: &Value| match (content.get("text"), content.get("blob")) {
        (Some(Value::String(text)), _) => Ok(text.clone().into_bytes()),
        (_, Some(Value::String(blob))) => {
            BASE64_STANDARD.decode(blob.trim()).map_err(|_| "its blob is not Base64".to_owned())
        }
        _ => Err("it has neither text nor blob".to_owned()),
    };
    match contents {
        [] => Err("it has no content".to_owned()),
        [content] => bytes(content),
        contents => {
            let texts = contents.iter().map(|content| {
                let text = String::from_utf8(bytes(content)?);
                Ok(text.unwrap_or_else(|_| {
                    let uri = content.get("uri").and_then(Value::as_str).unwrap_or("without a URI");
                    format!("[{uri} is no text: read it by its own URI]")
                }))
            });
            Ok(texts.collect::<Result<Vec<String>, String>>()?.join("\n").into_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_become_bytes() {
        let check = |contents: Value, expected: Result<&str, &str>| {
            let content = content_of(&json!({"contents": contents}));
            let content = content.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(content.as_deref().map_err(String::as_str), expected);
        };
        check(json!([{"text": "one"}]), Ok("one"));
        check(json!([{"blob": "aGk="}]), Ok("hi"));
        check(
            json!([{"text": "one"}, {"blob": "aGk="}, {"uri": "x:1", "blob": "/w=="}]),
            Ok("one\nhi\n[x:1 is no text: read it by its own URI]"),
        );
        check(json!([{"blob": "#"}]), Err("its blob is not Base64"));
        check(json!([{}]), Err("it has neither text nor blob"));
        check(json!([]), Err("it has no content"));
    }
}
