//! A provider whose requests are reserved and settled.

use std::sync::Arc;

use agentd_ai::{
    CallBound, Delta, DeltaStream, Provider, Request, call_bound,
    failure::{Failure, FailureKind},
    priced, text_bound, with_output_limit,
};
use agentd_budget::{Amounts, Quote, nanodollars, nanodollars_up};
use agentd_protocol::{message::Usage, model::Model};
use async_stream::stream;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::session_budget::{Denied, SessionBudget};

/// An answer that gets fewer tokens than this is not asked for.
const LEAST_OUTPUT: u64 = 256;

/// What a model call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    /// An answer of a run.
    Answer,
    /// A summary.
    Summary,
}

impl SessionBudget {
    /// The provider with every request within the budgets; as it is where nothing is limited.
    pub(crate) fn meter(
        self: &Arc<Self>,
        provider: Arc<dyn Provider>,
        purpose: CallPurpose,
    ) -> Arc<dyn Provider> {
        if !self.is_limited() {
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
            let mut meter = CallMeter { model: Arc::clone(&request.model), quote, usage: None, streamed: 0, turns: quote.sure.turns };
            let has_limit = request.model.max_tokens > 0;
            let request = if has_limit && reservation.output == quote.output {
                request
            } else {
                with_output_limit(request, reservation.output)
            };
            let mut deltas = provider.stream(request, cancel);
            while let Some(delta) = deltas.next().await {
                meter.see(&delta);
                if matches!(delta, Delta::Done { .. } | Delta::Failed { .. }) {
                    let spent = meter.spent(matches!(delta, Delta::Done { .. }));
                    reservation.settle(spent).await;
                    yield delta;
                    return;
                }
                // If nobody waits for the rest.
                reservation.noted = meter.spent(false);
                yield delta;
            }
        })
    }
}

/// What one call took.
struct CallMeter {
    model: Arc<Model>,
    quote: Quote,
    /// What the provider said last.
    usage: Option<Usage>,
    /// The most tokens of what came.
    streamed: u64,
    turns: u64,
}

impl CallMeter {
    fn see(&mut self, delta: &Delta) {
        match delta {
            Delta::Usage(usage) => self.usage = Some(priced(&self.model, usage.clone())),
            Delta::Extend { delta, .. } => self.streamed += text_bound(delta),
            Delta::Open { .. } => self.streamed += 1,
            _ => {}
        }
    }

    /// What the call took: what the provider said. An answer that broke off before the provider said it takes what was sent and
    /// what came; one that broke off before anything came takes nothing.
    fn spent(&self, is_whole: bool) -> Amounts {
        let said = self
            .usage
            .as_ref()
            .filter(|usage| usage.input + usage.cache_read + usage.cache_write > 0 || usage.output > 0);
        let is_cut = !is_whole && said.is_none_or(|usage| usage.output < self.streamed);
        let turns = if is_whole || self.streamed > 0 { self.turns } else { 0 };
        let mut spent = said.map_or(Amounts::default(), |usage| Amounts {
            cost: nanodollars(usage.cost.total),
            tokens: tokens(usage),
            ..Amounts::default()
        });
        if is_cut && self.streamed > 0 {
            let estimate = match said {
                Some(usage) => Quote { sure: spent, ..self.quote }.with_output(self.streamed - usage.output),
                None => self.quote.with_output(self.streamed),
            };
            spent = Amounts { cost: estimate.cost, tokens: estimate.tokens, ..Amounts::default() };
        }
        Amounts { turns, ..spent }
    }
}

fn tokens(usage: &Usage) -> u64 {
    let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    usage.total_tokens.max(parts.into_iter().fold(0, u64::saturating_add))
}
