//! The messages that a run begins with, and the message that announces changed tools.

use std::sync::Arc;

use agentd_agent::{RunStart, ToolSet, user_message};
use agentd_ai::{SystemState, system_state};
use agentd_extensions::EventKind;
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::{CustomMessage, Message},
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{channels::Prompt, extension_events::custom_message, message::ModelInputs};
use crate::{clock::now_ms, context::SessionContext, system_prompt};

/// The message that a run begins with.
pub(super) enum FirstMessage {
    /// Of the user.
    User(Prompt),
    /// Of an extension.
    Custom(Box<CustomMessage>),
}

/// Puts together what the run begins with: a system message where the prompt or the tools are
/// not what the transcript says, then the first message, then what extensions add.
///
/// # Errors
/// The failure that answers the prompt: a file that a flag names and that cannot be read, or another host that cannot be
/// reached.
pub(super) async fn begin_with(
    context: &Arc<SessionContext>,
    snapshot: ModelInputs,
    first: FirstMessage,
) -> Result<RunStart, Failure> {
    let internal = |error: String| Failure::new(ErrorCode::Internal, error);
    let directory = context.directory().await?;
    let wanted = {
        let (context, tools) = (Arc::clone(context), Arc::clone(&snapshot.tools));
        let made = tokio::task::spawn_blocking(move || {
            Ok::<_, Failure>(system_prompt::sections(&context.prompt_parts(&tools, &directory)?))
        });
        made.await.map_err(|error| internal(error.to_string()))??
    };
    let (wanted, added) = match &first {
        FirstMessage::User(prompt) => with_extensions(context, prompt, wanted).await,
        FirstMessage::Custom(_) => (wanted, Vec::new()),
    };
    let system = update(&snapshot.messages, &wanted, &snapshot.tools)?;
    let carried = |message: Message| Json::new(message).map_err(|error| internal(error.to_string()));
    let mut messages: Vec<Json<Message>> = system.into_iter().collect();
    match first {
        FirstMessage::User(prompt) => {
            let message = user_message(prompt.text, prompt.images, now_ms(), &context.images).await;
            messages.push(message.map_err(|error| internal(error.to_string()))?);
            for custom in prompt.also {
                messages.push(carried(Message::Custom(custom))?);
            }
        }
        FirstMessage::Custom(message) => messages.push(carried(Message::Custom(*message))?),
    }
    for message in added {
        messages.push(carried(message)?);
    }
    Ok(RunStart { messages, queued: Vec::new() })
}

/// Asks the extensions before a run begins: the system prompt, as they leave it, and the messages that they add.
async fn with_extensions(
    context: &Arc<SessionContext>,
    prompt: &Prompt,
    wanted: Map<String, Value>,
) -> (Map<String, Value>, Vec<Message>) {
    let Some(extensions) = &context.extensions else { return (wanted, Vec::new()) };
    if !extensions.listens(EventKind::BeforeAgentStart) {
        return (wanted, Vec::new());
    }
    let state = SystemState { sections: wanted.clone(), ..SystemState::default() };
    let options = json!({"sections": wanted, "cwd": context.cwd.display().to_string()});
    let images: Vec<Value> = prompt.images.iter().map(|image| json!(image)).collect();
    let additions = extensions.before_agent_start((&prompt.text, &images), &state.prompt(), &options).await;
    let messages = additions.messages.iter().filter_map(custom_message).collect();
    let wanted = match additions.system_prompt {
        // In the place of all sections.
        Some(text) => Map::from_iter([("preamble".to_owned(), Value::String(text))]),
        None => wanted,
    };
    (wanted, messages)
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
