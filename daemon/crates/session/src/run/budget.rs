//! What a run asks of its budgets, and how it ends by them.

use agentd_agent::observer::CallPurpose;
use agentd_ai::{Request, failure};
use agentd_protocol::error::{ErrorCode, Failure};

use super::{
    host::RunHost,
    message::{ModelInputs, RunMessage},
};
use crate::{budget::SessionBudget, extensions::is_virtual};

impl RunHost {
    /// Whether the session and the day permit a run at all: at least a short answer to what the context holds.
    ///
    /// # Errors
    /// `limit_reached`; `unsupported` for a model whose price is not known.
    pub(super) async fn check_budget(&mut self) -> Result<(), Failure> {
        let budget = &self.context.budget;
        if !budget.is_limited() {
            return Ok(());
        }
        let gone = |error: agentd_agent::HostError| Failure::new(ErrorCode::Internal, error.to_string());
        let ModelInputs { messages, choice, .. } = self.snapshot().await.map_err(gone)?;
        if is_virtual(&choice.model) {
            // Each request is checked with the model that it is made to.
            return Ok(());
        }
        if let Some(failure) = budget.lacks_price(&choice.model) {
            return Err(failure);
        }
        let request =
            Request { cache_retention: self.context.cache_retention, ..Request::new(choice.model, messages) };
        let quote = SessionBudget::quote(&request, CallPurpose::Answer);
        budget.check(quote).await.map_err(|denied| denied.failure())
    }

    /// Stores and tells which budget ended the run, once.
    pub(super) async fn report_budget(&mut self) {
        if let Some(reached) = self.context.budget.take_untold() {
            if let Some(observer) = &self.context.observer {
                observer.event(&reached.into());
            }
            // A session that is gone needs no word.
            let _ = self.ask(|done| RunMessage::BudgetReached { reached, done }).await;
        }
    }

    /// The failure of an answer that a budget of time cut off.
    pub(super) fn stopped_by_budget(&self) -> Option<failure::Failure> {
        let reached = self.context.budget.reached()?;
        Some(failure::Failure::new(failure::FailureKind::BudgetReached, reached.failure().error))
    }
}
