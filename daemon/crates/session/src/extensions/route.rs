//! Virtual models: the router of an extension chooses a physical model for each request.

use std::sync::Arc;

use agentd_config::models::VIRTUAL_API;
use agentd_extensions::Route;
use agentd_protocol::{
    Json,
    message::{AssistantMessage, Message, StopReason},
    model::{Model, ThinkingLevel},
};
use serde_json::{Value, json};

use crate::{clock::now_ms, context::SessionContext, models::Choice};

/// The type of the entries that hold what routers keep.
pub(crate) const STATE_ENTRY: &str = "pi.virtual-model-state";

/// Whether requests to a model are made to another one.
pub(crate) fn is_virtual(model: &Model) -> bool {
    model.api == VIRTUAL_API
}

/// What a request is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteReason {
    /// The user has said something since the last answer.
    User,
    /// The run goes on.
    Continuation,
    /// The answer before failed.
    Retry,
    /// It is no request of a run.
    Direct,
}

/// What a router is asked with, besides the model.
pub(crate) struct RouteQuestion<'a> {
    pub(crate) reason: RouteReason,
    /// The answer that failed.
    pub(crate) failed: Option<&'a AssistantMessage>,
    /// What the router kept.
    pub(crate) state: Option<&'a Value>,
    pub(crate) messages: &'a [Json<Message>],
}

/// The reason of a run's request.
pub(crate) fn reason_of(messages: &[Json<Message>], has_failed: bool) -> RouteReason {
    if has_failed {
        return RouteReason::Retry;
    }
    let since_answer = messages.iter().rev().map_while(|message| match message.get() {
        Some(Message::Assistant(_)) => None,
        other => Some(other),
    });
    let is_of_user = since_answer.flatten().any(|message| matches!(message, Message::User(_)));
    if is_of_user { RouteReason::User } else { RouteReason::Continuation }
}

/// Asks the router of a virtual model. With the choice comes another state to keep, if there is one.
///
/// # Errors
/// Why there is no route.
pub(crate) async fn route(
    context: &Arc<SessionContext>,
    virtual_choice: &Choice,
    question: RouteQuestion<'_>,
) -> Result<(Choice, Option<Value>), String> {
    let model = &virtual_choice.model;
    let name = format!("Virtual model {}/{}", model.provider, model.id);
    let Some(extensions) = &context.extensions else { return Err(format!("{name} is not registered.")) };
    let request = request(context, virtual_choice, &question);
    let Route { provider, model_id, thinking_level, state } =
        extensions.route(&model.provider, &model.id, request).await?;
    let routed = format!("{name} routed to {provider}/{model_id}");
    let target = context.models.find(&provider, &model_id).filter(|target| !is_virtual(target));
    let Some(target) = target else { return Err(format!("{routed}, which is not a physical model.")) };
    if !context.services.has_auth(&context.auth, &provider) {
        return Err(format!("{routed}, which has no credentials."));
    }
    let level = target.clamp_thinking(thinking_level.as_deref().and_then(ThinkingLevel::from_name));
    let state = state.filter(|state| question.state != Some(state));
    Ok((Choice { model: target, level }, state))
}

/// A message as routers get it: those of extensions are the user's for a model.
fn as_model_sees(message: &Json<Message>) -> Value {
    match message.get() {
        Some(Message::Custom(custom)) => {
            let timestamp = if custom.timestamp == 0 { now_ms() } else { custom.timestamp };
            json!({"role": "user", "content": custom.content, "timestamp": timestamp})
        }
        _ => json!(message),
    }
}

fn request(context: &SessionContext, choice: &Choice, question: &RouteQuestion<'_>) -> Value {
    let reason = match question.reason {
        RouteReason::User => "user",
        RouteReason::Continuation => "continuation",
        RouteReason::Retry => "retry",
        RouteReason::Direct => "direct",
    };
    let answer = |message: &AssistantMessage| {
        let known = context.models.find(&message.provider, &message.model)?;
        let mut past = json!({"model": &*known});
        if let Some(level) = &message.thinking_level {
            past["thinkingLevel"] = level.as_str().into();
        }
        (!is_virtual(&known)).then_some(past)
    };
    let is_answer =
        |message: &&AssistantMessage| !matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
    let answers = question.messages.iter().rev().filter_map(|message| match message.get() {
        Some(Message::Assistant(answer)) => Some(answer),
        _ => None,
    });
    let mut request = json!({
        "model": &*choice.model, "thinkingLevel": choice.level, "reason": reason, "signal": true,
        "messages": question.messages.iter().map(as_model_sees).collect::<Vec<_>>(),
    });
    if let Some(previous) = answers.into_iter().find(is_answer).and_then(answer) {
        request["previous"] = previous;
    }
    if let Some(message) = question.failed
        && let Some(mut failed) = answer(message)
    {
        failed["message"] = json!(Message::Assistant(message.clone()));
        request["failed"] = failed;
    }
    if let Some(state) = question.state {
        request["state"] = state.clone();
    }
    request
}

/// The model of a request that is none of a run: a virtual model is routed, another one stays.
///
/// # Errors
/// Why there is no route.
pub(crate) async fn route_directly(
    context: &Arc<SessionContext>,
    choice: &Choice,
    messages: &[Json<Message>],
) -> Result<Choice, String> {
    if !is_virtual(&choice.model) {
        return Ok(choice.clone());
    }
    let question = RouteQuestion { reason: RouteReason::Direct, failed: None, state: None, messages };
    route(context, choice, question).await.map(|(choice, _)| choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_the_reason_until_a_model_has_answered() {
        let message =
            |value: Value| Json::<Message>::from_raw(serde_json::value::to_raw_value(&value).unwrap());
        let user = || message(json!({"role": "user", "content": "x", "timestamp": 1}));
        let answer = || message(json!({"role": "assistant", "content": [], "stopReason": "toolUse"}));
        assert_eq!(reason_of(&[user()], false), RouteReason::User);
        assert_eq!(reason_of(&[user(), answer()], false), RouteReason::Continuation);
        assert_eq!(reason_of(&[answer(), user()], false), RouteReason::User);
        assert_eq!(reason_of(&[answer(), user()], true), RouteReason::Retry);
    }
}
