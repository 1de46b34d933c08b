//! `mcp://` in the tool `read`: resources of the session's MCP servers.

use std::sync::{Arc, Weak};

use agentd_agent::ToolError;
use agentd_mcp::{McpSession, RESOURCE_URL};
use agentd_tools::{UrlContent, UrlReader};
use tokio_util::sync::CancellationToken;

/// The result of a call that was stopped.
const ABORTED: &str = "Operation aborted";

/// Reads resources. Does not keep the servers.
pub(crate) struct McpResources(Weak<McpSession>);

impl McpResources {
    /// The reader of a session with these servers.
    pub(crate) fn of(mcp: Option<&Arc<McpSession>>) -> Arc<dyn UrlReader> {
        Arc::new(Self(mcp.map(Arc::downgrade).unwrap_or_default()))
    }
}

impl UrlReader for McpResources {
    fn start(&self) -> &str {
        RESOURCE_URL
    }

    /// A colon may be part of a URI.
    fn takes_lines(&self) -> bool {
        false
    }

    fn read<'a>(&'a self, rest: &'a str, cancel: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move {
            let none = || ToolError("This session has no MCP servers.".to_owned());
            let mcp = self.0.upgrade().ok_or_else(none)?;
            let content = mcp.read_resource(rest, cancel).await;
            content.map_err(|error| ToolError(error.unwrap_or_else(|| ABORTED.to_owned())))
        })
    }
}
