//! Decides from the last answer whether the context is to be compacted, and why. Pure.

use agentd_ai::failure::{FailureKind, classify_answer};
use agentd_protocol::{
    message::{AssistantMessage, Message, StopReason},
    model::Model,
};

use super::policy::CompactionPolicy;

/// Why a context is to be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// It is too full.
    Threshold,
    /// The answer is there, but the window is full beyond what the model takes.
    OverflowAnswered,
    /// There is no answer, or no whole one.
    Overflow(OverflowRetry),
}

/// Why an answer is retried with a shorter context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverflowRetry {
    /// The context was too long for the model.
    TooLong,
    /// The answer was cut off before it was as long as the model's answers may be.
    CutShort,
}

impl OverflowRetry {
    /// The error when the second attempt fails in the same way. The texts are pi's.
    pub(crate) fn failed_again(self) -> &'static str {
        match self {
            Self::TooLong => {
                "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or \
                 switching to a larger-context model."
            }
            Self::CutShort => "Truncated response recovery failed after one compact-and-retry attempt.",
        }
    }
}

/// The last answer of a context, and what there is to know about both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastAnswer<'a> {
    pub(crate) answer: &'a AssistantMessage,
    /// The model that is asked next.
    pub(crate) model: &'a Model,
    /// Whether it was there before the context was last compacted. By its place in the session: two things happen in one
    /// millisecond, and clocks go back.
    pub(crate) precedes_compaction: bool,
    /// The tokens of the context.
    pub(crate) tokens: u64,
    pub(crate) policy: CompactionPolicy,
}

impl LastAnswer<'_> {
    /// Why the context is to be compacted, if it is.
    pub(crate) fn trigger(&self) -> Option<Trigger> {
        let overflow = self.overflow().filter(|_| self.is_of_model() && self.counts());
        overflow.or_else(|| self.is_too_full().then_some(Trigger::Threshold))
    }

    /// Whether the context is too full, whatever became of the answer.
    pub(crate) fn is_too_full(&self) -> bool {
        self.counts() && self.policy.is_too_full(self.tokens)
    }

    /// Whether the answer can be a reason: one that is older than the last compaction cannot, which was made because of it.
    fn counts(&self) -> bool {
        self.policy.enabled && !self.precedes_compaction
    }

    fn overflow(&self) -> Option<Trigger> {
        let is_stop = self.answer.stop_reason == StopReason::Stop;
        match classify_answer(self.answer, self.model.context_window) {
            Some(FailureKind::ContextOverflow) if is_stop => Some(Trigger::OverflowAnswered),
            Some(FailureKind::ContextOverflow) => Some(Trigger::Overflow(OverflowRetry::TooLong)),
            _ => {
                let is_cut = self.answer.stop_reason == StopReason::Length
                    && self.answer.usage.output < self.model.max_tokens;
                is_cut.then_some(Trigger::Overflow(OverflowRetry::CutShort))
            }
        }
    }

    /// Whether the answer is of the model that is asked next: another one may well take what the former did not.
    fn is_of_model(&self) -> bool {
        self.answer.provider == self.model.provider && self.answer.model == self.model.id
    }
}

/// Allows one overflow retry for each message of the user, so that a context that stays too long causes no endless
/// loop.
#[derive(Debug, Default)]
pub(crate) struct OverflowRetryGuard {
    used: bool,
}

impl OverflowRetryGuard {
    /// Takes the one retry; false when it was taken before.
    pub(crate) fn take(&mut self) -> bool {
        !std::mem::replace(&mut self.used, true)
    }

    /// Sees a message of the conversation.
    pub(crate) fn see(&mut self, message: &Message) {
        match message {
            Message::User(_) => self.used = false,
            Message::Assistant(answer)
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Length) =>
            {
                self.used = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::message::{Usage, UserMessage};

    use super::*;

    fn model() -> Model {
        Model {
            provider: "p".into(),
            id: "m".into(),
            context_window: 1000,
            max_tokens: 100,
            ..Model::placeholder()
        }
    }

    fn answer(stop_reason: StopReason, error: &str, input: u64, output: u64) -> AssistantMessage {
        AssistantMessage {
            stop_reason,
            error_message: Some(error.to_owned()).filter(|error| !error.is_empty()),
            usage: Usage { input, output, ..Usage::default() },
            ..AssistantMessage::pending("a", "p", "m", 5)
        }
    }

    fn policy() -> CompactionPolicy {
        CompactionPolicy { enabled: true, window: 1000, reserve: 200, keep_recent: 100 }
    }

    fn look<'a>(answer: &'a AssistantMessage, model: &'a Model, tokens: u64) -> LastAnswer<'a> {
        LastAnswer { answer, model, precedes_compaction: false, tokens, policy: policy() }
    }

    fn check(answer: &AssistantMessage, tokens: u64, expected: Option<Trigger>) {
        assert_eq!(look(answer, &model(), tokens).trigger(), expected, "{answer:?} {tokens}");
    }

    #[test]
    fn a_full_context_is_compacted() {
        let good = answer(StopReason::Stop, "", 10, 1);
        check(&good, 800, None);
        check(&good, 801, Some(Trigger::Threshold));
        check(&answer(StopReason::Aborted, "stopped", 0, 0), 801, Some(Trigger::Threshold));
        check(&answer(StopReason::Error, "500: odd", 0, 0), 801, Some(Trigger::Threshold));
    }

    #[test]
    fn an_overflow_is_told_by_error_and_usage() {
        let too_long = Some(Trigger::Overflow(OverflowRetry::TooLong));
        check(&answer(StopReason::Error, "400: prompt is too long: 9 tokens", 0, 0), 1, too_long);
        check(&answer(StopReason::Error, "429: rate limit", 0, 0), 1, None);
        check(&answer(StopReason::Stop, "", 1000, 1), 700, None);
        check(&answer(StopReason::Stop, "", 1001, 1), 700, Some(Trigger::OverflowAnswered));
        check(&answer(StopReason::Length, "", 990, 0), 700, too_long);
        let cut = Some(Trigger::Overflow(OverflowRetry::CutShort));
        check(&answer(StopReason::Length, "", 989, 0), 700, cut);
        check(&answer(StopReason::Length, "", 10, 99), 700, cut);
        check(&answer(StopReason::Length, "", 10, 100), 700, None);
    }

    #[test]
    fn another_model_may_take_what_the_former_did_not() {
        let failed = answer(StopReason::Error, "400: prompt is too long", 0, 0);
        let other = Model { id: "other".into(), ..model() };
        assert_eq!(look(&failed, &other, 700).trigger(), None);
        assert_eq!(look(&failed, &other, 801).trigger(), Some(Trigger::Threshold));
    }

    #[test]
    fn what_a_compaction_healed_and_what_is_switched_off_does_not_count() {
        let (failed, model) = (answer(StopReason::Error, "400: prompt is too long", 0, 0), model());
        let before = LastAnswer { precedes_compaction: true, ..look(&failed, &model, 900) };
        assert_eq!((before.trigger(), before.is_too_full()), (None, false));
        assert!(look(&failed, &model, 900).trigger().is_some());
        let off = CompactionPolicy { enabled: false, ..policy() };
        assert_eq!(LastAnswer { policy: off, ..look(&failed, &model, 900) }.trigger(), None);
    }

    #[test]
    fn one_recovery_for_each_message_of_the_user() {
        let mut guard = OverflowRetryGuard::default();
        assert!(guard.take() && !guard.take());
        for stop in [StopReason::Error, StopReason::Length] {
            guard.see(&Message::Assistant(answer(stop, "", 0, 0)));
            assert!(!guard.take(), "{stop:?}");
        }
        for message in [
            Message::Assistant(answer(StopReason::ToolUse, "", 0, 0)),
            Message::User(UserMessage { content: Default::default(), timestamp: 0 }),
        ] {
            guard.see(&message);
            assert!(guard.take() && !guard.take());
        }
    }
}
