//! Built-in tools that extensions run themselves: the implementation alone, without the permissions and hooks of a call of the model.

use std::{path::PathBuf, sync::Arc};

use agentd_agent::{ArgumentSchema, Invocation, Tool, ToolProgress, hooks::OUTSIDE_SANDBOX};
use agentd_extensions::{CallResponder, HostFailure};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{context::SessionContext, models::Choice};

/// A built-in tool that an extension runs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuiltinCall {
    name: String,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    options: BuiltinOptions,
    /// The call of the model that it is a part of.
    #[serde(default)]
    tool_call_id: Option<String>,
    /// Functions of the extension, which the Node host calls itself.
    #[serde(default)]
    ops: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BuiltinOptions {
    #[serde(default)]
    command_prefix: Option<String>,
}

/// Runs a built-in tool for an extension, to its end, and answers with its result.
pub(crate) async fn run_builtin(
    context: Arc<SessionContext>,
    choice: Choice,
    call: BuiltinCall,
    responder: CallResponder,
) {
    let outcome = match prepared(&context, call, &choice, &responder).await {
        Ok((tool, invocation)) => {
            let result = tool.execute(invocation).await;
            result
                .map_err(|error| error.0)
                .and_then(|result| serde_json::to_value(result).map_err(|error| error.to_string()))
        }
        Err(error) => Err(error),
    };
    responder.send(&outcome.map_err(|error| HostFailure::new("failed", error)));
}

async fn prepared(
    context: &SessionContext,
    call: BuiltinCall,
    choice: &Choice,
    responder: &CallResponder,
) -> Result<(Arc<dyn Tool>, Invocation), String> {
    let BuiltinCall { name, cwd, mut params, options, tool_call_id, ops } = call;
    if ops.is_some() {
        return Err(
            "A built-in tool with operations of an extension runs in the extension's host.".to_owned()
        );
    }
    let tool = context.tools.implementation(&name).ok_or_else(|| format!("Tool {name} not found"))?;
    // Only the user can say that a command may leave the sandbox, and is not asked here.
    params.remove(OUTSIDE_SANDBOX);
    if let (Some(prefix), Some(Value::String(command))) = (options.command_prefix, params.get_mut("command"))
        && context.shell_prefix.as_ref() != Some(&prefix)
    {
        *command = format!("{prefix}\n{command}");
    }
    let schema = ArgumentSchema::new(&tool.spec().parameters);
    let arguments = schema.check_beside(&name, tool.prepare(params)).await?;
    let cwd = match cwd {
        Some(cwd) => context.cwd.join(cwd),
        None => context.directory().await.map_err(|failure| failure.error)?,
    };
    let (cancel, progress) = (abort_of(responder), responder.progress());
    let invocation = Invocation {
        call_id: tool_call_id.unwrap_or_else(|| format!("extension-{}", uuid::Uuid::new_v4())),
        arguments,
        cwd,
        sees_images: choice.model.sees_images(),
        images: context.images.clone(),
        session_env: context.session_env(&choice.model, choice.level),
        environment: None,
        cancel,
        progress: ToolProgress::new(move |partial| progress.update(&json!(partial))),
    };
    Ok((Arc::clone(tool), invocation))
}

/// Fires when the extension gives the call up, or is gone.
fn abort_of(responder: &CallResponder) -> CancellationToken {
    responder.cancelled().child_token()
}
