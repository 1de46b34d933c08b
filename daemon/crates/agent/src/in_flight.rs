//! The state of a run that clients see when they attach in its middle.
//!
//! Nothing is stored for this: the loop composes the answer to a query from its state.

use agentd_protocol::{
    Json,
    daemon::{InFlight, RunningTool},
    message::{AssistantMessage, Message, ToolCall},
    tool::ToolResult,
};
use serde_json::Value;

use crate::{Host, HostError};

/// Waits for `work`, and meanwhile answers queries about what is in flight. `work` is moved to the heap: a run waits in this way for
/// much that it does, and its own future would hold each of these twice.
///
/// # Errors
/// Fails when the session is gone; `work` is dropped then. Cancel safety: a query that was received is lost.
pub fn serve_in_flight_queries<H: Host, T: Send>(
    host: &mut H,
    work: impl Future<Output = T> + Send,
    in_flight: impl Fn() -> Result<InFlight, HostError> + Send,
) -> impl Future<Output = Result<T, HostError>> + Send {
    let mut work = Box::pin(work);
    async move {
        loop {
            tokio::select! {
                biased;
                () = host.in_flight_query() => {
                    let shown = in_flight()?;
                    host.answer_in_flight_query(shown).await?;
                }
                done = &mut work => return Ok(done),
            }
        }
    }
}

/// Nothing is in flight, as between answers, before the first one, and in pauses.
///
/// # Errors
/// None; the type is that of [`serve_in_flight_queries`].
pub fn nothing_in_flight() -> Result<InFlight, HostError> {
    Ok(InFlight { message: None, message_id: None, tools: Vec::new() })
}

/// An answer that streams.
pub(crate) fn answer(so_far: AssistantMessage) -> Result<InFlight, HostError> {
    let message =
        Json::new(Message::Assistant(so_far)).map_err(|error| HostError::NotStored(error.to_string()))?;
    Ok(InFlight { message: Some(message), message_id: None, tools: Vec::new() })
}

/// Tool calls that run, each with its result so far.
pub(crate) fn tools<'a>(calls: impl Iterator<Item = (&'a ToolCall, Option<&'a ToolResult>)>) -> InFlight {
    let running = |(call, partial): (&ToolCall, Option<&ToolResult>)| RunningTool {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        args: Value::Object(call.arguments.clone()),
        partial_result: partial.cloned(),
    };
    InFlight { message: None, message_id: None, tools: calls.map(running).collect() }
}
