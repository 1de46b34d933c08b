//! News for those who wait for jobs.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::watch;

/// Tells those who wait that a job has ended, or that a message of the user has come. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(crate) struct JobNews(Arc<Inner>);

struct Inner {
    count: watch::Sender<u64>,
    has_message: AtomicBool,
}

impl Default for JobNews {
    fn default() -> Self {
        Self(Arc::new(Inner { count: watch::Sender::new(0), has_message: AtomicBool::new(false) }))
    }
}

impl JobNews {
    /// A job has ended.
    pub(crate) fn job_ended(&self) {
        self.0.count.send_modify(|count| *count += 1);
    }

    /// A message of the user waits for the run.
    pub(crate) fn message_came(&self) {
        self.0.has_message.store(true, Ordering::Release);
        self.job_ended();
    }

    /// Whether a message has come, once.
    pub(super) fn take_message(&self) -> bool {
        self.0.has_message.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        // One that came before is delivered after this call anyway.
        self.0.has_message.store(false, Ordering::Release);
        self.0.count.subscribe()
    }
}
