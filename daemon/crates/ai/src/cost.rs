//! The cost of an answer. Pure.

use agentd_protocol::{
    message::{Cost, Usage},
    model::{CostTier, ModelCost},
};

/// The share of a price list that applies to one request, in US dollars per million tokens.
struct Rates {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

/// Computes the cost of `usage` at `prices`, in US dollars.
///
/// The tier with the highest limit below the whole input (cached tokens included) applies to everything. Cache writes
/// that are kept for an hour cost twice the input price. A total that the provider reported itself
/// (`totalFromProvider`) is kept.
#[must_use]
pub fn cost(prices: &ModelCost, usage: &Usage) -> Cost {
    let rates = rates(prices, usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write));
    let hour = usage.cache_write1h.unwrap_or(0).min(usage.cache_write);
    let input = dollars(usage.input, rates.input);
    let output = dollars(usage.output, rates.output);
    let cache_read = dollars(usage.cache_read, rates.cache_read);
    let cache_write = dollars(usage.cache_write - hour, rates.cache_write) + dollars(hour, 2.0 * rates.input);
    let reported = usage.cost.total_from_provider == Some(true);
    Cost {
        input,
        output,
        cache_read,
        cache_write,
        total: if reported { usage.cost.total } else { input + output + cache_read + cache_write },
        total_from_provider: Some(reported),
    }
}

fn rates(prices: &ModelCost, input: u64) -> Rates {
    let tier: Option<&CostTier> = prices
        .tiers
        .iter()
        .flatten()
        .filter(|tier| tier.input_tokens_above < input)
        .max_by_key(|tier| tier.input_tokens_above);
    match tier {
        Some(tier) => Rates {
            input: tier.input,
            output: tier.output,
            cache_read: tier.cache_read,
            cache_write: tier.cache_write,
        },
        None => Rates {
            input: prices.input,
            output: prices.output,
            cache_read: prices.cache_read,
            cache_write: prices.cache_write,
        },
    }
}

fn dollars(tokens: u64, rate: f64) -> f64 {
    // Token counts are far below 2^53, up to which floats are exact. The order of the operations is pi's, so that the results are equal to
    // the last digit.
    rate / 1e6 * tokens as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> ModelCost {
        ModelCost {
            input: 3.0,
            output: 15.0,
            cache_read: 0.3,
            cache_write: 3.75,
            tiers: Some(vec![
                CostTier {
                    input_tokens_above: 200_000,
                    input: 6.0,
                    output: 22.5,
                    cache_read: 0.6,
                    cache_write: 7.5,
                },
                CostTier { input_tokens_above: 500_000, input: 12.0, ..CostTier::default() },
            ]),
        }
    }

    fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
        Usage { input, output, cache_read, cache_write, ..Usage::default() }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let cost = cost(&prices(), &usage(1000, 100, 10_000, 400));
        assert_eq!((cost.input, cost.output, cost.cache_read), (0.003, 0.0015, 0.003));
        assert_eq!((cost.cache_write, cost.total_from_provider), (0.0015, Some(false)));
        assert!((cost.total - 0.009).abs() < 1e-12);
    }

    #[test]
    fn a_tier_applies_to_the_whole_request_above_its_limit() {
        assert_eq!(cost(&prices(), &usage(100_000, 0, 100_000, 0)).input, 0.3);
        assert_eq!(cost(&prices(), &usage(100_000, 0, 100_001, 0)).input, 0.6);
        assert_eq!(cost(&prices(), &usage(1_000_000, 0, 0, 0)).input, 12.0);
    }

    #[test]
    fn writes_for_an_hour_cost_twice_the_input() {
        let usage = Usage { cache_write1h: Some(1000), ..usage(0, 0, 0, 1500) };
        assert!((cost(&prices(), &usage).cache_write - (0.001_875 + 0.006)).abs() < 1e-12);
    }

    #[test]
    fn a_reported_total_is_kept() {
        let mut usage = usage(1000, 0, 0, 0);
        usage.cost = Cost { total: 0.5, total_from_provider: Some(true), ..Cost::default() };
        let cost = cost(&prices(), &usage);
        assert_eq!((cost.input, cost.total, cost.total_from_provider), (0.003, 0.5, Some(true)));
    }
}
