//! Spans that wait to be sent: bounded in number and bytes, so that a collector that does not take them costs nothing else.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::data::Span;

/// Spans that wait at most.
const MAX_SPANS: usize = 2048;

/// Their bytes at most, roughly.
const MAX_BYTES: usize = 8 << 20;

/// Spans of one request at most.
const BATCH_SPANS: usize = 512;

/// Their bytes at most, roughly; one span may be larger.
const BATCH_BYTES: usize = 2 << 20;

/// The waiting spans. One task takes them.
#[derive(Default)]
pub(crate) struct SpanQueue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    full: Notify,
}

#[derive(Default)]
struct Waiting {
    spans: VecDeque<Span>,
    bytes: usize,
    dropped: u64,
}

impl SpanQueue {
    /// Adds a span, or drops it when there is no room; true when it is the first one that is dropped. Never waits.
    pub(crate) fn push(&self, span: Span) -> bool {
        let mut waiting = self.lock();
        let bytes = span.bytes();
        if waiting.spans.len() >= MAX_SPANS || waiting.bytes + bytes > MAX_BYTES {
            waiting.dropped += 1;
            return waiting.dropped == 1;
        }
        waiting.bytes += bytes;
        waiting.spans.push_back(span);
        let count = waiting.spans.len();
        drop(waiting);
        if count == 1 {
            self.arrived.notify_one();
        }
        if count >= BATCH_SPANS {
            self.full.notify_one();
        }
        false
    }

    /// Waits for a first span. Cancel safe.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Waits until there are enough spans for a request. May return early. Cancel safe.
    pub(crate) async fn full(&self) {
        self.full.notified().await;
    }

    /// The oldest spans, as many as one request holds.
    pub(crate) fn take(&self) -> Vec<Span> {
        let mut waiting = self.lock();
        let (mut batch, mut size) = (Vec::new(), 0);
        while batch.len() < BATCH_SPANS
            && let Some(bytes) = waiting.spans.front().map(Span::bytes)
        {
            if !batch.is_empty() && size + bytes > BATCH_BYTES {
                break;
            }
            size += bytes;
            batch.extend(waiting.spans.pop_front());
        }
        waiting.bytes -= size;
        if waiting.spans.is_empty() {
            // An idle daemon keeps no memory for spans.
            waiting.spans = VecDeque::new();
        }
        batch
    }

    /// Counts spans that could not be sent.
    pub(crate) fn count_dropped(&self, spans: usize) {
        self.lock().dropped += spans as u64;
    }

    /// The spans that were dropped since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::SpanKind,
        ids::{SpanId, TraceId},
    };

    fn span(name: String) -> Span {
        Span {
            trace: TraceId::random(),
            id: SpanId::random(),
            parent: None,
            name,
            kind: SpanKind::Internal,
            start_ns: 0,
            end_ns: 0,
            attributes: Vec::new(),
            events: Vec::new(),
            dropped_events: 0,
            error: None,
        }
    }

    #[test]
    fn a_full_queue_drops_what_comes_and_says_so_once() {
        let queue = SpanQueue::default();
        let told: Vec<bool> = (0..MAX_SPANS + 3).map(|_| queue.push(span("s".into()))).collect();
        assert_eq!(told.iter().filter(|told| **told).count(), 1);
        assert!(told[MAX_SPANS]);
        assert_eq!(queue.dropped(), 3);
        let sizes: Vec<usize> =
            std::iter::repeat_with(|| queue.take().len()).take_while(|size| *size > 0).collect();
        assert_eq!(sizes, [BATCH_SPANS; MAX_SPANS / BATCH_SPANS]);
        assert!(!queue.push(span("s".into())), "there is room again");
    }

    #[test]
    fn bytes_are_bounded_too() {
        let queue = SpanQueue::default();
        let large = || span("x".repeat(BATCH_BYTES));
        let told = (0..8).filter(|_| queue.push(large())).count();
        assert_eq!(told, 1);
        assert_eq!(queue.dropped(), 5, "three of 2 MiB and a bit fit into 8 MiB");
        assert_eq!(queue.take().len(), 1, "one that is larger than a request is sent alone");
    }

    #[tokio::test]
    async fn the_first_span_and_a_full_batch_wake_the_task() {
        let queue = SpanQueue::default();
        queue.push(span("s".into()));
        queue.arrived().await;
        assert!((1..BATCH_SPANS).all(|_| !queue.push(span("s".into()))));
        queue.full().await;
        assert_eq!(queue.take().len(), BATCH_SPANS);
    }
}
