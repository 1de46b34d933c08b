//! Asks a model for a summary, again and again where the failure may pass.

use std::sync::atomic::Ordering;

use agentd_ai::failure::{Failure, classify_answer};
use agentd_protocol::{
    Json,
    error::ErrorCode,
    event::{
        Event, FallbackPurpose, FallbackReason, ModelFallback, SummarizationRetryAttemptStart,
        SummarizationRetryFinished, SummarizationRetryScheduled,
    },
    message::{AssistantMessage, Message, StopReason, Usage},
};

use super::{error::CompactionError, worker::CompactionWorker};
use crate::{
    models::{Choice, Retries, reason},
    side_answer::{answer_aside, question},
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
        let messages =
            question(SYSTEM_PROMPT, prompt).map_err(|error| CompactionError::Broken(error.to_string()))?;
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
        let stalled = |event: Event| async move { self.tell_introduced(&event).await };
        answer_aside(&self.context, choice, messages, has_retries, stalled)
            .await
            .map_err(CompactionError::NoModel)
    }
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
