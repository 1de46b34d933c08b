//! What was done, and what went wrong, counted by all clients at once.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::say;

/// How many findings are kept word for word.
const KEPT: usize = 50;

/// Counts of the whole run.
#[derive(Default)]
pub(crate) struct Tally {
    /// Commands that were answered.
    pub(crate) commands: AtomicU64,
    /// Prompts whose run has settled as it had to.
    pub(crate) prompts: AtomicU64,
    is_over: AtomicBool,
    kinds: Mutex<BTreeMap<String, u64>>,
    findings: Mutex<Vec<String>>,
    /// How long `daemon_status` took, each time.
    looks: Mutex<Vec<Duration>>,
}

impl Tally {
    /// Something happened that is no fault: an operation, an error that the protocol has.
    pub(crate) fn note(&self, kind: &str) {
        *self.kinds.lock().unwrap().entry(kind.to_owned()).or_default() += 1;
    }

    /// A promise was broken.
    pub(crate) fn find(&self, text: &str) {
        self.note("FINDING");
        let mut findings = self.findings.lock().unwrap();
        if findings.len() < KEPT {
            say::error(&format!("FINDING: {text}"));
            findings.push(text.to_owned());
        }
    }

    /// A look at the daemon took so long.
    pub(crate) fn looked(&self, took: Duration) {
        self.looks.lock().unwrap().push(took);
    }

    /// The times of all looks, sorted.
    pub(crate) fn looks(&self) -> Vec<Duration> {
        let mut looks = self.looks.lock().unwrap().clone();
        looks.sort_unstable();
        looks
    }

    /// Ends the clients' work.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether clients are to leave.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// How often each thing happened.
    pub(crate) fn kinds(&self) -> BTreeMap<String, u64> {
        self.kinds.lock().unwrap().clone()
    }

    /// What went wrong.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.findings.lock().unwrap().clone()
    }
}
