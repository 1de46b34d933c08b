//! A tool of a server, as the loop calls it.

use std::sync::{Arc, Weak};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::OutputStorage;
use agentd_protocol::tool::{ToolAnnotations, ToolSpec};

use crate::{definition::ToolDefinition, elicitation::UserInput, server::McpServer};

/// A tool of a server.
pub(crate) struct McpTool {
    /// Weak: the registry may keep a tool longer than the session its server.
    pub(crate) server: Weak<McpServer>,
    pub(crate) spec: Arc<ToolSpec>,
    /// The server's own name for it.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) annotations: Option<ToolAnnotations>,
    /// Whether the user believes what the server says of its tools.
    pub(crate) trusts_hints: bool,
    pub(crate) storage: OutputStorage,
    /// Answers what the server asks during a call.
    pub(crate) user: Option<Arc<dyn UserInput>>,
}

impl McpTool {
    pub(crate) fn new(
        server: &Arc<McpServer>,
        definition: &ToolDefinition,
        name: String,
        (storage, user): (&OutputStorage, Option<Arc<dyn UserInput>>),
    ) -> Self {
        Self {
            server: Arc::downgrade(server),
            trusts_hints: server.config().trusts_hints,
            annotations: definition.annotations.clone(),
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

    fn annotations(&self) -> Option<&ToolAnnotations> {
        self.annotations.as_ref()
    }

    fn is_trusted_read(&self) -> bool {
        let says_so = |annotations: &ToolAnnotations| annotations.read_only_hint == Some(true);
        self.trusts_hints && self.annotations.as_ref().is_some_and(says_so)
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
