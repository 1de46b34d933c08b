//! What is reserved in all accounts of a session at once.

use std::sync::Arc;

use agentd_budget::{Account, Amounts, DayError, Holder, Limits, OutputFit, Quote, Refusal};
use agentd_protocol::budget::{BudgetReached, BudgetScope};
use tokio::task::spawn_blocking;

use super::{
    day_watch::{DayWatch, WATCHER},
    reservation::{Reservation, ScopedFit},
    session_budget::{Accounts, Day, Denied, SETTLED, SessionBudget},
};

impl SessionBudget {
    /// Reserves a step in every scope. Waits while it would fit if other steps took less than they have reserved. Cancel
    /// safe: what was reserved is released.
    pub(super) async fn reserve(self: &Arc<Self>, quote: Quote) -> Result<Reservation, Denied> {
        let (mut watcher, mut watch) = (None, None::<DayWatch>);
        loop {
            let settled = SETTLED.notified();
            tokio::pin!(settled);
            // From here on nothing that is settled is missed.
            settled.as_mut().enable();
            let Refused { reached, is_reserved, others } = match self.try_reserve(quote).await {
                Ok(reservation) => return Ok(reservation),
                Err(Attempt::Broken(error)) => return Err(Denied::Broken(error)),
                Err(Attempt::Refused(refused)) => refused,
            };
            if !is_reserved {
                self.reach(reached);
                return Err(Denied::Reached(reached));
            }
            let Some(day) = self.day.as_ref().filter(|_| !others.is_empty()) else {
                settled.await;
                continue;
            };
            let unwatched = |error: std::io::Error| {
                let path = day.file.path().display();
                let text = format!(
                    "The day's budget in {path} is reserved by others, and cannot be watched: {error}"
                );
                Denied::Broken(text)
            };
            match &watch {
                Some(made) if made.covers(&others) => {
                    tokio::select! {
                        () = settled => continue,
                        changed = made.changed() => changed.map_err(unwatched)?,
                    }
                    watch = None;
                }
                _ if watcher.is_none() => {
                    tokio::select! {
                        () = settled => continue,
                        turn = WATCHER.lock() => watcher = Some(turn),
                    }
                    watch = DayWatch::new(&day.file, others).map_err(unwatched)?;
                }
                _ => watch = DayWatch::new(&day.file, others).map_err(unwatched)?,
            }
            // What came before the watch was made, and what it noticed, is for all that wait in this process.
            SETTLED.notify_waiters();
        }
    }

    async fn try_reserve(self: &Arc<Self>, quote: Quote) -> Result<Reservation, Attempt> {
        let Some(Day { file, limits }) = &self.day else {
            let mut accounts = self.accounts();
            let output = Self::fit(&accounts, &quote)?;
            return self.reserve_here(&mut accounts, quote.with_output(output.tokens), output);
        };
        // Nothing is reserved here before it is in the day's sum: its release would wake the steps that wait, this one too.
        let mut output = Self::fit(&self.accounts(), &quote)?;
        let (file, limits, budget) = (file.clone(), *limits, Arc::clone(self));
        // The reservation is made there, so that nothing stays reserved when nobody waits for it any more.
        let reserved = spawn_blocking(move || {
            let of_day = file.reserve(limits, &Quote { output: output.tokens, ..quote });
            let of_day = of_day.map_err(|error| budget.refused_by_day(limits, error))?;
            let mut accounts = budget.accounts();
            accounts.day_used = of_day.used;
            output.lower(BudgetScope::Day, of_day.output);
            match budget.reserve_here(&mut accounts, of_day.amounts, output) {
                Ok(reservation) => Ok(reservation.of_day(of_day, quote.sure)),
                // Another step of the session was faster.
                Err(attempt) => {
                    drop(accounts);
                    if let Err(error) = file.settle(&of_day, Amounts::default()) {
                        tracing::error!(%error, "a reservation stays in the day's budget");
                    }
                    SETTLED.notify_waiters();
                    Err(attempt)
                }
            }
        });
        reserved.await.map_err(|error| Attempt::Broken(error.to_string()))?
    }

    fn refused_by_day(&self, limits: Limits, error: DayError) -> Attempt {
        match error {
            DayError::Refused { refusal: Refusal { what, is_reserved }, used, others } => {
                self.accounts().day_used = used;
                let reached = limits.reached(BudgetScope::Day, what, used);
                Attempt::Refused(Refused { reached, is_reserved, others })
            }
            error => Attempt::Broken(error.to_string()),
        }
    }

    /// The output that the run and the session permit.
    fn fit(accounts: &Accounts, quote: &Quote) -> Result<ScopedFit, Attempt> {
        let mut output = ScopedFit { tokens: quote.output, lowered_by: None };
        if let Some(run) = &accounts.run {
            if let Some(reached) = run.reached {
                return Err(Attempt::Refused(Refused { reached, is_reserved: false, others: Vec::new() }));
            }
            output.lower(BudgetScope::Run, fit(BudgetScope::Run, &run.account, quote)?);
        }
        output.lower(BudgetScope::Session, fit(BudgetScope::Session, &accounts.session, quote)?);
        Ok(output)
    }

    /// Reserves in the accounts of the run and of the session, in both or in none.
    fn reserve_here(
        self: &Arc<Self>,
        accounts: &mut Accounts,
        amounts: Amounts,
        output: ScopedFit,
    ) -> Result<Reservation, Attempt> {
        let exactly = Quote::of(amounts);
        Self::fit(accounts, &exactly)?;
        if let Some(run) = &mut accounts.run {
            run.account
                .reserve(&exactly)
                .map_err(|refusal| refused(BudgetScope::Run, &run.account, refusal))?;
        }
        let Accounts { session, run, .. } = accounts;
        session.reserve(&exactly).map_err(|refusal| refused(BudgetScope::Session, session, refusal))?;
        Ok(Reservation::new(self, run.as_ref().map(|run| run.number), amounts, output))
    }

    /// A tool call is about to start.
    pub(crate) async fn begin_tool_call(self: &Arc<Self>) -> Result<(), Denied> {
        if let Some(parent) = &self.parent {
            Box::pin(parent.begin_tool_call()).await?;
        }
        if !self.is_limited_itself() {
            return Ok(());
        }
        let one = Amounts { tool_calls: 1, ..Amounts::default() };
        let attempt = match self.spend_here(one) {
            Err(attempt) => attempt,
            Ok(()) => match self.spend_of_day(one).await {
                Ok(()) => return Ok(()),
                Err(attempt) => attempt,
            },
        };
        match attempt {
            Attempt::Broken(error) => Err(Denied::Broken(error)),
            Attempt::Refused(Refused { reached, .. }) => {
                self.reach(reached);
                Err(Denied::Reached(reached))
            }
        }
    }

    /// Spends what nobody reserves.
    fn spend_here(self: &Arc<Self>, amounts: Amounts) -> Result<(), Attempt> {
        let mut accounts = self.accounts();
        Self::fit(&accounts, &Quote::of(amounts))?;
        if let Some(run) = &mut accounts.run {
            run.account.settle(Amounts::default(), amounts);
        }
        accounts.session.settle(Amounts::default(), amounts);
        Ok(())
    }

    async fn spend_of_day(self: &Arc<Self>, amounts: Amounts) -> Result<(), Attempt> {
        let Some(Day { file, limits }) = &self.day else { return Ok(()) };
        let (file, limits, budget) = (file.clone(), *limits, Arc::clone(self));
        let spent = spawn_blocking(move || match file.spend(limits, amounts) {
            Ok(used) => {
                budget.accounts().day_used = used;
                Ok(())
            }
            Err(error) => Err(budget.refused_by_day(limits, error)),
        });
        spent.await.map_err(|error| Attempt::Broken(error.to_string()))?
    }
}

/// Why an attempt to reserve failed.
enum Attempt {
    /// By a budget.
    Refused(Refused),
    /// The sum of the day cannot be kept.
    Broken(String),
}

/// A budget does not permit a step.
struct Refused {
    reached: BudgetReached,
    /// Whether it would fit without what others have reserved.
    is_reserved: bool,
    /// Other processes that have something reserved in the day's sum.
    others: Vec<Holder>,
}

fn fit(scope: BudgetScope, account: &Account, quote: &Quote) -> Result<OutputFit, Attempt> {
    account.fit(quote).map_err(|refusal| refused(scope, account, refusal))
}

fn refused(scope: BudgetScope, account: &Account, refusal: Refusal) -> Attempt {
    let reached = account.limits.reached(scope, refusal.what, account.used());
    Attempt::Refused(Refused { reached, is_reserved: refusal.is_reserved, others: Vec::new() })
}
