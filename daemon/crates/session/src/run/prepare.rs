//! The messages that a run begins with, and the message that announces changed tools.

use std::sync::Arc;

use agentd_agent::{RunStart, ToolSet, user_message};
use agentd_ai::{SystemState, system_state};
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::Message,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{channels::Prompt, message::ModelInputs};
use crate::{clock::now_ms, context::SessionContext, system_prompt};

/// Puts together what the run begins with: a system message where the prompt or the tools are
/// not what the transcript says, then the prompt.
///
/// # Errors
/// The failure that answers the prompt: a file that a flag names and that cannot be read, or another host that cannot be
/// reached.
pub(super) async fn begin_with_prompt(
    context: &Arc<SessionContext>,
    snapshot: ModelInputs,
    prompt: Prompt,
) -> Result<RunStart, Failure> {
    let internal = |error: String| Failure::new(ErrorCode::Internal, error);
    let system = {
        let directory = context.directory().await?;
        let context = Arc::clone(context);
        tokio::task::spawn_blocking(move || {
            let wanted = system_prompt::sections(&context.prompt_parts(&snapshot.tools, &directory)?);
            update(&snapshot.messages, &wanted, &snapshot.tools)
        })
        .await
        .map_err(|error| internal(error.to_string()))??
    };
    let prompt = user_message(prompt.text, prompt.images, now_ms(), &context.images)
        .await
        .map_err(|error| internal(error.to_string()))?;
    Ok(RunStart { messages: system.into_iter().chain([prompt]).collect(), queued: Vec::new() })
}

/// Tells the model of other tools, and of the system prompt that goes with them; `None` when the transcript says it already.
/// Where the prompt's files cannot be read any more, or another host not be reached, it stays as it was.
pub(super) async fn tools_message(
    context: &Arc<SessionContext>,
    transcript: Vec<Json<Message>>,
    tools: Arc<ToolSet>,
) -> Result<Option<Json<Message>>, Failure> {
    let directory = context.directory().await;
    let context = Arc::clone(context);
    let made = tokio::task::spawn_blocking(move || {
        let wanted = match directory.and_then(|directory| context.prompt_parts(&tools, &directory)) {
            Ok(parts) => system_prompt::sections(&parts),
            Err(failure) => {
                tracing::warn!(error = failure.error, "the system prompt stays as it was");
                system_state(&transcript).sections
            }
        };
        update(&transcript, &wanted, &tools)
    });
    made.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?
}

/// The message that brings the transcript's system state up to date; `None` when it is.
fn update(
    transcript: &[Json<Message>],
    wanted: &Map<String, Value>,
    tools: &ToolSet,
) -> Result<Option<Json<Message>>, Failure> {
    let SystemState { sections, tools: declared, .. } = system_state(transcript);
    let message = system_prompt::update((&sections, &declared), (wanted, &tools.specs()), now_ms());
    message
        .map(|message| Json::new(Message::System(message)))
        .transpose()
        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
}

/// Runs a part of the checks of a prompt, unless the prompt is aborted.
pub(super) fn unless<T: Send>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Failure>> + Send,
) -> impl Future<Output = Result<T, Failure>> + Send {
    // On the heap: the future would hold it twice.
    let work = Box::pin(work);
    async move {
        tokio::select! {
            done = work => done,
            () = cancel.cancelled() => {
                Err(Failure::new(ErrorCode::Aborted, "The prompt was aborted before its run began."))
            }
        }
    }
}
