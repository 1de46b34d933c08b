//! The tool `tool_search`: it finds tools that are not declared to the model yet, and has them declared from the next turn on.

use std::{
    pin::Pin,
    sync::{Arc, Weak},
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    text_bounds,
    tool::{ToolResult, ToolSpec},
};
use serde_json::{Value, json};

use crate::search::{Document, search};

/// The tool's name.
pub const SEARCH_TOOL: &str = "tool_search";

/// Matches where the model names no number.
const LIMIT: u64 = 8;

/// The most matches: each is declared with its schema from then on.
const MAX_LIMIT: u64 = 50;

/// The longest description that a match is shown with, in bytes. The whole is declared with the tool.
const SHOWN: usize = 300;

/// Tools that are found before they are declared.
pub(crate) trait DeferredTools: Send + Sync {
    /// Connects servers that were not needed before, and waits until all are there or have failed, for a limited time.
    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// The tools that are not declared unasked.
    fn documents(&self) -> Vec<Document>;

    /// Declares tools from the next turn on.
    fn load(&self, names: &[String]);

    /// The servers that are not there, and why.
    fn missing(&self) -> Vec<(String, String)>;
}

/// The tool.
pub(crate) struct SearchTool {
    tools: Weak<dyn DeferredTools>,
    spec: Arc<ToolSpec>,
}

impl SearchTool {
    pub(crate) fn new(tools: Weak<dyn DeferredTools>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words, or its exact name"},
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": MAX_LIMIT,
                    "description": format!("The most tools to load (default {LIMIT})"),
                },
            },
            "required": ["query"],
        });
        let description = "Finds tools of MCP servers that you were not given yet, and loads them: you can call the tools that it \
                           names from your next message on. Use it before you say that something cannot be done.";
        let spec = ToolSpec {
            name: SEARCH_TOOL.to_owned(),
            description: description.to_owned(),
            parameters,
            constrained_sampling: None,
        };
        Self { tools, spec: Arc::new(spec) }
    }

    async fn find(&self, Invocation { arguments, cancel, .. }: Invocation) -> Result<ToolResult, ToolError> {
        let Some(tools) = self.tools.upgrade() else {
            return Err(ToolError("The MCP servers of this session are closed.".to_owned()));
        };
        if cancel.run_until_cancelled(tools.settled()).await.is_none() {
            return Err(ToolError("Operation aborted".to_owned()));
        }
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
        let documents = tools.documents();
        let found = search(&documents, query, usize::try_from(limit).unwrap_or(usize::MAX));
        let names: Vec<String> = found.iter().map(|document| document.name.clone()).collect();
        tools.load(&names);
        let mut lines = vec![match names.len() {
            0 => format!("No tool fits \"{query}\" among the {} that can be loaded.", documents.len()),
            1 => "1 tool was loaded. You can call it from your next message on:".to_owned(),
            count => format!("{count} tools were loaded. You can call them from your next message on:"),
        }];
        lines.extend(found.iter().map(|document| {
            let about = document.description.lines().next().unwrap_or_default();
            format!("- {}: {}", document.name, text_bounds::head(about, SHOWN))
        }));
        let missing = tools.missing();
        lines.extend(missing.iter().map(|(name, why)| {
            format!("The MCP server \"{name}\" is not there: {}", text_bounds::head(why, SHOWN))
        }));
        let details = json!({"tools": names});
        Ok(ToolResult { details: Some(details), ..ToolResult::text(lines.join("\n")) })
    }
}

impl Tool for SearchTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("find and load further tools, those of MCP servers")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.find(invocation))
    }
}
