//! A provider whose requests are reserved and settled.

use std::sync::Arc;

use agentd_agent::observer::CallPurpose;
use agentd_ai::{
    CallBound, Delta, DeltaStream, Provider, Request, call_bound,
    failure::{Failure, FailureKind},
    with_output_limit,
};
use agentd_budget::{Amounts, Quote, nanodollars_up};
use agentd_protocol::message::StopReason;
use async_stream::stream;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{
    call_meter::CallMeter,
    reservation::ScopedFit,
    session_budget::{Denied, SessionBudget},
};

/// An answer that gets fewer tokens than this is not asked for.
const LEAST_OUTPUT: u64 = 256;

/// An answer that gets fewer is not asked for while other calls may give back what they have reserved.
const ENOUGH_OUTPUT: u64 = 8192;

/// Follows the report about the budget.
const CUT_OFF: &str = "The answer was cut off there.";

impl SessionBudget {
    /// The provider with every request within the budgets; as it is where nothing is limited.
    pub(crate) fn meter(
        self: &Arc<Self>,
        provider: Arc<dyn Provider>,
        purpose: CallPurpose,
    ) -> Arc<dyn Provider> {
        let provider = match &self.parent {
            Some(parent) => parent.meter(provider, purpose),
            None => provider,
        };
        if !self.is_limited_itself() {
            return provider;
        }
        Arc::new(Metered { budget: Arc::clone(self), provider, purpose })
    }

    /// What a request can take at most.
    pub(crate) fn quote(request: &Request, purpose: CallPurpose) -> Quote {
        let CallBound { input, output, input_cost, output_price } = call_bound(request);
        Quote {
            sure: Amounts {
                cost: nanodollars_up(input_cost),
                tokens: input,
                turns: u64::from(purpose == CallPurpose::Answer),
                ..Amounts::default()
            },
            output,
            least_output: LEAST_OUTPUT,
            enough_output: ENOUGH_OUTPUT,
            output_price: output_price * 1e9,
        }
    }
}

struct Metered {
    budget: Arc<SessionBudget>,
    provider: Arc<dyn Provider>,
    purpose: CallPurpose,
}

impl Provider for Metered {
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream {
        let (budget, provider, purpose) =
            (Arc::clone(&self.budget), Arc::clone(&self.provider), self.purpose);
        Box::pin(stream! {
            let failed = |failure: Failure| Delta::Failed { failure, raw_stop_reason: None };
            if let Some(refused) = budget.lacks_price(&request.model) {
                let text = format!("{} {}", refused.error, refused.hint.unwrap_or_default());
                yield failed(Failure::new(FailureKind::InvalidRequest, text));
                return;
            }
            let quote = SessionBudget::quote(&request, purpose);
            let reserved = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    yield failed(Failure::aborted());
                    return;
                }
                reserved = budget.reserve(quote) => reserved,
            };
            let mut reservation = match reserved {
                Ok(reservation) => reservation,
                Err(denied) => {
                    let kind = match denied {
                        Denied::Reached(_) => FailureKind::BudgetReached,
                        Denied::Broken(_) => FailureKind::Fatal,
                    };
                    yield failed(Failure::new(kind, denied.failure().error));
                    return;
                }
            };
            let ScopedFit { tokens, lowered_by } = reservation.output;
            let mut meter = CallMeter::new(Arc::clone(&request.model), Quote { output: tokens, ..quote });
            let has_limit = request.model.max_tokens > 0;
            let request =
                if has_limit && lowered_by.is_none() { request } else { with_output_limit(request, tokens) };
            let mut deltas = provider.stream(request, cancel);
            while let Some(delta) = deltas.next().await {
                meter.see(&delta);
                if matches!(delta, Delta::Done { .. } | Delta::Failed { .. }) {
                    let spent = meter.spent(matches!(delta, Delta::Done { .. }));
                    reservation.settle(spent, told(&meter, purpose, &delta)).await;
                    yield match (&delta, lowered_by) {
                        (Delta::Done { stop_reason: StopReason::Length, raw_stop_reason }, Some((scope, what))) => {
                            let reached = budget.cut_off(scope, what);
                            // Calls of it get their results, as those of any answer that was cut off.
                            if meter.has_calls() {
                                delta
                            } else {
                                let failure = Failure::new(FailureKind::BudgetReached, format!("{reached} {CUT_OFF}"));
                                Delta::Failed { failure, raw_stop_reason: raw_stop_reason.clone() }
                            }
                        }
                        _ => delta,
                    };
                    return;
                }
                // If nobody waits for the rest.
                reservation.note(meter.spent(false), told(&meter, purpose, &delta));
                yield delta;
            }
        })
    }
}

/// What an entry tells of a call: the usage of each answer is stored, that of a summary only with the summary, that of an extension's call
/// never.
fn told(meter: &CallMeter, purpose: CallPurpose, delta: &Delta) -> Amounts {
    let is_stored = match purpose {
        CallPurpose::Answer => true,
        CallPurpose::Extension => false,
        CallPurpose::Summary => matches!(delta, Delta::Done { stop_reason: StopReason::Stop, .. }),
    };
    if is_stored { meter.told() } else { Amounts::default() }
}
