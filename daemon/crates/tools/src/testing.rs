//! Helpers shared by the tools' tests.

use std::{path::Path, sync::Arc};

use agentd_agent::{ArgumentSchema, Invocation, Tool, ToolError, ToolProgress};
use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Calls `tool` in `cwd` as the agent does: prepares and checks the arguments, then makes the call.
pub(crate) fn call(
    tool: &Arc<dyn Tool>,
    cwd: &Path,
    arguments: Value,
) -> impl Future<Output = Result<ToolResult, ToolError>> + Send + 'static {
    call_with(tool, cwd, arguments, CancellationToken::new())
}

/// [`call`] that can be aborted.
pub(crate) fn call_with(
    tool: &Arc<dyn Tool>,
    cwd: &Path,
    arguments: Value,
    cancel: CancellationToken,
) -> impl Future<Output = Result<ToolResult, ToolError>> + Send + 'static {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let tool = Arc::clone(tool);
    let cwd = cwd.to_owned();
    async move {
        let schema = ArgumentSchema::new(&tool.spec().parameters);
        let arguments = schema.check(&tool.spec().name, tool.prepare(arguments)).map_err(ToolError)?;
        let invocation = Invocation {
            call_id: "call".to_owned(),
            arguments,
            cwd,
            sees_images: true,
            images: agentd_images::Images::default(),
            session_env: Vec::new(),
            environment: None,
            cancel,
            progress: ToolProgress::new(|_| ()),
        };
        tool.execute(invocation).await
    }
}

/// The only text of a result.
pub(crate) fn text(result: &ToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text { text, .. }] => text,
        other => panic!("{other:?}"),
    }
}

/// The text of a call that must succeed.
pub(crate) async fn done(tool: &Arc<dyn Tool>, cwd: &Path, arguments: Value) -> String {
    let result = call(tool, cwd, arguments).await.unwrap();
    assert_eq!(result.is_error, None);
    text(&result).to_owned()
}

/// The message of a call that must fail.
pub(crate) async fn refused(tool: &Arc<dyn Tool>, cwd: &Path, arguments: Value) -> String {
    call(tool, cwd, arguments).await.unwrap_err().0
}
