//! The tool `yield`, by which a subagent hands in its result.

use std::sync::{Arc, LazyLock};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    subagent::YIELD_TOOL,
    tool::{ToolResult, ToolSpec},
};
use serde_json::json;

use crate::subagent_place::{ChildState, Handing};

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: YIELD_TOOL.to_owned(),
        description: "Hand in the result of your task. Call it exactly once when you are done: your work ends with it. data: the result. \
                      error instead of data: you cannot do the task, and why. type [\"label\"] with data: a part of the result, after which \
                      you go on."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "data": {"description": "The result, or the part of it"},
                "error": {"type": "string", "description": "Why the task cannot be done"},
                "type": {
                    "description": "\"result\", or a list of one label for a part",
                    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                },
            },
        }),
        constrained_sampling: None,
    })
});

/// The tool.
pub(crate) struct YieldTool {
    pub(crate) state: Arc<ChildState>,
}

impl Tool for YieldTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Hand in the result")
    }

    /// Calls beside it have their results before the work ends.
    fn execution(&self) -> ExecutionMode {
        ExecutionMode::Sequential
    }

    fn ends_run(&self) -> bool {
        true
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move {
            match self.state.handed_in.take(&invocation.arguments) {
                Ok(Handing::Ended) => {
                    Ok(ToolResult { terminate: Some(true), ..ToolResult::text("The result was handed in.") })
                }
                Ok(Handing::Section(label)) => {
                    Ok(ToolResult::text(format!("The part \"{label}\" was taken. Go on.")))
                }
                Err(error) => {
                    let ends = self.state.handed_in.has_ended();
                    if ends {
                        let result = ToolResult { is_error: Some(true), ..ToolResult::text(error) };
                        return Ok(ToolResult { terminate: Some(true), ..result });
                    }
                    Err(ToolError(error))
                }
            }
        })
    }
}
