//! The tools of a session, with their argument schemas compiled once.

use std::sync::Arc;

use agentd_protocol::tool::ToolSpec;

use crate::{Tool, arguments::ArgumentSchema};

/// Tools in a fixed order, found by name.
#[derive(Default)]
pub struct ToolSet {
    tools: Vec<RegisteredTool>,
}

/// A tool and the check of its arguments.
pub struct RegisteredTool {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Checks arguments against the tool's schema.
    pub arguments: ArgumentSchema,
}

impl ToolSet {
    /// Takes the tools in the order in which models and system prompts see them.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools
            .into_iter()
            .map(|tool| RegisteredTool { arguments: ArgumentSchema::new(&tool.spec().parameters), tool })
            .collect();
        Self { tools }
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.tools.iter().find(|registered| registered.tool.spec().name == name)
    }

    /// All tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|registered| &registered.tool)
    }

    /// What models are told about the tools.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.iter().map(|tool| tool.spec().clone()).collect()
    }
}
