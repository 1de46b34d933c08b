//! The tools by which models list and read the resources of servers: `list_mcp_resources`, `list_mcp_resource_templates` and
//! `read_mcp_resource`. They are there while a server has resources.

use std::sync::{Arc, Weak};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::OutputStorage;
use agentd_protocol::tool::{ToolResult, ToolSpec};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    peer::RequestError,
    result::{Spill, tool_result},
    server::McpServer,
};

/// What a URL of a resource begins with; the server's name follows, a slash, and the resource's own URI as it stands.
pub const RESOURCE_URL: &str = "mcp://";

/// Pages of one server that are listed where no server is named.
const MAX_PAGES: usize = 100;

/// The fields of a resource that models are shown; icons and metadata cost tokens and say nothing.
const SHOWN: [&str; 7] = ["uri", "uriTemplate", "name", "title", "description", "mimeType", "size"];

/// The code of servers that have no templates.
const METHOD_NOT_FOUND: i64 = crate::message::METHOD_NOT_FOUND;

/// The servers of a session that have resources.
pub(crate) trait ResourceServers: Send + Sync {
    /// By name.
    fn with_resources(&self) -> Vec<Arc<McpServer>>;
}

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Templates,
    Read,
}

/// One of the three tools.
pub(crate) struct ResourceTool {
    kind: Kind,
    spec: Arc<ToolSpec>,
    servers: Weak<dyn ResourceServers>,
    storage: OutputStorage,
}

/// The three tools.
pub(crate) fn resource_tools(
    servers: &Weak<dyn ResourceServers>,
    storage: &OutputStorage,
) -> Vec<Arc<dyn Tool>> {
    let server =
        json!({"type": "string", "description": "The name of the MCP server; without it: all servers"});
    let cursor =
        json!({"type": "string", "description": "nextCursor of the page before; only with a server"});
    let listing = json!({"type": "object", "properties": {"server": server, "cursor": cursor}});
    let reading = json!({
        "type": "object",
        "properties": {
            "server": {"type": "string", "description": "The name of the MCP server"},
            "uri": {"type": "string", "description": "The URI of the resource, as it was listed or linked"},
        },
        "required": ["server", "uri"],
    });
    let tools = [
        (
            Kind::List,
            "list_mcp_resources",
            "Lists the resources that MCP servers offer to be read.",
            &listing,
        ),
        (
            Kind::Templates,
            "list_mcp_resource_templates",
            "Lists the templates of URIs of resources that MCP servers offer to be read.",
            &listing,
        ),
        (Kind::Read, "read_mcp_resource", "Reads a resource of an MCP server.", &reading),
    ];
    let tool = |(kind, name, description, parameters): (Kind, &str, &str, &Value)| {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.clone(),
            constrained_sampling: None,
        };
        Arc::new(ResourceTool {
            kind,
            spec: Arc::new(spec),
            servers: Weak::clone(servers),
            storage: storage.clone(),
        }) as Arc<dyn Tool>
    };
    tools.into_iter().map(tool).collect()
}

impl ResourceTool {
    async fn run(&self, Invocation { arguments, cancel, .. }: Invocation) -> Result<ToolResult, ToolError> {
        let servers = self.servers.upgrade().map(|servers| servers.with_resources()).unwrap_or_default();
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let named = text("server").map(|name| {
            servers.iter().find(|server| server.config().name == name).ok_or_else(|| {
                let names: Vec<&str> = servers.iter().map(|server| server.config().name.as_str()).collect();
                let there = if names.is_empty() {
                    "none has".to_owned()
                } else {
                    format!("there are {}", names.join(", "))
                };
                ToolError(format!("No MCP server \"{name}\" with resources; {there}."))
            })
        });
        match (self.kind, named.transpose()?) {
            (Kind::Read, Some(server)) => self.read(server, text("uri").unwrap_or_default(), &cancel).await,
            (Kind::Read, None) => Err(ToolError("\"server\" must name an MCP server.".to_owned())),
            (kind, Some(server)) => {
                let page = page(server, kind, text("cursor"), &cancel).await;
                let mut page = page.map_err(|error| failed(server, &error))?;
                page["server"] = json!(server.config().name);
                Ok(ToolResult::text(page.to_string()))
            }
            (kind, None) => Ok(ToolResult::text(all(&servers, kind, &cancel).await?.to_string())),
        }
    }

    async fn read(
        &self,
        server: &Arc<McpServer>,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, ToolError> {
        let answer = server.ask("resources/read", json!({"uri": uri}), Some(cancel)).await;
        let answer = answer.map_err(|error| failed(server, &error))?;
        // As if a tool had given them.
        let contents = answer.get("contents").and_then(Value::as_array).cloned().unwrap_or_default();
        let blocks: Vec<Value> =
            contents.into_iter().map(|resource| json!({"type": "resource", "resource": resource})).collect();
        let (name, storage) = (server.config().name.clone(), self.storage.clone());
        let made = tokio::task::spawn_blocking(move || {
            let spill =
                Spill { storage: &storage, server: &name, tool: "read_mcp_resource", reads_resources: true };
            tool_result(json!({"content": blocks}), &spill)
        });
        made.await.unwrap_or_else(|error| Err(error.to_string())).map_err(ToolError)
    }
}

/// All resources of all servers. A server that fails is named beside the others' lists.
async fn all(servers: &[Arc<McpServer>], kind: Kind, cancel: &CancellationToken) -> Result<Value, ToolError> {
    let key = key(kind);
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for server in servers {
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            match page(server, kind, cursor.as_deref(), cancel).await {
                Ok(mut page) => {
                    for item in page[key].as_array_mut().into_iter().flatten() {
                        item["server"] = json!(server.config().name);
                        found.push(item.take());
                    }
                    cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                }
                Err(Some(error)) => {
                    errors.push(json!({"server": server.config().name, "error": error}));
                    break;
                }
                Err(None) => return Err(failed(server, &None)),
            }
            if cursor.is_none() {
                break;
            }
        }
    }
    let mut answer = json!({key: found});
    if !errors.is_empty() {
        answer["errors"] = Value::Array(errors);
    }
    Ok(answer)
}

/// One page of a server.
async fn page(
    server: &Arc<McpServer>,
    kind: Kind,
    cursor: Option<&str>,
    cancel: &CancellationToken,
) -> Result<Value, Option<String>> {
    let method = if kind == Kind::Templates { "resources/templates/list" } else { "resources/list" };
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let answer = match server.ask_raw(method, params, Some(cancel)).await {
        Ok(answer) => answer,
        // Without templates, some servers do not know the method.
        Err(Some(RequestError::Server(error)))
            if kind == Kind::Templates && error.code == METHOD_NOT_FOUND =>
        {
            json!({})
        }
        Err(error) => return Err(error.map(|error| server.describe(&error))),
    };
    let items = answer.get(key(kind)).and_then(Value::as_array);
    let items: Vec<Value> = items.into_iter().flatten().filter(|item| !is_app(item)).map(shown).collect();
    let mut page = json!({key(kind): items});
    if let Some(next) = answer.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty()) {
        page["nextCursor"] = json!(next);
    }
    Ok(page)
}

fn key(kind: Kind) -> &'static str {
    if kind == Kind::Templates { "resourceTemplates" } else { "resources" }
}

/// Whether a resource is a part of a server's own user interface.
fn is_app(item: &Value) -> bool {
    let has =
        |key: &str, part: &str| item.get(key).and_then(Value::as_str).is_some_and(|text| text.contains(part));
    item.get("uri").and_then(Value::as_str).is_some_and(|uri| uri.starts_with("ui://"))
        || has("mimeType", "profile=mcp-app")
}

fn shown(item: &Value) -> Value {
    let kept = SHOWN.iter().filter_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
    Value::Object(kept.collect::<Map<_, _>>())
}

/// The error of a server, or of a call that was stopped.
fn failed(server: &McpServer, error: &Option<String>) -> ToolError {
    ToolError(match error {
        Some(error) => format!("The MCP server \"{}\" failed: {error}", server.config().name),
        None => "Operation aborted".to_owned(),
    })
}

impl Tool for ResourceTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_shown_what_says_something() {
        let item = json!({"uri": "a:b", "name": "n", "icons": ["x"], "_meta": {}, "size": 3});
        assert_eq!(shown(&item), json!({"uri": "a:b", "name": "n", "size": 3}));
        assert!(!is_app(&item) && is_app(&json!({"uri": "ui://x"})));
        assert!(is_app(&json!({"uri": "a:b", "mimeType": "text/html;profile=mcp-app"})));
    }
}
