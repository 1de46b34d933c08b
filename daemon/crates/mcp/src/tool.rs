//! A tool of a server, as the loop calls it.

use std::sync::{Arc, Weak};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::OutputStorage;
use agentd_protocol::tool::ToolSpec;

use crate::{definition::ToolDefinition, elicitation::UserInput, server::McpServer};

/// A tool of a server.
pub(crate) struct McpTool {
    /// Weak: the registry may keep a tool longer than the session its server.
    pub(crate) server: Weak<McpServer>,
    pub(crate) spec: Arc<ToolSpec>,
    /// The server's own name for it.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) storage: OutputStorage,
    /// Answers what the server asks during a call.
    pub(crate) user: Option<Arc<dyn UserInput>>,
}

impl McpTool {
    pub(crate) fn new(
        server: Weak<McpServer>,
        definition: &ToolDefinition,
        name: String,
        (storage, user): (&OutputStorage, Option<Arc<dyn UserInput>>),
    ) -> Self {
        Self {
            server,
            spec: Arc::new(definition.spec(name)),
            name: definition.name.clone(),
            title: definition.title.clone(),
            storage: storage.clone(),
            user,
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn label(&self) -> Option<&str> {
        self.title.as_deref()
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else {
                return Err(ToolError(format!("The MCP server of the tool {} is closed.", self.spec.name)));
            };
            server.call(&self.name, invocation, self.user.clone(), &self.storage).await
        })
    }
}
