//! How long the network is waited for.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Server, server::Limit};
use crate::{Deadlines, StallPhase, failure::Failure};

/// The limits of an attempt, and how much of them is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) idle: Option<Duration>,
    /// Until the headers.
    pub(super) headers: Option<Duration>,
    pub(super) progress: Option<Duration>,
    pub(super) deadlines: Deadlines,
    /// How long the provider was waited for.
    pub(super) waited: Duration,
    /// The same since the last content.
    pub(super) without_content: Duration,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Await {
    /// The headers of an answer.
    Headers,
    /// The first byte of its body.
    FirstByte,
    /// More of it. A patience may shorten the idle limit.
    More(Option<Duration>),
}

impl Limits {
    /// Waits for the network; the limit that is reached first, and the abort, end the wait.
    pub(super) async fn wait<T>(
        &mut self,
        future: impl Future<Output = T>,
        wish: Await,
        cancel: &CancellationToken,
        server: &Server,
    ) -> Result<T, Failure> {
        let limit = self.limits(wish).into_iter().flatten().min_by_key(|limit| limit.left);
        let begun = Instant::now();
        let limited = async {
            match limit {
                Some(limit) => tokio::time::timeout(limit.left, future).await.map_err(|_| limit),
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
        done.map_err(|limit| {
            // A wait that was short, at the end of a limit that was used up before, is no shorter stall.
            let waited = begun.elapsed() + limit.total.saturating_sub(limit.left);
            server.stalled(&limit, waited, &self.deadlines)
        })
    }

    fn limits(&self, wish: Await) -> [Option<Limit>; 5] {
        let Deadlines { first_byte, request, .. } = self.deadlines;
        let (headers, first_byte) = match wish {
            Await::Headers => (self.headers, first_byte),
            Await::FirstByte => (None, first_byte),
            Await::More(_) => (None, None),
        };
        let patience = if let Await::More(patience) = wish { patience } else { None };
        let idle = [self.idle, patience].into_iter().flatten().min();
        let none = Duration::ZERO;
        [
            Limit::of(idle, none, StallPhase::Idle, "httpIdleTimeoutMs"),
            Limit::of(headers, none, StallPhase::FirstByte, "retry.provider.timeoutMs"),
            Limit::of(first_byte, self.waited, StallPhase::FirstByte, "deadlines.firstByteMs"),
            Limit::of(self.progress, self.without_content, StallPhase::Progress, "deadlines.progressMs"),
            Limit::of(request, self.waited, StallPhase::Request, "deadlines.requestMs"),
        ]
    }
}
