//! One answer of a model beside the conversation: for summaries and messages of commits. It counts in the session's budget, and telemetry sees it.

use std::sync::Arc;

use agentd_agent::observer::CallPurpose;
use agentd_ai::{
    Accumulator, CacheRetention, Delta, Request,
    failure::{Failure, FailureKind},
};
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure as Refusal},
    event::Event,
    message::{AssistantMessage, Message, MessageContent, SystemMessage, UserMessage},
    model::ThinkingLevel,
};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::now_ms,
    context::SessionContext,
    extensions::{provider_hooks, route_directly},
    models::{Choice, credential_renewer, stall_event},
};

/// A question as a transcript.
///
/// # Errors
/// It cannot be written as JSON.
pub(crate) fn question(system: &str, prompt: String) -> Result<Vec<Json<Message>>, serde_json::Error> {
    let timestamp = now_ms();
    let content = MessageContent::Text(system.trim_end().to_owned());
    let system = Message::System(SystemMessage { content, timestamp, ..SystemMessage::default() });
    let user = Message::User(UserMessage { content: MessageContent::Text(prompt), timestamp });
    [system, user].into_iter().map(Json::new).collect()
}

/// The whole answer of a model, and why it failed if it did. `stalled` is told when the provider keeps it waiting; `has_retries` is what that
/// says of further attempts.
///
/// Cancel safety: dropped early, the connection is closed.
///
/// # Errors
/// No model was asked: there is no key, say.
pub(crate) async fn answer_aside<F: Future<Output = ()>>(
    context: &Arc<SessionContext>,
    choice: &Choice,
    messages: Vec<Json<Message>>,
    has_retries: bool,
    stalled: impl Fn(Event) -> F,
) -> Result<(AssistantMessage, Option<Failure>), Refusal> {
    let choice = &route_directly(context, choice, &messages)
        .await
        .map_err(|error| Refusal::new(ErrorCode::NoModel, error))?;
    let provider = context.metered_provider(&choice.model, CallPurpose::Summary)?;
    let (credentials, model) = context.credentials(&choice.model).await?;
    let request = Request {
        thinking_level: if model.reasoning { choice.level } else { ThinkingLevel::Off },
        // Not the session's own: what a provider keeps under that is for the conversation.
        session_id: agentd_store::new_session_id(),
        credentials,
        idle_timeout: context.idle_timeout,
        deadlines: context.deadlines,
        network: Some(Arc::clone(&context.network)),
        cache_retention: CacheRetention::None,
        thinking_budgets: context.thinking_budgets,
        retries: context.http_retries,
        renew: Some(credential_renewer(&context.auth, &choice.model)),
        hooks: provider_hooks(context.extensions.as_ref(), CallPurpose::Summary),
        ..Request::new(Arc::clone(&model), messages)
    };
    let call = context.observe_call(&request, CallPurpose::Summary);
    let mut accumulator = Accumulator::new(model, now_ms());
    // Dropping the stream closes the connection.
    let mut deltas = provider.stream(request, CancellationToken::new());
    while !accumulator.is_finished() {
        let ended = || {
            let text = "The provider's stream ended without saying why";
            let failure = Failure::new(FailureKind::Retryable, text);
            Delta::Failed { failure, raw_stop_reason: None }
        };
        let delta = deltas.next().await.unwrap_or_else(ended);
        if let Delta::Stalled(stall) = delta {
            let event = stall_event(&choice.model, stall, has_retries);
            context.observe(&event);
            stalled(event).await;
        }
        accumulator.fold(delta);
    }
    let failure = accumulator.failure().cloned();
    let answer = accumulator.into_message();
    context.observe_answer(call, &answer, failure.as_ref());
    Ok((answer, failure))
}
