//! What is reserved in all accounts of a session at once.

use std::{sync::Arc, time::Duration};

use agentd_budget::{Account, Amounts, DayError, OutputFit, Quote, Refusal};
use agentd_protocol::budget::{BudgetReached, BudgetScope};
use tokio::task::spawn_blocking;

use super::{
    reservation::{Reservation, ScopedFit},
    session_budget::{Accounts, Denied, SETTLED, SessionBudget},
};

/// The time after which a waiting call looks again: the file of the day tells nobody what other processes have settled.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl SessionBudget {
    /// Reserves a step in every scope. Waits while it would fit if other steps took less than they have reserved. Cancel
    /// safe: what was reserved is released.
    pub(super) async fn reserve(self: &Arc<Self>, quote: Quote) -> Result<Reservation, Denied> {
        loop {
            let settled = SETTLED.notified();
            tokio::pin!(settled);
            // From here on nothing that is settled is missed.
            settled.as_mut().enable();
            let (reached, is_reserved) = match self.try_reserve(quote).await {
                Ok(reservation) => return Ok(reservation),
                Err(Attempt::Broken(error)) => return Err(Denied::Broken(error)),
                Err(Attempt::Refused(reached, is_reserved)) => (reached, is_reserved),
            };
            if !is_reserved {
                self.reach(reached);
                return Err(Denied::Reached(reached));
            }
            tokio::select! {
                () = settled => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    async fn try_reserve(self: &Arc<Self>, quote: Quote) -> Result<Reservation, Attempt> {
        let mut reservation = self.reserve_here(quote)?;
        let Some(day) = &self.day else { return Ok(reservation) };
        let quote = Quote { output: reservation.output.tokens, ..quote };
        let (file, limits, budget) = (day.file.clone(), day.limits, Arc::clone(self));
        // The reservation goes along, so that nothing stays reserved when nobody waits for it any more.
        let reserved = spawn_blocking(move || match file.reserve(limits, &quote) {
            Ok(of_day) => {
                budget.accounts().day_used = of_day.used;
                reservation.add_day(of_day, &quote);
                Ok(reservation)
            }
            Err(DayError::Refused(Refusal { what, is_reserved }, used)) => {
                budget.accounts().day_used = used;
                Err(Attempt::Refused(limits.reached(BudgetScope::Day, what, used), is_reserved))
            }
            Err(error) => Err(Attempt::Broken(error.to_string())),
        });
        reserved.await.map_err(|error| Attempt::Broken(error.to_string()))?
    }

    /// Reserves in the accounts of the run and of the session.
    fn reserve_here(self: &Arc<Self>, quote: Quote) -> Result<Reservation, Attempt> {
        let mut accounts = self.accounts();
        let mut output = ScopedFit { tokens: quote.output, lowered_by: None };
        if let Some(run) = &accounts.run {
            if let Some(reached) = run.reached {
                return Err(Attempt::Refused(reached, false));
            }
            output.lower(BudgetScope::Run, fit(BudgetScope::Run, &run.account, &quote)?);
        }
        output.lower(BudgetScope::Session, fit(BudgetScope::Session, &accounts.session, &quote)?);
        let amounts = quote.with_output(output.tokens);
        let exactly = Quote::of(amounts);
        // Both fit, as was just seen under the same lock.
        if let Some(run) = &mut accounts.run {
            run.account
                .reserve(&exactly)
                .map_err(|refusal| refused(BudgetScope::Run, &run.account, refusal))?;
        }
        let Accounts { session, .. } = &mut *accounts;
        session.reserve(&exactly).map_err(|refusal| refused(BudgetScope::Session, session, refusal))?;
        let run = accounts.run.as_ref().map(|run| run.number);
        Ok(Reservation::new(self, run, amounts, output))
    }

    /// A tool call is about to start.
    pub(crate) async fn begin_tool_call(self: &Arc<Self>) -> Result<(), Denied> {
        if !self.is_limited() {
            return Ok(());
        }
        let one = Amounts { tool_calls: 1, ..Amounts::default() };
        let reservation = self.reserve(Quote::of(one)).await?;
        reservation.settle(one).await;
        Ok(())
    }
}

/// Why an attempt to reserve failed.
enum Attempt {
    /// By a budget; true where it would fit without what others have reserved.
    Refused(BudgetReached, bool),
    /// The sum of the day cannot be kept.
    Broken(String),
}

fn fit(scope: BudgetScope, account: &Account, quote: &Quote) -> Result<OutputFit, Attempt> {
    account.fit(quote).map_err(|refusal| refused(scope, account, refusal))
}

fn refused(scope: BudgetScope, account: &Account, refusal: Refusal) -> Attempt {
    let reached = account.limits.reached(scope, refusal.what, account.used());
    Attempt::Refused(reached, refusal.is_reserved)
}
