//! What one model call took, by what the provider said and by what came. Pure.

use std::sync::Arc;

use agentd_ai::{BlockKind, Delta, priced, text_bound};
use agentd_budget::{Amounts, Quote, nanodollars};
use agentd_protocol::{message::Usage, model::Model};

/// Counts one call while its answer streams.
pub(super) struct CallMeter {
    model: Arc<Model>,
    /// What the call can take at most.
    quote: Quote,
    /// What the provider said last.
    usage: Option<Usage>,
    /// The most tokens of what came.
    streamed: u64,
    has_calls: bool,
}

impl CallMeter {
    pub(super) fn new(model: Arc<Model>, quote: Quote) -> Self {
        Self { model, quote, usage: None, streamed: 0, has_calls: false }
    }

    pub(super) fn see(&mut self, delta: &Delta) {
        match delta {
            Delta::Usage(usage) => self.usage = Some(priced(&self.model, usage.clone())),
            Delta::Extend { delta, .. } => self.streamed += text_bound(delta),
            Delta::Open { kind, .. } => {
                self.streamed += 1;
                self.has_calls |= matches!(kind, BlockKind::ToolCall { .. });
            }
            _ => {}
        }
    }

    /// Whether the answer has tool calls.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// What the call took: what the provider said. An answer of which the provider said nothing, or that broke off before it said how
    /// long it is, takes what was sent and what came at most. One that broke off before anything came takes nothing.
    pub(super) fn spent(&self, is_whole: bool) -> Amounts {
        if !is_whole && self.streamed == 0 && self.said().is_none() {
            return Amounts::default();
        }
        // No answer is longer than the limit that the request carries.
        let streamed = self.streamed.min(self.quote.output);
        let spent = match self.said() {
            None => self.quote.with_output(streamed),
            Some(usage) => {
                let said = self.told();
                let unsaid = if is_whole { 0 } else { streamed.saturating_sub(usage.output) };
                Quote { sure: said, ..self.quote }.with_output(unsaid)
            }
        };
        let turns = if is_whole || self.streamed > 0 { self.quote.sure.turns } else { 0 };
        Amounts { turns, ..spent }
    }

    /// What an entry with the usage of the answer tells of that.
    pub(super) fn told(&self) -> Amounts {
        self.said().map_or(Amounts::default(), |usage| Amounts {
            cost: nanodollars(usage.cost.total),
            tokens: tokens(usage),
            ..Amounts::default()
        })
    }

    /// What the provider said, if that is anything.
    fn said(&self) -> Option<&Usage> {
        self.usage.as_ref().filter(|usage| tokens(usage) > 0)
    }
}

fn tokens(usage: &Usage) -> u64 {
    let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    usage.total_tokens.max(parts.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use agentd_protocol::model::ModelCost;

    use super::*;

    /// A call whose input is bounded by 100 tokens, for a nano-dollar each; one token of output costs two.
    fn meter() -> CallMeter {
        let cost = ModelCost { input: 0.001, output: 0.002, ..ModelCost::default() };
        let sure = Amounts { cost: 100, tokens: 100, turns: 1, ..Amounts::default() };
        let quote = Quote { sure, output: 50, least_output: 1, enough_output: 1, output_price: 2.0 };
        CallMeter::new(Arc::new(Model { cost, ..Model::placeholder() }), quote)
    }

    fn says(words: &str) -> Delta {
        Delta::Extend { index: 0, delta: words.to_owned() }
    }

    fn used(input: u64, output: u64) -> Delta {
        Delta::Usage(Usage { input, output, total_tokens: input + output, ..Usage::default() })
    }

    fn check(deltas: &[Delta], is_whole: bool, (cost, tokens, turns): (u64, u64, u64)) {
        let mut meter = meter();
        deltas.iter().for_each(|delta| meter.see(delta));
        let expected = Amounts { cost, tokens, turns, ..Amounts::default() };
        assert_eq!(meter.spent(is_whole), expected, "{deltas:?}");
    }

    #[test]
    fn what_the_provider_says_counts() {
        check(&[says("one two"), used(40, 9)], true, (40 + 18, 49, 1));
        // The last word.
        check(&[used(40, 1), says("one two"), used(40, 9)], true, (40 + 18, 49, 1));
        check(&[used(40, 9)], false, (40 + 18, 49, 0));
    }

    #[test]
    fn what_it_does_not_say_counts_with_its_bound() {
        check(&[says("one two")], true, (100 + 4, 102, 1));
        check(&[used(0, 0), says("one two")], true, (100 + 4, 102, 1));
        check(&[], true, (100, 100, 1));
        check(&[says("one two")], false, (100 + 4, 102, 1));
        // The provider has told the input, and not yet how long the answer is.
        check(&[used(40, 1), says("one two three")], false, (40 + 2 * 4, 40 + 4, 1));
        check(&[says(&"7".repeat(1000))], false, (100 + 2 * 50, 150, 1));
    }

    #[test]
    fn what_never_came_costs_nothing() {
        check(&[], false, (0, 0, 0));
        check(&[Delta::Started, used(0, 0)], false, (0, 0, 0));
    }
}
