//! Tools that a tool calls, one of an extension or a cell of code: as calls of the model, with their checks, hooks and events, but without entries.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use agentd_agent::{
    ArgumentSchema, ExecutionMode, Invocation, Tool, ToolProgress, ToolSet,
    hooks::{Action, GateDecision, Requester},
    images_of_result,
};
use agentd_extensions::{CallResponder, EventKind, HostFailure, NestedBook, NestedTicket, SessionExtensions};
use agentd_protocol::{
    Json,
    event::{Event, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate},
    message::ContentBlock,
    tool::ToolResult,
    tool_list::ToolExecution,
};
use bytes::Bytes;
use futures::FutureExt as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{context::SessionContext, message_sender::MessageSender, models::Choice, reply::encode};

/// The text for calls that were stopped.
const ABORTED: &str = "Operation aborted";

/// A call of a tool by a tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NestedCallParams {
    /// The call that makes it.
    pub(crate) tool_call_id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) args: Map<String, Value>,
}

/// What a call of a tool by a tool works with.
pub(crate) struct NestedSurroundings {
    pub(crate) context: Arc<SessionContext>,
    /// Told of the calls, where there are some.
    pub(crate) extensions: Option<SessionExtensions>,
    /// Where the calls are on record.
    pub(crate) book: NestedBook,
    pub(crate) choice: Choice,
    /// The tools that can be called so.
    pub(crate) tools: Arc<ToolSet>,
    pub(crate) to_clients: MessageSender<Bytes>,
}

/// A result, and whether the call failed.
type Outcome = (ToolResult, bool);

/// A call that has ended.
pub(crate) struct NestedOutcome {
    /// Its id.
    pub(crate) id: String,
    pub(crate) result: ToolResult,
    pub(crate) is_error: bool,
    /// How long it ran; `None` for one that was not run.
    pub(crate) duration_ms: Option<u64>,
}

/// Runs a call of an extension to its end, and answers with its result.
pub(crate) async fn run_nested_for_extension(
    with: NestedSurroundings,
    call: NestedCallParams,
    responder: CallResponder,
) {
    let (name, args) = (call.name.clone(), call.args.clone());
    let (progress, cancel) = (responder.progress(), responder.cancelled().clone());
    let outcome = match run_nested(&with, call, &cancel, |partial| progress.update(partial)).await {
        Ok(outcome) => outcome,
        Err(error) => return responder.send(&Err(HostFailure::new("invalid", error))),
    };
    let NestedOutcome { id, result, is_error, duration_ms } = outcome;
    let mut value = json!({
        "toolCall": {"type": "toolCall", "id": id, "name": name, "arguments": args},
        "result": result, "isError": is_error,
    });
    if let Some(duration) = duration_ms {
        value["durationMs"] = duration.into();
    }
    responder.send(&Ok(value));
}

/// Runs a call of a tool by a tool to its end. `progress` gets its results so far.
///
/// Cancel safety: none; `cancel` stops it.
///
/// # Errors
/// When the arguments cannot be written as JSON: there was no call.
pub(crate) async fn run_nested(
    with: &NestedSurroundings,
    call: NestedCallParams,
    cancel: &CancellationToken,
    progress: impl Fn(&ToolResult),
) -> Result<NestedOutcome, String> {
    let NestedCallParams { tool_call_id: parent, name, args } = call;
    let shown = Json::new(args.clone()).map_err(|error| error.to_string())?;
    let args = Shown { args, shown };
    let mut ticket = with.book.begin(&parent, &name, &args.args);
    let begun: Event = ToolExecutionStart {
        tool_call_id: ticket.id.clone(),
        tool_name: name.clone(),
        args: args.shown.clone(),
        parent_tool_call_id: Some(parent.clone()),
    }
    .into();
    with.emit(begun).await;
    let mut duration_ms = None;
    let outcome = match with.prepared(&mut ticket, &name, &args.args, cancel).await {
        Ok((tool, arguments)) => {
            let since = Instant::now();
            let outcome = with.executed(&ticket, (&tool, &name), arguments, &args, (cancel, &progress)).await;
            duration_ms = u64::try_from(since.elapsed().as_millis()).ok();
            outcome
        }
        Err(failure) => (ToolResult::failure(failure), true),
    };
    let (result, is_error) = outcome;
    let id = ticket.id.clone();
    let texts: Vec<&str> = result.content.iter().filter_map(ContentBlock::as_text).collect();
    ticket.finish(is_error.then(|| texts.join("\n")).as_deref(), result.usage.as_ref());
    let ended: Event = ToolExecutionEnd {
        tool_call_id: id.clone(),
        tool_name: name,
        result: result.clone(),
        is_error,
        duration_ms,
        parent_tool_call_id: Some(parent),
    }
    .into();
    with.emit(ended).await;
    Ok(NestedOutcome { id, result, is_error, duration_ms })
}

/// The arguments of a call, and their form in events.
struct Shown {
    args: Map<String, Value>,
    shown: Json<Map<String, Value>>,
}

impl NestedSurroundings {
    /// Handlers first, then clients.
    async fn emit(&self, event: Event) {
        if let (Some(extensions), Some(kind)) = (&self.extensions, EventKind::of(event.name())) {
            extensions.notify(kind, &event).await;
        }
        self.context.observe(&event);
        match encode(&event) {
            // A session that is gone has nobody to tell.
            Ok(line) => self.to_clients.send(line).await,
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }

    /// Finds the tool, checks the arguments, asks the permissions and the hooks.
    async fn prepared(
        &self,
        ticket: &mut NestedTicket,
        name: &str,
        args: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<(Arc<dyn Tool>, Value), String> {
        let context = &self.context;
        let found = self.tools.get(name).ok_or_else(|| format!("Tool {name} not found"))?;
        let tool = Arc::clone(&found.tool);
        let is_sequential = context.settings.tool_execution == Some(ToolExecution::Sequential)
            || tool.execution() == ExecutionMode::Sequential;
        if is_sequential {
            cancel.run_until_cancelled(ticket.alone()).await.ok_or(ABORTED)?;
        }
        let schema: ArgumentSchema = found.arguments.clone();
        let checked = async {
            let prepared = match tool.prepare_remotely(args) {
                Some(prepared) => prepared.await?,
                None => tool.prepare(args.clone()),
            };
            schema.check_beside(name, prepared).await
        };
        let arguments = cancel.run_until_cancelled(checked).await.ok_or(ABORTED)??;
        let asked = Action { schema: Some(&schema), ..action(ticket, &*tool, name, &arguments, context) };
        let arguments = match context.gate.before(&asked, cancel).await {
            GateDecision::Free { arguments: changed } => changed.unwrap_or(arguments),
            GateDecision::Blocked { reason, .. } => return Err(reason),
            GateDecision::Stopped => return Err(ABORTED.to_owned()),
        };
        let admitted = context.budget.begin_tool_call().await;
        admitted.map_err(|denied| format!("The call was not made. {}", denied.failure().error))?;
        Ok((tool, arguments))
    }

    /// Runs the tool, and passes its result through the hooks.
    async fn executed(
        &self,
        ticket: &NestedTicket,
        (tool, name): (&Arc<dyn Tool>, &str),
        arguments: Value,
        args: &Shown,
        (cancel, progress): (&CancellationToken, &impl Fn(&ToolResult)),
    ) -> Outcome {
        let context = &self.context;
        let cwd = match context.directory().await {
            Ok(cwd) => cwd,
            Err(failure) => return (ToolResult::failure(failure.error), true),
        };
        // Each partial result takes the place of the one before.
        let (partial, mut partials) = watch::channel(None::<ToolResult>);
        let invocation = Invocation {
            call_id: ticket.id.clone(),
            arguments: arguments.clone(),
            cwd,
            sees_images: self.choice.model.sees_images(),
            images: context.images.clone(),
            session_env: context.session_env(&self.choice.model, self.choice.level),
            environment: None,
            cancel: cancel.child_token(),
            progress: ToolProgress::new(move |result| drop(partial.send(Some(result)))),
        };
        let mut running = std::pin::pin!(AssertUnwindSafe(tool.execute(invocation)).catch_unwind());
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut running => break ended,
                Ok(()) = partials.changed() => {
                    let Some(partial_result) = partials.borrow_and_update().clone() else { continue };
                    progress(&partial_result);
                    let update: Event = ToolExecutionUpdate {
                        tool_call_id: ticket.id.clone(),
                        tool_name: name.to_owned(),
                        args: args.shown.clone(),
                        partial_result,
                        parent_tool_call_id: Some(ticket.parent().to_owned()),
                    }
                    .into();
                    self.emit(update).await;
                }
            }
        };
        let (result, failed) = match ended {
            Ok(Ok(result)) => {
                let failed = result.is_error == Some(true);
                (result, failed)
            }
            Ok(Err(error)) => (ToolResult::failure(error.0), true),
            Err(_) => {
                tracing::error!(tool = name, "a tool panicked");
                (ToolResult::failure(format!("The tool {name} failed unexpectedly.")), true)
            }
        };
        let action = action(ticket, &**tool, name, &arguments, context);
        match context.gate.after(&action, result, failed, cancel).await {
            Some(Ok((result, failed))) => (images_of_result(result, &context.images).await, failed),
            Some(Err(message)) => (ToolResult::failure(message), true),
            None => (ToolResult::failure(ABORTED), true),
        }
    }
}

fn action<'a>(
    ticket: &'a NestedTicket,
    tool: &dyn Tool,
    name: &'a str,
    arguments: &'a Value,
    context: &'a SessionContext,
) -> Action<'a> {
    Action {
        by: Requester::Model { call_id: &ticket.id },
        tool: name,
        arguments,
        cwd: &context.cwd,
        is_trusted_read: tool.is_trusted_read(),
        declares_reading: tool.declares_reading(),
        schema: None,
        must_ask: None,
    }
}
