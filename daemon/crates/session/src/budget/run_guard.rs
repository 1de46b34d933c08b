//! The time of a run: its account while it is at work, and its end when the time is over.

use std::{
    convert::Infallible,
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use agentd_budget::{Amounts, DayError, DayReservation, Quote, Refusal};
use agentd_protocol::{budget::BudgetScope, settings::BudgetLimits};
use tokio::{runtime::Handle, task::spawn_blocking, time::sleep};
use tokio_util::sync::CancellationToken;

use super::session_budget::{SETTLED, SessionBudget, millis};

/// The time that a run takes from the day's budget at once.
const SLICE: Duration = Duration::from_secs(15);

/// The budget of a run that is at work. Dropped, the run is over, and its time counts for the session.
pub(crate) struct RunGuard(Arc<SessionBudget>);

impl RunGuard {
    /// A run begins, with the limits of its prompt.
    pub(crate) fn begin(budget: &Arc<SessionBudget>, prompt: Option<BudgetLimits>) -> Self {
        budget.begin_run(prompt);
        Self(Arc::clone(budget))
    }

    /// Runs `work`, and fires `stop` when a budget of time is used up: of the run, of the session, or of the day.
    pub(crate) fn within_time<T: Send>(
        &self,
        stop: &CancellationToken,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send {
        // On the heap: the future would hold it twice.
        let work = Box::pin(work);
        let watch = async {
            let scope = tokio::select! {
                scope = self.own_time() => scope,
                () = self.time_of_day() => BudgetScope::Day,
            };
            self.0.time_is_over(scope);
            stop.cancel();
            pending::<Infallible>().await
        };
        async move {
            tokio::select! {
                biased;
                done = work => done,
                never = watch => match never {},
            }
        }
    }

    /// Until the time of the run or of the session is over.
    async fn own_time(&self) -> BudgetScope {
        match self.0.time_left() {
            Some((left, scope)) => {
                sleep(left).await;
                scope
            }
            None => pending().await,
        }
    }

    /// Until the time of the day is over. Runs that are at work side by side take it in slices.
    async fn time_of_day(&self) {
        if self.0.day.as_ref().is_none_or(|day| day.limits.millis.is_none()) {
            return pending().await;
        }
        while let Some(slice) = self.next_slice().await {
            sleep(Duration::from_millis(slice.reserved.amounts.millis)).await;
            slice.settle().await;
        }
    }

    /// The next slice of the day's time; `None` when there is none left. A sum that cannot be kept permits no work either.
    async fn next_slice(&self) -> Option<Slice> {
        let budget = Arc::clone(&self.0);
        let reserved = spawn_blocking(move || take_slice(&budget)).await.ok()?;
        match reserved {
            Ok(slice) => Some(slice),
            // Time that others have reserved is not waited for: waiting is work, too.
            Err(DayError::Refused { used, .. }) => {
                self.0.accounts().day_used = used;
                None
            }
            Err(error) => {
                tracing::error!(%error, "a run ends because its time cannot be counted");
                None
            }
        }
    }
}

fn take_slice(budget: &Arc<SessionBudget>) -> Result<Slice, DayError> {
    let Some(day) = &budget.day else { return Err(refused()) };
    // What is left may be shorter than a slice.
    let looked = day.file.look()?;
    let left = day.limits.left(looked.used.plus(looked.reserved)).millis;
    let time = left.min(millis(SLICE)).max(1);
    let reserved =
        day.file.reserve(day.limits, &Quote::of(Amounts { millis: time, ..Amounts::default() }))?;
    Ok(Slice { budget: Arc::clone(budget), reserved, begun: Instant::now(), is_settled: false })
}

fn refused() -> DayError {
    let what = agentd_protocol::budget::BudgetQuantity::Seconds;
    let refusal = Refusal { what, is_reserved: false };
    DayError::Refused { refusal, used: Amounts::default(), others: Vec::new() }
}

/// A slice of the day's time. Dropped, what is left of it is given back.
struct Slice {
    budget: Arc<SessionBudget>,
    reserved: DayReservation,
    begun: Instant,
    is_settled: bool,
}

impl Slice {
    async fn settle(mut self) {
        if let Some(settled) = self.settle_now() {
            let _ = settled.await;
        }
    }

    fn settle_now(&mut self) -> Option<tokio::task::JoinHandle<()>> {
        if std::mem::replace(&mut self.is_settled, true) {
            return None;
        }
        let took = millis(self.begun.elapsed()).min(self.reserved.amounts.millis);
        let (budget, reserved) = (Arc::clone(&self.budget), self.reserved.clone());
        let settle = move || {
            let Some(day) = &budget.day else { return };
            match day.file.settle(&reserved, Amounts { millis: took, ..Amounts::default() }) {
                Ok(used) => budget.accounts().day_used = used,
                Err(error) => tracing::error!(%error, "the time of a run is not in the day's budget"),
            }
            SETTLED.notify_waiters();
        };
        // Without a runtime the process ends, and the next one releases the slice.
        Handle::try_current().ok().map(|runtime| runtime.spawn_blocking(settle))
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.settle_now();
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut accounts = self.0.accounts();
        if let Some(run) = accounts.run.take() {
            let time = Amounts { millis: millis(run.begun.elapsed()), ..Amounts::default() };
            accounts.session.settle(Amounts::default(), time);
        }
    }
}
