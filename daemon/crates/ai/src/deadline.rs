//! How long a provider may take, phase by phase, and what it means when it takes longer.

use std::time::Duration;

/// How long something may take until content comes where nothing else says so: no model thinks longer without a word, except
/// on the user's own machine, where there is no limit.
pub(crate) const USUAL_PROGRESS: Duration = Duration::from_secs(30 * 60);

/// Limits of one request (settings `deadlines`). Only the time counts in which the provider is waited for: a slow reader of
/// the answer does not use it up. How long a connection may take is the network's to say, and how long nothing at all may
/// come, `Request::idle_timeout`'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadlines {
    /// Until the first byte of an answer's body; default none.
    pub first_byte: Option<Duration>,
    /// Between two pieces of content.
    pub progress: ProgressLimit,
    /// For all of an attempt, to the end of its answer; default none.
    pub request: Option<Duration>,
    /// What a provider that exceeds one means.
    pub on_stall: OnStall,
}

/// How long a provider may go on without content. Comments, pings and empty pieces are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressLimit {
    /// 30 minutes; no limit for servers on this machine.
    #[default]
    Usual,
    /// This long.
    Within(Duration),
    /// As long as it likes.
    Unlimited,
}

/// What a provider that takes too long means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStall {
    /// A failure that may pass: the model is asked again.
    #[default]
    Retry,
    /// A failure for good.
    Fail,
}

/// A provider took too long. What follows it is another attempt of the same request, or the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// What was waited for.
    pub phase: StallPhase,
    /// For how long.
    pub waited: Duration,
    /// The limit.
    pub limit: Duration,
    /// Whether the failure may pass.
    pub may_pass: bool,
    /// Whether the request is sent again at once, and the answer has not failed yet.
    pub sent_again: bool,
}

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StallPhase {
    /// A connection.
    Connect,
    /// The beginning of an answer.
    FirstByte,
    /// Any byte.
    Idle,
    /// Content.
    Progress,
    /// The end of the answer.
    Request,
}

impl Deadlines {
    /// How long a server may go on without content.
    pub(crate) fn progress(&self, is_local: bool) -> Option<Duration> {
        match self.progress {
            ProgressLimit::Usual => (!is_local).then_some(USUAL_PROGRESS),
            ProgressLimit::Within(limit) => Some(limit),
            ProgressLimit::Unlimited => None,
        }
    }
}
