//! When a failed answer is asked for again. Pure: the pause itself, and its events, are in [`crate::run`].
//!
//! A failed answer is classified once, in `agentd_ai::failure`. The pause belongs to the run, so that `abort`, `abort_retry` and the end of
//! input reach it.

use std::time::Duration;

use agentd_ai::failure::{Failure, FailureKind, classify_answer};
use agentd_protocol::{message::AssistantMessage, settings::Settings};

/// The settings `retry`, without the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryPolicy {
    /// The most retries in a row.
    pub(crate) max_attempts: u32,
    /// The pause before the first retry; it doubles with each.
    pub(crate) base_delay: Duration,
    /// The longest pause.
    pub(crate) max_delay: Duration,
}

impl RetryPolicy {
    /// The settings, with defaults for missing ones.
    pub(crate) fn of(settings: &Settings) -> Self {
        let retry = settings.retry.clone().unwrap_or_default();
        Self {
            max_attempts: retry.max_retries.unwrap_or(3),
            base_delay: Duration::from_millis(retry.base_delay_ms.unwrap_or(2000)),
            max_delay: Duration::from_millis(retry.max_agent_delay_ms.unwrap_or(60_000)),
        }
    }

    /// The pause before a retry, counted from 1: twice the one before, and no shorter than what the provider asked for.
    fn delay(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.base_delay.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        doubled.max(asked.unwrap_or_default()).min(self.max_delay)
    }
}

/// The retries of one run.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    /// Retries since the last answer.
    attempts: u32,
    planned: Option<PlannedRetry>,
}

/// A retry that is to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedRetry {
    /// Counted from 1.
    pub(crate) attempt: u32,
    pub(crate) delay: Duration,
    /// The `errorMessage` of the failed answer.
    pub(crate) error: String,
}

impl Retries {
    /// Whether there is a retry left for a failure that may pass.
    pub(crate) fn is_left(&self, policy: Option<&RetryPolicy>) -> bool {
        policy.is_some_and(|policy| self.attempts < policy.max_attempts)
    }

    /// Decides about an answer that did not come about. `policy` is `None` while retries are switched off.
    pub(crate) fn plan(
        &mut self,
        policy: Option<&RetryPolicy>,
        answer: &AssistantMessage,
        failure: Option<&Failure>,
        context_window: u64,
    ) -> bool {
        self.planned = None;
        let Some(policy) = policy.filter(|policy| self.attempts < policy.max_attempts) else { return false };
        // The stored answer decides, so that the same failure is treated alike after a restart.
        if classify_answer(answer, context_window) != Some(FailureKind::Retryable) {
            return false;
        }
        let attempt = self.attempts + 1;
        self.planned = Some(PlannedRetry {
            attempt,
            delay: policy.delay(attempt, failure.and_then(|failure| failure.retry_after)),
            error: answer.error_message.clone().unwrap_or_default(),
        });
        true
    }

    /// The retry that was decided on; it counts from now on.
    pub(crate) fn begin(&mut self) -> Option<PlannedRetry> {
        let planned = self.planned.take()?;
        self.attempts = planned.attempt;
        Some(planned)
    }

    /// Ends the row of retries: how many there were, if any.
    pub(crate) fn end(&mut self) -> Option<u32> {
        self.planned = None;
        Some(std::mem::take(&mut self.attempts)).filter(|attempts| *attempts > 0)
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::message::StopReason;
    use serde_json::json;

    use super::*;

    fn answer(error: &str) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(error.into()),
            ..AssistantMessage::pending("a", "p", "m", 0)
        }
    }

    fn policy(settings: serde_json::Value) -> RetryPolicy {
        RetryPolicy::of(&serde_json::from_value(settings).unwrap())
    }

    #[test]
    fn pauses_double_up_to_the_limit() {
        let policy = policy(json!({}));
        let mut retries = Retries::default();
        for (attempt, seconds) in [(1, 2), (2, 4), (3, 8)] {
            assert!(retries.plan(Some(&policy), &answer("503: overloaded"), None, 0));
            let planned = retries.begin().unwrap();
            assert_eq!((planned.attempt, planned.delay), (attempt, Duration::from_secs(seconds)));
            assert_eq!(planned.error, "503: overloaded");
        }
        assert!(!retries.plan(Some(&policy), &answer("503: overloaded"), None, 0));
        assert_eq!((retries.begin(), retries.end(), retries.end()), (None, Some(3), None));
        assert_eq!(policy.delay(40, None), Duration::from_secs(60));
    }

    #[test]
    fn a_provider_that_asks_for_more_time_gets_it_within_the_limit() {
        let policy = policy(json!({"retry": {"baseDelayMs": 100, "maxAgentDelayMs": 5000}}));
        let second = Duration::from_secs(1);
        assert_eq!(policy.delay(1, Some(second)), second);
        assert_eq!(policy.delay(1, Some(second * 60)), second * 5);
        assert_eq!(policy.delay(5, Some(second)), Duration::from_millis(1600));
    }

    #[test]
    fn only_what_may_pass_is_retried() {
        let policy = policy(json!({"retry": {"maxRetries": 1}}));
        let planned = |answer: &AssistantMessage| Retries::default().plan(Some(&policy), answer, None, 100);
        assert!(planned(&answer("429: rate limit")));
        for lasting in ["401: bad key", "429: quota exceeded", "400: prompt is too long", "400: odd"] {
            assert!(!planned(&answer(lasting)), "{lasting}");
        }
        let aborted = AssistantMessage { stop_reason: StopReason::Aborted, ..answer("503: overloaded") };
        assert!(!planned(&aborted));
        assert!(!Retries::default().plan(None, &answer("503: overloaded"), None, 0));
    }
}
