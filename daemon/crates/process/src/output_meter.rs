//! Counts how much is written to the files of long outputs.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;

/// Counts the bytes that all outputs write together. Cheap to clone; all clones share one count.
#[derive(Debug, Clone, Default)]
pub struct OutputMeter(Arc<Counter>);

#[derive(Debug, Default)]
struct Counter {
    bytes: AtomicU64,
    /// The count that a caller waits for; 0 while none waits.
    wanted: AtomicU64,
    news: Notify,
}

impl OutputMeter {
    pub(crate) fn add(&self, bytes: u64) {
        let now = self.0.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let wanted = self.0.wanted.load(Ordering::Acquire);
        if wanted > 0 && now >= wanted {
            self.0.news.notify_one();
        }
    }

    /// Waits until `bytes` have been written since it last returned, then restarts the count. For one waiting caller.
    /// Cancel safe.
    pub async fn grown_by(&self, bytes: u64) {
        self.0.wanted.store(bytes.max(1), Ordering::Release);
        while self.0.bytes.load(Ordering::Acquire) < bytes.max(1) {
            self.0.news.notified().await;
        }
        self.0.bytes.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_for_growth_is_woken_by_it() {
        let meter = OutputMeter::default();
        meter.add(5);
        meter.grown_by(5).await;
        let waiting = tokio::spawn({
            let meter = meter.clone();
            async move { meter.grown_by(10).await }
        });
        tokio::task::yield_now().await;
        meter.add(4);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        meter.add(6);
        waiting.await.unwrap();
    }
}
