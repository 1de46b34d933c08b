//! What all sessions report to.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{config::TelemetryConfig, data::Span, metrics::Metrics, queue::SpanQueue};

/// The state that sessions report to.
pub(crate) struct Hub {
    pub(crate) config: TelemetryConfig,
    pub(crate) metrics: Metrics,
    /// Sessions in memory.
    pub(crate) loaded: Arc<AtomicU64>,
    /// Runs that work.
    pub(crate) running: Arc<AtomicU64>,
    pub(crate) queue: Arc<SpanQueue>,
}

impl Hub {
    /// Queues a span that has ended. Never waits.
    pub(crate) fn send(&self, span: Span) {
        if self.config.traces.is_some() && self.queue.push(span) {
            tracing::warn!("spans wait for the collector, as many as may: further ones are dropped");
        }
    }
}

/// Unix time in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
