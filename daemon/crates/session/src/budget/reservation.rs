//! Something that is reserved until it is settled.

use std::sync::Arc;

use agentd_budget::{Amounts, DayReservation, OutputFit, Quote};
use agentd_protocol::budget::{BudgetQuantity, BudgetScope};
use tokio::{runtime::Handle, task::spawn_blocking};

use super::session_budget::{SETTLED, SessionBudget};

/// The output that a step may have by all budgets, and the one that permits the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScopedFit {
    pub(super) tokens: u64,
    pub(super) lowered_by: Option<(BudgetScope, BudgetQuantity)>,
}

impl ScopedFit {
    pub(super) fn lower(&mut self, scope: BudgetScope, fit: OutputFit) {
        if let Some(what) = fit.lowered_by.filter(|_| fit.tokens < self.tokens) {
            *self = Self { tokens: fit.tokens, lowered_by: Some((scope, what)) };
        }
    }
}

/// What a step has reserved. Dropped before it was settled, it takes what was noted last, at first nothing.
pub(crate) struct Reservation {
    budget: Arc<SessionBudget>,
    /// The run that it is for.
    run: Option<u64>,
    amounts: Amounts,
    day: Option<DayReservation>,
    /// The output that the step may have.
    pub(super) output: ScopedFit,
    /// What it takes when it is dropped.
    pub(super) noted: Amounts,
    is_settled: bool,
}

impl Reservation {
    pub(super) fn new(
        budget: &Arc<SessionBudget>,
        run: Option<u64>,
        amounts: Amounts,
        output: ScopedFit,
    ) -> Self {
        let noted = Amounts::default();
        Self { budget: Arc::clone(budget), run, amounts, day: None, output, noted, is_settled: false }
    }

    /// It is reserved in the day's sum, too, with perhaps less output.
    pub(super) fn add_day(&mut self, day: DayReservation, quote: &Quote) {
        if day.output.tokens < self.output.tokens {
            let less = quote.with_output(day.output.tokens);
            self.settle_here(self.amounts.minus(less), Amounts::default());
            self.amounts = less;
            self.output.lower(BudgetScope::Day, day.output);
        }
        self.day = Some(day);
    }

    /// Puts what the step took in the place of what was reserved.
    pub(super) async fn settle(mut self, spent: Amounts) {
        self.noted = spent;
        if let Some(done) = self.settle_now(Where::Runtime) {
            // The next step of this run sees the sum.
            let _ = done.await;
        }
    }

    fn settle_here(&self, reserved: Amounts, spent: Amounts) {
        let mut accounts = self.budget.accounts();
        accounts.session.settle(reserved, spent);
        if let Some(run) = accounts.run.as_mut().filter(|run| Some(run.number) == self.run) {
            run.account.settle(reserved, spent);
        }
    }

    fn settle_now(&mut self, place: Where) -> Option<tokio::task::JoinHandle<()>> {
        if std::mem::replace(&mut self.is_settled, true) {
            return None;
        }
        self.settle_here(self.amounts, self.noted);
        let (Some(of_day), Some(day)) = (self.day.take(), &self.budget.day) else {
            SETTLED.notify_waiters();
            return None;
        };
        let (file, spent, budget) = (day.file.clone(), self.noted, Arc::clone(&self.budget));
        let settle = move || {
            match file.settle(&of_day, spent) {
                Ok(used) => budget.accounts().day_used = used,
                Err(error) => tracing::error!(%error, "what a model call took is not in the day's budget"),
            }
            SETTLED.notify_waiters();
        };
        match place {
            Where::Runtime => Some(spawn_blocking(settle)),
            Where::Unknown => match Handle::try_current() {
                Ok(runtime) => Some(runtime.spawn_blocking(settle)),
                // The process ends: the next one releases what it had reserved.
                Err(_) => None,
            },
        }
    }
}

/// Where a reservation is settled.
enum Where {
    /// In a task.
    Runtime,
    /// Where it was dropped.
    Unknown,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.settle_now(Where::Unknown);
    }
}
