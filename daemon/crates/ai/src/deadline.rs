//! Deadlines of a request, phase by phase, and the stalls that exceed them.

use std::time::Duration;

/// The default time without content: no model thinks longer without output, except on the user's own machine, where there is no limit.
pub(crate) const USUAL_PROGRESS: Duration = Duration::from_secs(30 * 60);

/// Deadlines of one request (settings `deadlines`). Only time spent waiting for the provider counts: a slow reader of the answer uses up
/// none. The timeout of connections is in [`crate::Network`], that of silence in `Request::idle_timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadlines {
    /// Until the first byte of an answer's body; default none.
    pub first_byte: Option<Duration>,
    /// Between two pieces of content.
    pub progress: ProgressLimit,
    /// For all of an attempt, to the end of its answer; default none.
    pub request: Option<Duration>,
    /// The effect of exceeding a deadline.
    pub on_stall: OnStall,
}

/// The longest time without content. Comments, pings and empty pieces are not content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressLimit {
    /// 30 minutes; no limit for servers on this machine.
    #[default]
    Usual,
    /// This long.
    Within(Duration),
    /// No limit.
    Unlimited,
}

/// The effect of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStall {
    /// The failure is retryable.
    #[default]
    Retry,
    /// The failure is fatal.
    Fail,
}

/// A provider exceeded a deadline. Another attempt of the request follows, or the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// The phase that took too long.
    pub phase: StallPhase,
    /// The time that was waited.
    pub waited: Duration,
    /// The limit.
    pub limit: Duration,
    /// Whether the failure is retryable.
    pub may_pass: bool,
    /// Whether the request is sent again at once, so that the answer has not failed yet.
    pub sent_again: bool,
}

/// The phase that took too long.
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
    /// The longest time that a server may take without content.
    pub(crate) fn progress(&self, is_local: bool) -> Option<Duration> {
        match self.progress {
            ProgressLimit::Usual => (!is_local).then_some(USUAL_PROGRESS),
            ProgressLimit::Within(limit) => Some(limit),
            ProgressLimit::Unlimited => None,
        }
    }
}
