//! Something that is reserved until it is settled.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_budget::{Amounts, DayReservation, OutputFit};
use agentd_protocol::budget::{BudgetQuantity, BudgetScope};
use tokio::{
    runtime::Handle,
    task::{JoinHandle, spawn_blocking},
};

use super::session_budget::{SETTLED, SessionBudget};

/// So many tokens of an answer may have come that the day's sum does not know of. They are forgotten if the process is killed.
const UNTOLD_TOKENS: u64 = 256;

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
    /// `None` where the day is not limited.
    day: Option<OfDay>,
    /// The output that the step may have.
    pub(super) output: ScopedFit,
    /// What it takes when it is dropped.
    noted: Amounts,
    /// What an entry of the session tells of that.
    told: Amounts,
    is_settled: bool,
}

/// A reservation in the day's sum.
struct OfDay {
    /// `None` once it is settled. Locked while the file is changed, so that nothing is noted after that.
    reserved: Arc<Mutex<Option<DayReservation>>>,
    /// The tokens that were noted last.
    told: u64,
}

impl Reservation {
    pub(super) fn new(
        budget: &Arc<SessionBudget>,
        run: Option<u64>,
        amounts: Amounts,
        output: ScopedFit,
    ) -> Self {
        let noted = Amounts::default();
        let told = Amounts::default();
        Self { budget: Arc::clone(budget), run, amounts, day: None, output, noted, told, is_settled: false }
    }

    /// It is reserved in the day's sum, too; `sure` is what the day counts if the process is killed at once.
    pub(super) fn of_day(mut self, day: DayReservation, sure: Amounts) -> Self {
        let reserved = Arc::new(Mutex::new(Some(day)));
        self.day = Some(OfDay { reserved, told: sure.tokens });
        self
    }

    /// What the step has taken so far, and an entry would tell of that: it takes that much if it is dropped, or the process killed.
    pub(super) fn note(&mut self, taken: Amounts, told: Amounts) {
        (self.noted, self.told) = (taken, told);
        let (Some(of_day), Some(day)) = (&mut self.day, &self.budget.day) else { return };
        if taken.tokens < of_day.told.saturating_add(UNTOLD_TOKENS) {
            return;
        }
        of_day.told = taken.tokens;
        let (file, reserved) = (day.file.clone(), Arc::clone(&of_day.reserved));
        spawn_blocking(move || {
            let mut reserved = reserved.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(Err(error)) = reserved.as_mut().map(|reserved| file.note(reserved, taken)) {
                tracing::warn!(%error, "what a model call takes cannot be noted in the day's budget");
            }
        });
    }

    /// Puts what the step took in the place of what was reserved.
    pub(super) async fn settle(mut self, spent: Amounts, told: Amounts) {
        (self.noted, self.told) = (spent, told);
        if let Some(done) = self.settle_now() {
            // The next step of this run sees the sum.
            let _ = done.await;
        }
    }

    fn settle_here(&self) {
        let mut accounts = self.budget.accounts();
        accounts.unsaid = accounts.unsaid.plus(self.noted.minus(self.told));
        accounts.session.settle(self.amounts, self.noted);
        if let Some(run) = accounts.run.as_mut().filter(|run| Some(run.number) == self.run) {
            run.account.settle(self.amounts, self.noted);
        }
    }

    fn settle_now(&mut self) -> Option<JoinHandle<()>> {
        if std::mem::replace(&mut self.is_settled, true) {
            return None;
        }
        self.settle_here();
        let (Some(of_day), Some(day)) = (self.day.take(), &self.budget.day) else {
            SETTLED.notify_waiters();
            return None;
        };
        let (file, spent, budget) = (day.file.clone(), self.noted, Arc::clone(&self.budget));
        let settle = move || {
            let reserved = of_day.reserved.lock().unwrap_or_else(PoisonError::into_inner).take();
            match reserved.map(|reserved| file.settle(&reserved, spent)) {
                Some(Ok(used)) => budget.accounts().day_used = used,
                Some(Err(error)) => {
                    tracing::error!(%error, "what a model call took is not in the day's budget");
                }
                None => {}
            }
            SETTLED.notify_waiters();
        };
        // Without a runtime the process ends, and the next one counts what was noted.
        Handle::try_current().ok().map(|runtime| runtime.spawn_blocking(settle))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.settle_now();
    }
}
