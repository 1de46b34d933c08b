//! Timeouts of one attempt: how long each phase of an answer may take.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::{
    Deadlines, OnStall, Stall, StallPhase,
    failure::{Failure, FailureKind},
};

/// The timeouts of an attempt, and how much of them is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptTimeouts {
    pub(super) idle: Option<Duration>,
    /// Until the headers have come.
    pub(super) headers: Option<Duration>,
    pub(super) progress: Option<Duration>,
    pub(super) deadlines: Deadlines,
    /// The time that was spent waiting for the provider.
    pub(super) waited: Duration,
    /// The same, since the last content.
    pub(super) without_content: Duration,
}

/// The phase that a wait belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitPhase {
    /// For the headers of an answer.
    Headers,
    /// For the first byte of its body.
    FirstByte,
    /// For more of the body. The timeout may shorten the idle timeout.
    More(Option<Duration>),
}

impl AttemptTimeouts {
    /// Waits for `future` until the first timeout or an abort.
    pub(super) async fn wait<T>(
        &mut self,
        future: impl Future<Output = T>,
        phase: WaitPhase,
        cancel: &CancellationToken,
        server: &Server,
    ) -> Result<T, Failure> {
        let timeout = self.timeouts(phase).into_iter().flatten().min_by_key(|timeout| timeout.left);
        let begun = Instant::now();
        let limited = async {
            match timeout {
                Some(timeout) => tokio::time::timeout(timeout.left, future).await.map_err(|_| timeout),
                None => Ok(future.await),
            }
        };
        let done = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::aborted()),
            done = limited => done,
        };
        self.waited += begun.elapsed();
        self.without_content += begun.elapsed();
        done.map_err(|timeout| {
            // Earlier waits used up a part of the timeout: they count as waited, too.
            let waited = begun.elapsed() + timeout.total.saturating_sub(timeout.left);
            stalled(server, &timeout, waited, &self.deadlines)
        })
    }

    fn timeouts(&self, phase: WaitPhase) -> [Option<Timeout>; 5] {
        let Deadlines { first_byte, request, .. } = self.deadlines;
        let (headers, first_byte) = match phase {
            WaitPhase::Headers => (self.headers, first_byte),
            WaitPhase::FirstByte => (None, first_byte),
            WaitPhase::More(_) => (None, None),
        };
        let shorter = if let WaitPhase::More(shorter) = phase { shorter } else { None };
        let idle = [self.idle, shorter].into_iter().flatten().min();
        let none = Duration::ZERO;
        [
            Timeout::of(idle, none, StallPhase::Idle, "httpIdleTimeoutMs"),
            Timeout::of(headers, none, StallPhase::FirstByte, "retry.provider.timeoutMs"),
            Timeout::of(first_byte, self.waited, StallPhase::FirstByte, "deadlines.firstByteMs"),
            Timeout::of(self.progress, self.without_content, StallPhase::Progress, "deadlines.progressMs"),
            Timeout::of(request, self.waited, StallPhase::Request, "deadlines.requestMs"),
        ]
    }
}

/// One timeout, and the setting that it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeout {
    /// The time that is left.
    pub(super) left: Duration,
    /// The whole timeout.
    pub(super) total: Duration,
    pub(super) phase: StallPhase,
    pub(super) setting: &'static str,
}

impl Timeout {
    /// A timeout of which `used` is gone; `None` without a timeout.
    pub(super) fn of(
        total: Option<Duration>,
        used: Duration,
        phase: StallPhase,
        setting: &'static str,
    ) -> Option<Self> {
        total.map(|total| Self { left: total.saturating_sub(used), total, phase, setting })
    }
}

/// The failure of a server that took longer than a timeout allows.
pub(super) fn stalled(
    server: &Server,
    timeout: &Timeout,
    waited: Duration,
    deadlines: &Deadlines,
) -> Failure {
    let Timeout { phase, total, setting, .. } = *timeout;
    let (host, seconds) = (&server.host, total.as_secs_f64());
    let what = match phase {
        StallPhase::Connect => format!("there was no connection to {} within {seconds} s", server.url),
        StallPhase::FirstByte => format!("{host} began no answer within {seconds} s"),
        StallPhase::Idle => format!("{host} sent nothing for {seconds} s"),
        StallPhase::Progress => {
            format!("{host} sent nothing of an answer for {seconds} s, though the connection was alive")
        }
        StallPhase::Request => format!("the answer of {host} was not complete after {seconds} s"),
    };
    let may_pass = deadlines.on_stall == OnStall::Retry;
    let (kind, beginning, reason) = if may_pass {
        (FailureKind::Retryable, "The request timed out", "")
    } else {
        // A session file keeps only the text: it must not read as if a retry could help.
        (FailureKind::Fatal, "The request was given up", ", and deadlines.onStall says \"fail\"")
    };
    let limit = total.as_millis();
    let message = format!("{beginning}: {what}. The limit is the setting {setting} ({limit}){reason}.");
    let stall = Stall { phase, waited, limit: total, may_pass, sent_again: false };
    Failure { stall: Some(stall), ..server.failure(kind, message) }
}
