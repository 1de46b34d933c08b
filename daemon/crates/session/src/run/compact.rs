//! Compactions that a run starts by itself: before a prompt, between turns, after an answer.

use std::sync::atomic::Ordering;

use agentd_agent::{HostError, nothing_in_flight, serve_in_flight_queries};
use agentd_protocol::{
    compaction::CompactionReason,
    event::{CompactionEnd, CompactionStart},
    message::{AssistantMessage, Message, StopReason},
};

use super::{host::RunHost, message::ContextFill};
use crate::{
    compaction::{CompactionOrder, CompactionPolicy, LastAnswer, OverflowRetry, PlanRequest, Trigger, end},
    transcript::FailedAnswer,
};

impl RunHost {
    /// Makes room for a prompt, where the last answer says that there is little: an aborted one too, for nothing was done
    /// after it.
    pub(super) async fn compact_before_prompt(&mut self) -> Result<(), HostError> {
        let fullness = self.fullness().await?;
        let Some(Message::Assistant(answer)) = fullness.last.as_ref().and_then(|last| last.get()) else {
            return Ok(());
        };
        match self.trigger(answer, &fullness) {
            Some(Trigger::Overflow(OverflowRetry::TooLong)) => {
                let overflow_retry = Some(OverflowRetry::TooLong);
                self.compact(CompactionReason::Overflow, overflow_retry, AfterCompaction::Nothing, &fullness)
                    .await
            }
            Some(Trigger::OverflowAnswered) => {
                self.compact(CompactionReason::Overflow, None, AfterCompaction::Nothing, &fullness).await
            }
            Some(Trigger::Threshold) => {
                self.compact(CompactionReason::Threshold, None, AfterCompaction::Nothing, &fullness).await
            }
            // The prompt is what goes on with it.
            Some(Trigger::Overflow(OverflowRetry::CutShort)) | None => Ok(false),
        }
        .map(drop)
    }

    /// Makes room for the next turn.
    pub(super) async fn compact_between_turns(&mut self) -> Result<(), HostError> {
        if self.is_cancelled() {
            return Ok(());
        }
        let fullness = self.fullness().await?;
        let Some(Message::Assistant(answer)) = fullness.last.as_ref().and_then(|last| last.get()) else {
            return Ok(());
        };
        // The run goes on anyway: an answer that was cut off is no reason here.
        if self.look(answer, &fullness).is_too_full() {
            self.compact(CompactionReason::Threshold, None, AfterCompaction::Nothing, &fullness).await?;
        }
        Ok(())
    }

    /// Makes room after the last answer of a run; true when that answer is to be asked for again.
    pub(super) async fn compact_after_run(&mut self, answer: &AssistantMessage) -> Result<bool, HostError> {
        if answer.stop_reason == StopReason::Aborted || self.context.budget.reached().is_some() {
            return Ok(false);
        }
        let fullness = self.fullness().await?;
        match self.trigger(answer, &fullness) {
            None => Ok(false),
            Some(Trigger::Threshold) => {
                self.compact(CompactionReason::Threshold, None, AfterCompaction::Nothing, &fullness).await
            }
            Some(Trigger::OverflowAnswered) => {
                self.compact(CompactionReason::Overflow, None, AfterCompaction::Nothing, &fullness).await
            }
            Some(Trigger::Overflow(overflow_retry)) if self.guard.take() => {
                self.compact(
                    CompactionReason::Overflow,
                    Some(overflow_retry),
                    AfterCompaction::AskAgain,
                    &fullness,
                )
                .await
            }
            Some(Trigger::Overflow(overflow_retry)) => {
                let failed = CompactionEnd {
                    reason: CompactionReason::Overflow,
                    result: None,
                    aborted: false,
                    will_retry: false,
                    error_message: Some(overflow_retry.failed_again().to_owned()),
                };
                self.tell(&failed.into()).await;
                Ok(false)
            }
        }
    }

    /// Compacts, unless there is nothing to compact, which nobody is told. True when an answer is to be asked for again.
    async fn compact(
        &mut self,
        reason: CompactionReason,
        overflow_retry: Option<OverflowRetry>,
        then: AfterCompaction,
        fullness: &ContextFill,
    ) -> Result<bool, HostError> {
        let worker = self.worker();
        let choice = fullness.choice.clone();
        let keep_recent = self.policy(fullness).keep_recent;
        // An error here says that there is nothing to do.
        let Ok(plan) = worker.plan(PlanRequest { keep_recent, overflow_retry }).await else {
            return Ok(false);
        };
        if overflow_retry.is_some() {
            self.omit_failed(FailedAnswer::OrCutShort).await?;
        }
        self.tell(&CompactionStart { reason }.into()).await;
        let order = CompactionOrder { reason, plan, choice, focus: None };
        let result = serve_in_flight_queries(self, worker.carry_out(order), nothing_in_flight).await?;
        let asks_again = then == AfterCompaction::AskAgain && result.is_ok();
        let worker = self.worker();
        let told = worker.tell_extensions(reason, &result, asks_again);
        serve_in_flight_queries(self, told, nothing_in_flight).await?;
        self.tell(&end(reason, &result, asks_again)).await;
        Ok(asks_again)
    }

    fn trigger(&self, answer: &AssistantMessage, fullness: &ContextFill) -> Option<Trigger> {
        self.look(answer, fullness).trigger()
    }

    fn look<'a>(&self, answer: &'a AssistantMessage, fullness: &'a ContextFill) -> LastAnswer<'a> {
        LastAnswer {
            answer,
            model: &fullness.choice.model,
            precedes_compaction: fullness.precedes_compaction,
            tokens: fullness.tokens,
            policy: self.policy(fullness),
        }
    }

    fn policy(&self, fullness: &ContextFill) -> CompactionPolicy {
        let switch = self.context.auto_compaction.load(Ordering::Relaxed);
        CompactionPolicy::of(&self.context.settings, switch, &fullness.choice.model)
    }
}

/// The step after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterCompaction {
    /// Whatever would have followed without it.
    Nothing,
    /// The answer that failed is asked for again.
    AskAgain,
}
