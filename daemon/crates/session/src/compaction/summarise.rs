//! Asks a model for a summary, again and again where the failure may pass.

use std::sync::{Arc, atomic::Ordering};

use agentd_agent::observer::CallPurpose;
use agentd_ai::{
    Accumulator, CacheRetention, Delta, Request,
    failure::{Failure, FailureKind, classify_answer},
};
use agentd_protocol::{
    Json,
    error::ErrorCode,
    event::{
        Event, FallbackPurpose, FallbackReason, ModelFallback, SummarizationRetryAttemptStart,
        SummarizationRetryFinished, SummarizationRetryScheduled,
    },
    message::{AssistantMessage, Message, MessageContent, StopReason, SystemMessage, Usage, UserMessage},
    model::ThinkingLevel,
};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{error::CompactionError, worker::CompactionWorker};
use crate::{
    clock::now_ms,
    extensions::{provider_hooks, route_directly},
    models::{Choice, Retries, credential_renewer, reason, stall_event},
};

const SYSTEM_PROMPT: &str = include_str!("prompts/system.md");

/// The subject of a summary, for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummarySubject {
    History,
    TurnPrefix,
    Branch,
}

impl SummarySubject {
    fn name(self) -> &'static str {
        match self {
            Self::History => "Summarization",
            Self::TurnPrefix => "Turn prefix summarization",
            Self::Branch => "Branch summarization",
        }
    }

    fn failed(self, why: &str) -> CompactionError {
        CompactionError::NoSummary(self.told(why))
    }

    fn told(self, why: &str) -> String {
        format!("{} failed: {why}", self.name())
    }
}

/// A summary, and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Summary {
    pub(super) text: String,
    pub(super) usage: Usage,
}

impl CompactionWorker {
    /// Asks for one summary: the model of `choice`, and where that gives none the fallback models, one after the other.
    /// `source` is what the events of retries say of it.
    ///
    /// # Errors
    /// [`CompactionError::NoSummary`], [`CompactionError::Refused`], [`CompactionError::NoModel`],
    /// [`CompactionError::Cancelled`].
    pub(super) async fn summarise(
        &self,
        choice: &Choice,
        subject: SummarySubject,
        source: &SummarizationRetryAttemptStart,
        prompt: String,
    ) -> Result<Summary, CompactionError> {
        let messages = messages(prompt)?;
        let (mut choice, mut tried) = (choice.clone(), Vec::new());
        loop {
            let (failed, reason) = match self.summary_of(&choice, subject, source, &messages).await {
                Ok(summary) => return Ok(summary),
                Err((error, Some(reason))) => (error, reason),
                Err((error, None)) => return Err(error),
            };
            let from = choice.model.name();
            self.context.note_failure(&choice.model, reason, &failed.to_string());
            tried.push(from.clone());
            let window = (reason == FallbackReason::ContextOverflow).then_some(choice.model.context_window);
            let next = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(CompactionError::Cancelled),
                next = self.context.next_model(&tried, window, choice.level) => next,
            };
            let Some(next) = next else { return Err(failed) };
            let event = Event::from(ModelFallback {
                from,
                to: next.model.name(),
                thinking_level: next.level,
                purpose: FallbackPurpose::Summary,
                reason,
                error_message: failed.to_string(),
            });
            self.context.observe(&event);
            self.tell_introduced(&event).await;
            choice = next;
        }
    }

    /// Asks one model for a summary, again and again where the failure may pass. With an error comes why another model may
    /// do better, if it may.
    async fn summary_of(
        &self,
        choice: &Choice,
        subject: SummarySubject,
        source: &SummarizationRetryAttemptStart,
        messages: &[Json<Message>],
    ) -> Result<Summary, (CompactionError, Option<FallbackReason>)> {
        let mut retries = Retries::default();
        let result = loop {
            let policy = self.context.auto_retry.load(Ordering::Relaxed).then_some(&self.context.retry);
            let has_retries = retries.is_left(policy);
            let (answer, failure) = tokio::select! {
                biased;
                () = self.cancel.cancelled() => break Err((CompactionError::Cancelled, None)),
                answered = self.answer(choice, messages.to_vec(), has_retries) => match answered {
                    Ok(answered) => answered,
                    Err(error) => break Err((error, Some(FallbackReason::NoCredentials))),
                },
            };
            let error = match summary(&answer, subject) {
                Ok(summary) => break Ok(summary),
                Err(error) => error,
            };
            let policy = self.context.auto_retry.load(Ordering::Relaxed).then_some(&self.context.retry);
            let planned = if retries.plan(policy, &answer, failure.as_ref(), choice.model.context_window) {
                retries.begin()
            } else {
                None
            };
            let Some(planned) = planned else {
                let stored = classify_answer(&answer, choice.model.context_window);
                let message = answer.error_message.as_deref().unwrap_or_default();
                if matches!(error, CompactionError::NoBudget(_)) {
                    break Err((error, None));
                }
                let reason = reason(failure.as_ref(), stored, message).unwrap_or(FallbackReason::Failed);
                break Err((error, Some(reason)));
            };
            let scheduled = SummarizationRetryScheduled {
                attempt: planned.attempt,
                max_attempts: self.context.retry.max_attempts,
                delay_ms: u64::try_from(planned.delay.as_millis()).unwrap_or(u64::MAX),
                error_message: planned.error,
            };
            self.tell(&scheduled.into()).await;
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break Err((CompactionError::Cancelled, None)),
                () = tokio::time::sleep(planned.delay) => {}
            }
            self.tell(&Event::from(source.clone())).await;
        };
        if retries.end().is_some() {
            self.tell(&SummarizationRetryFinished {}.into()).await;
        }
        result
    }

    /// One answer, whole.
    async fn answer(
        &self,
        choice: &Choice,
        messages: Vec<Json<Message>>,
        has_retries: bool,
    ) -> Result<(AssistantMessage, Option<Failure>), CompactionError> {
        let context = &self.context;
        let choice = &route_directly(context, choice, &messages).await.map_err(|error| {
            CompactionError::NoModel(agentd_protocol::error::Failure::new(ErrorCode::NoModel, error))
        })?;
        let provider = context
            .metered_provider(&choice.model, CallPurpose::Summary)
            .map_err(CompactionError::NoModel)?;
        let (credentials, model) =
            context.credentials(&choice.model).await.map_err(CompactionError::NoModel)?;
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
        // A cancelled task drops the stream, which closes the connection.
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
                self.tell_introduced(&event).await;
            }
            accumulator.fold(delta);
        }
        let failure = accumulator.failure().cloned();
        let answer = accumulator.into_message();
        context.observe_answer(call, &answer, failure.as_ref());
        Ok((answer, failure))
    }
}

/// The question as a transcript.
fn messages(prompt: String) -> Result<Vec<Json<Message>>, CompactionError> {
    let timestamp = now_ms();
    let content = MessageContent::Text(SYSTEM_PROMPT.trim_end().to_owned());
    let system = Message::System(SystemMessage { content, timestamp, ..SystemMessage::default() });
    let user = Message::User(UserMessage { content: MessageContent::Text(prompt), timestamp });
    let json = |message| Json::new(message).map_err(|error| CompactionError::Broken(error.to_string()));
    [system, user].into_iter().map(json).collect()
}

/// The summary of an answer, if it is one.
fn summary(answer: &AssistantMessage, subject: SummarySubject) -> Result<Summary, CompactionError> {
    if answer.tool_calls().next().is_some() || answer.stop_reason == StopReason::ToolUse {
        let text = format!("{} attempted to call a tool", subject.name());
        return Err(CompactionError::NoSummary(text));
    }
    match answer.stop_reason {
        StopReason::Stop => {}
        StopReason::Length => {
            return Err(subject.failed("generation hit the token cap and the summary is incomplete"));
        }
        _ => {
            let why = answer.error_message.as_deref().unwrap_or("no answer came");
            return Err(match answer.code {
                Some(ErrorCode::ModelRefused) => CompactionError::Refused(subject.told(why)),
                Some(ErrorCode::LimitReached) => CompactionError::NoBudget(why.to_owned()),
                _ => subject.failed(why),
            });
        }
    }
    let text = answer.text().trim().to_owned();
    if text.is_empty() {
        return Err(subject.failed("the model answered with nothing"));
    }
    Ok(Summary { text, usage: answer.usage.clone() })
}

#[cfg(test)]
mod tests {
    use agentd_protocol::message::ContentBlock;

    use super::*;

    fn check(stop_reason: StopReason, text: &str, error: Option<&str>, expected: Result<&str, &str>) {
        let answer = AssistantMessage {
            stop_reason,
            content: vec![ContentBlock::text(text)],
            error_message: error.map(str::to_owned),
            ..AssistantMessage::pending("a", "p", "m", 0)
        };
        let found = summary(&answer, SummarySubject::TurnPrefix);
        let found = found.map(|summary| summary.text).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn only_a_whole_answer_is_a_summary() {
        check(StopReason::Stop, " S.\n", None, Ok("S."));
        let empty = "Turn prefix summarization failed: the model answered with nothing";
        check(StopReason::Stop, " ", None, Err(empty));
        let cut =
            "Turn prefix summarization failed: generation hit the token cap and the summary is incomplete";
        check(StopReason::Length, "S.", None, Err(cut));
        check(StopReason::ToolUse, "S.", None, Err("Turn prefix summarization attempted to call a tool"));
        check(StopReason::Error, "S.", Some("500: no"), Err("Turn prefix summarization failed: 500: no"));
    }
}
