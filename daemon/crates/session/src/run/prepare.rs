//! What is checked and put together before a prompt is accepted.

use std::sync::Arc;

use agentd_agent::{Start, user_message};
use agentd_ai::{SystemState, replay};
use agentd_config::resources::{appended_prompt_file, context_files, system_prompt_file, text_or_file};
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::Message,
};

use super::drive::Prompt;
use crate::{
    clock::now_ms,
    shared::Shared,
    step::Snapshot,
    system_prompt::{self, PromptParts},
};

/// Puts together what the run begins with: a system message where the prompt or the tools are
/// not what the transcript says, then the prompt.
///
/// # Errors
/// The failure that answers the prompt: an instruction file that cannot be read.
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
    let prompt =
        user_message(prompt.text, prompt.images, now_ms()).map_err(|error| internal(error.to_string()))?;
    Ok(Start { messages: system.into_iter().chain([prompt]).collect(), queued: Vec::new() })
}

/// The message that brings the transcript's system state up to date; `None` when it is.
fn system_message(shared: &Shared, transcript: &[Json<Message>]) -> Result<Option<Json<Message>>, Failure> {
    let wanted = system_prompt::sections(&parts(shared)?);
    let tools = shared.tools.specs();
    let SystemState { sections, tools: declared, .. } = replay(transcript);
    let message = system_prompt::update((&sections, &declared), (&wanted, &tools), now_ms());
    message
        .map(|message| Json::new(Message::System(message)))
        .transpose()
        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
}

/// Reads the files that belong to the prompt.
fn parts(shared: &Shared) -> Result<PromptParts<'_>, Failure> {
    let unreadable = |error: agentd_config::TextFileError| Failure::new(ErrorCode::Io, error.to_string());
    let text = |value: &str| text_or_file(value, &shared.cwd, &shared.environment).map_err(unreadable);
    let sources = &shared.prompt;
    let custom = match &sources.system {
        Some(value) => Some(text(value)?),
        None => system_prompt_file(&shared.agent_dir, &sources.folders, sources.trusted)
            .map_err(unreadable)?
            .map(|file| file.content),
    };
    let appended = if sources.appended.is_empty() {
        let file = appended_prompt_file(&shared.agent_dir, &sources.folders, sources.trusted);
        file.map_err(unreadable)?.map(|file| file.content).into_iter().collect()
    } else {
        sources.appended.iter().map(|value| text(value)).collect::<Result<_, _>>()?
    };
    let mut files = Vec::new();
    if sources.context_files {
        let found = context_files(&shared.agent_dir, &shared.cwd);
        for warning in found.warnings {
            tracing::warn!("{warning}");
        }
        files.extend(found.files.into_iter().map(|file| (file.path.display().to_string(), file.content)));
    }
    let tools: Vec<_> = shared.tools.iter().collect();
    Ok(PromptParts {
        custom,
        appended,
        context_files: files,
        tools: tools.iter().filter_map(|tool| Some((tool.spec().name.as_str(), tool.snippet()?))).collect(),
        guidelines: tools.iter().flat_map(|tool| tool.guidelines().iter().copied()).collect(),
        active: tools.iter().map(|tool| tool.spec().name.as_str()).collect(),
        cwd: shared.cwd.display().to_string(),
    })
}
