//! What is checked and put together before a prompt is accepted.

use std::sync::Arc;

use agentd_agent::{Start, user_message};
use agentd_ai::{SystemState, replay};
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::Message,
};

use super::drive::Prompt;
use crate::{clock::now_ms, shared::Shared, step::Snapshot, system_prompt};

/// Puts together what the run begins with: a system message where the prompt or the tools are
/// not what the transcript says, then the prompt.
///
/// # Errors
/// The failure that answers the prompt: a file that a flag names and that cannot be read.
pub(super) async fn prepare(
    shared: &Arc<Shared>,
    snapshot: Snapshot,
    prompt: Prompt,
) -> Result<Start, Failure> {
    let internal = |error: String| Failure::new(ErrorCode::Internal, error);
    let system = {
        let shared = Arc::clone(shared);
        tokio::task::spawn_blocking(move || system_message(&shared, &snapshot.messages))
            .await
            .map_err(|error| internal(error.to_string()))??
    };
    let prompt = user_message(prompt.text, prompt.images, now_ms(), &shared.images)
        .await
        .map_err(|error| internal(error.to_string()))?;
    Ok(Start { messages: system.into_iter().chain([prompt]).collect(), queued: Vec::new() })
}

/// The message that brings the transcript's system state up to date; `None` when it is.
fn system_message(shared: &Shared, transcript: &[Json<Message>]) -> Result<Option<Json<Message>>, Failure> {
    let wanted = system_prompt::sections(&shared.prompt_parts()?);
    let tools = shared.tools.specs();
    let SystemState { sections, tools: declared, .. } = replay(transcript);
    let message = system_prompt::update((&sections, &declared), (&wanted, &tools), now_ms());
    message
        .map(|message| Json::new(Message::System(message)))
        .transpose()
        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
}
