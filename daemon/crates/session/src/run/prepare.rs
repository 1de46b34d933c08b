//! The messages that a run begins with, and the message that announces changed tools.

use std::sync::Arc;

use agentd_agent::{RunStart, Tool, ToolSet, user_message};
use agentd_ai::{SystemState, system_state};
use agentd_extensions::{EventKind, StartingMessage};
use agentd_files::looking_once;
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::{CustomMessage, Message},
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{channels::Prompt, extension_events::custom_message, message::ModelInputs};
use crate::{clock::now_ms, context::SessionContext, prompt_options::PromptOptions, system_prompt};

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
    RunPrompt { sections: wanted, added, .. }: RunPrompt,
) -> Result<RunStart, Failure> {
    let internal = |error: String| Failure::new(ErrorCode::Internal, error);
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

/// The system prompt of a run, as the extensions leave it, and the messages that they add.
pub(super) struct RunPrompt {
    sections: Map<String, Value>,
    added: Vec<Message>,
    /// Other active tools.
    pub(super) tools: Option<Vec<String>>,
}

/// Makes the system prompt of a run, which the extensions see and may change.
///
/// # Errors
/// A file that a flag names cannot be read, or another host cannot be reached.
pub(super) async fn run_prompt(
    context: &Arc<SessionContext>,
    (tools, declarable): (&Arc<ToolSet>, &[Arc<dyn Tool>]),
    first: &FirstMessage,
) -> Result<RunPrompt, Failure> {
    let directory = context.directory().await?;
    let extensions = context.extensions.as_ref().filter(|it| it.listens(EventKind::BeforeAgentStart));
    let with_options = extensions.is_some();
    let (sections, options) = {
        let access = &context.prompt_access;
        let (context, tools, declarable) = (Arc::clone(context), Arc::clone(tools), declarable.to_vec());
        let made = access.run(move || {
            let parts = looking_once(|| context.prompt_parts(&tools, &directory))?;
            let options = with_options.then(|| PromptOptions::of(&parts, &declarable));
            Ok::<_, Failure>((system_prompt::sections(&parts), options))
        });
        made.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??
    };
    let (Some(extensions), Some(options)) = (extensions, options) else {
        return Ok(RunPrompt { sections, added: Vec::new(), tools: None });
    };
    let shown = json!(options);
    let additions = match first {
        FirstMessage::User(prompt) => {
            let images: Vec<Value> = prompt.images.iter().map(|image| json!(image)).collect();
            let first = StartingMessage::User(&prompt.text, &images);
            extensions.before_agent_start(first, &shown, rendered).await
        }
        FirstMessage::Custom(message) => {
            let message = json!(Message::Custom((**message).clone()));
            extensions.before_agent_start(StartingMessage::Custom(&message), &shown, rendered).await
        }
    };
    let added = additions.messages.iter().filter_map(custom_message).collect();
    let edited = additions.options.and_then(|options| {
        let read = serde_json::from_value::<PromptOptions>(options);
        read.inspect_err(|error| tracing::warn!(%error, "the system prompt of an extension cannot be used"))
            .ok()
    });
    Ok(match edited {
        Some(edited) => {
            let tools =
                (edited.selected_tools != options.selected_tools).then(|| edited.selected_tools.clone());
            RunPrompt { sections: edited.sections(), added, tools }
        }
        None => RunPrompt { sections, added, tools: None },
    })
}

/// The text of a system prompt of these inputs.
pub(crate) fn rendered(options: &Value) -> String {
    let options: PromptOptions = serde_json::from_value(options.clone()).unwrap_or_default();
    SystemState { sections: options.sections(), ..SystemState::default() }.prompt()
}

/// Reads the rules on the stream for a run that begins without a prompt, unless an earlier one has.
pub(super) async fn read_stream_rules(context: &Arc<SessionContext>) {
    if context.stream_rules.current().is_some() || !context.prompt.context_files {
        return;
    }
    let (access, context) = (&context.prompt_access, Arc::clone(context));
    let read = access.run(move || looking_once(|| drop(context.watched_rules(&context.capabilities()))));
    if let Err(error) = read.await {
        tracing::error!(%error, "rules could not be read");
    }
}

/// Tells the model of other tools, and of the system prompt that goes with them; `None` when the transcript says it already.
/// Where the prompt's files cannot be read any more, or another host not be reached, it stays as it was.
pub(super) async fn tools_message(
    context: &Arc<SessionContext>,
    transcript: Vec<Json<Message>>,
    tools: Arc<ToolSet>,
) -> Result<Option<Json<Message>>, Failure> {
    let directory = context.directory().await;
    let (access, context) = (&context.prompt_access, Arc::clone(context));
    let made = access.run(move || {
        let wanted =
            match directory.and_then(|directory| looking_once(|| context.prompt_parts(&tools, &directory))) {
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
