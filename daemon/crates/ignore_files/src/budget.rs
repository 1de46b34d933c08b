//! What the rules of one search may take together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What the compiled rules of one search may take of memory: 96 MiB. Those of a large repository take some.
const DEFAULT_BYTES: u64 = 96 << 20;

/// The memory that compiled rules may take together, in bytes by [`cost`](crate::cost)'s estimate.
#[derive(Debug)]
pub struct RulesBudget {
    left: AtomicU64,
}

impl Default for RulesBudget {
    fn default() -> Self {
        Self::new(DEFAULT_BYTES)
    }
}

impl RulesBudget {
    /// One of so many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    /// Takes that many bytes until the reservation is dropped; `None` when they are not left.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Option<BudgetReservation> {
        let take = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(BudgetReservation { budget: Arc::clone(self), bytes })
    }
}

/// Bytes of a budget. They go back when this is dropped.
#[derive(Debug)]
pub struct BudgetReservation {
    budget: Arc<RulesBudget>,
    bytes: u64,
}

impl Drop for BudgetReservation {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}
