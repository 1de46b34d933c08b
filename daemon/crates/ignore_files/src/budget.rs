//! Limits the memory that the rules of one search take together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Memory for the compiled rules of one search, in bytes: 96 MiB. The rules of a large repository take a few.
const DEFAULT_BYTES: u64 = 96 << 20;

/// The memory that compiled rules may take together, in bytes as estimated by [`cost`](crate::cost).
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
    /// A budget of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    /// Takes `bytes` until the reservation is dropped; `None` when fewer are left.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Option<BudgetReservation> {
        let take = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(BudgetReservation { budget: Arc::clone(self), bytes })
    }
}

/// Bytes of a budget. They return when this is dropped.
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
