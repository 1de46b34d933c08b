//! What is counted, and what may be.

use agentd_protocol::{
    budget::{BudgetQuantity, BudgetReached, BudgetScope, ScopeBudget},
    settings::BudgetLimits,
};
use serde::{Deserialize, Serialize};

const NANO: f64 = 1e9;

/// US dollars in nano-dollars, rounded to the nearest.
#[must_use]
pub fn nanodollars(dollars: f64) -> u64 {
    // A float that does not fit becomes the nearest integer; NaN becomes 0.
    (dollars * NANO).round() as u64
}

/// US dollars in nano-dollars, rounded up.
#[must_use]
pub fn nanodollars_up(dollars: f64) -> u64 {
    (dollars * NANO).ceil() as u64
}

/// Nano-dollars in US dollars.
#[must_use]
pub fn dollars(nanodollars: u64) -> f64 {
    nanodollars as f64 / NANO
}

/// What was spent, is reserved, or is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Amounts {
    /// Nano-dollars.
    pub cost: u64,
    /// Tokens.
    pub tokens: u64,
    /// Answers.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Milliseconds of work.
    pub millis: u64,
}

impl Amounts {
    /// The sum of each, which sticks at the highest number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// The difference of each, which sticks at 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    fn each(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            cost: of(self.cost, other.cost),
            tokens: of(self.tokens, other.tokens),
            turns: of(self.turns, other.turns),
            tool_calls: of(self.tool_calls, other.tool_calls),
            millis: of(self.millis, other.millis),
        }
    }
}

/// What may be spent; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Nano-dollars.
    pub cost: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Answers.
    pub turns: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u64>,
    /// Milliseconds of work.
    pub millis: Option<u64>,
}

impl From<BudgetLimits> for Limits {
    fn from(limits: BudgetLimits) -> Self {
        let BudgetLimits { cost_usd, tokens, turns, tool_calls, seconds } = limits;
        Self {
            cost: cost_usd.map(nanodollars),
            tokens,
            turns,
            tool_calls,
            millis: seconds.map(|seconds| seconds.saturating_mul(1000)),
        }
    }
}

impl Limits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is left after `spent`; the highest number where there is no limit.
    #[must_use]
    pub fn left(&self, spent: Amounts) -> Amounts {
        let left =
            |limit: Option<u64>, spent: u64| limit.map_or(u64::MAX, |limit| limit.saturating_sub(spent));
        Amounts {
            cost: left(self.cost, spent.cost),
            tokens: left(self.tokens, spent.tokens),
            turns: left(self.turns, spent.turns),
            tool_calls: left(self.tool_calls, spent.tool_calls),
            millis: left(self.millis, spent.millis),
        }
    }

    /// The first limit of which nothing is left.
    #[must_use]
    pub fn used_up(&self, spent: Amounts) -> Option<BudgetQuantity> {
        let left = self.left(spent);
        [
            (left.cost, BudgetQuantity::CostUsd),
            (left.tokens, BudgetQuantity::Tokens),
            (left.turns, BudgetQuantity::Turns),
            (left.tool_calls, BudgetQuantity::ToolCalls),
            (left.millis, BudgetQuantity::Seconds),
        ]
        .into_iter()
        .find_map(|(left, what)| (left == 0).then_some(what))
    }

    /// The report about a limit of `scope` that was reached.
    #[must_use]
    pub fn reached(&self, scope: BudgetScope, what: BudgetQuantity, used: Amounts) -> BudgetReached {
        let count = |limit: Option<u64>, used: u64| (limit.unwrap_or_default() as f64, used as f64);
        let (limit, used) = match what {
            BudgetQuantity::CostUsd => (dollars(self.cost.unwrap_or_default()), dollars(used.cost)),
            BudgetQuantity::Tokens => count(self.tokens, used.tokens),
            BudgetQuantity::Turns => count(self.turns, used.turns),
            BudgetQuantity::ToolCalls => count(self.tool_calls, used.tool_calls),
            BudgetQuantity::Seconds => {
                ((self.millis.unwrap_or_default() / 1000) as f64, used.millis as f64 / 1000.0)
            }
        };
        BudgetReached { scope, what, limit, used }
    }

    /// The limits, and what is spent of each.
    #[must_use]
    pub fn shown(&self, used: Amounts) -> ScopeBudget {
        ScopeBudget {
            limits: BudgetLimits {
                cost_usd: self.cost.map(dollars),
                tokens: self.tokens,
                turns: self.turns,
                tool_calls: self.tool_calls,
                seconds: self.millis.map(|millis| millis / 1000),
            },
            used: BudgetLimits {
                cost_usd: self.cost.map(|_| dollars(used.cost)),
                tokens: self.tokens.map(|_| used.tokens),
                turns: self.turns.map(|_| used.turns),
                tool_calls: self.tool_calls.map(|_| used.tool_calls),
                seconds: self.millis.map(|_| used.millis / 1000),
            },
        }
    }
}

/// The output that a step may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputFit {
    /// The most tokens.
    pub tokens: u64,
    /// What there was too little of for all that was asked for.
    pub lowered_by: Option<BudgetQuantity>,
}

/// What a step can take at most: a part that is sure, and the output of a model, whose length can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quote {
    /// All but the output.
    pub sure: Amounts,
    /// The most tokens of output.
    pub output: u64,
    /// The fewest that are of use: a step that gets less is not made.
    pub least_output: u64,
    /// So many are seldom cut off: a step that gets less waits for what others have reserved.
    pub enough_output: u64,
    /// Nano-dollars for one token of output.
    pub output_price: f64,
}

impl Quote {
    /// A step without output.
    #[must_use]
    pub fn of(sure: Amounts) -> Self {
        Self { sure, ..Self::default() }
    }

    /// What is taken at most with so much output.
    #[must_use]
    pub fn with_output(&self, output: u64) -> Amounts {
        let cost = (self.output_price * output as f64).ceil() as u64;
        self.sure.plus(Amounts { cost, tokens: output, ..Amounts::default() })
    }

    /// How much output fits into what is left.
    ///
    /// # Errors
    /// The first quantity of which there is too little for the least.
    pub fn fit(&self, left: Amounts) -> Result<OutputFit, BudgetQuantity> {
        let least = self.with_output(self.least_output.min(self.output));
        for (needed, left, what) in [
            (least.turns, left.turns, BudgetQuantity::Turns),
            (least.tool_calls, left.tool_calls, BudgetQuantity::ToolCalls),
            (least.cost, left.cost, BudgetQuantity::CostUsd),
            (least.tokens, left.tokens, BudgetQuantity::Tokens),
            (least.millis, left.millis, BudgetQuantity::Seconds),
        ] {
            if needed > left {
                return Err(what);
            }
        }
        let of_tokens = self.output.min(left.tokens - self.sure.tokens);
        let mut tokens = of_tokens;
        if left.cost < u64::MAX && self.output_price > 0.0 {
            tokens = tokens.min(((left.cost - self.sure.cost) as f64 / self.output_price) as u64);
        }
        // The division may have rounded up by a token.
        while tokens > 0 && self.with_output(tokens).cost > left.cost {
            tokens -= 1;
        }
        let lowered_by = match tokens {
            _ if tokens < of_tokens => Some(BudgetQuantity::CostUsd),
            _ if tokens < self.output => Some(BudgetQuantity::Tokens),
            _ => None,
        };
        Ok(OutputFit { tokens, lowered_by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_exact() {
        assert_eq!(nanodollars(0.1) + nanodollars(0.2), nanodollars(0.3));
        assert_eq!(nanodollars(0.000_000_075), 75);
        assert_eq!(nanodollars_up(0.000_000_000_1), 1);
        assert_eq!((nanodollars(f64::NAN), nanodollars(-1.0), nanodollars(f64::INFINITY)), (0, 0, u64::MAX));
        // A million calls of a tenth of a cent.
        let cent = Amounts { cost: nanodollars(0.001), ..Amounts::default() };
        let sum = (0..1_000_000).fold(Amounts::default(), |sum, _| sum.plus(cent));
        assert_eq!(sum.cost, nanodollars(1000.0));
    }

    #[test]
    fn an_answer_is_shortened_to_what_is_left() {
        // 15 dollars per million tokens of output.
        let sure = Amounts { cost: 1_000_000, tokens: 100, turns: 1, ..Amounts::default() };
        let quote =
            Quote { sure, output: 8192, least_output: 256, enough_output: 256, output_price: 15_000.0 };
        let left = |cost: u64, tokens: u64| Amounts { cost, tokens, turns: 1, ..Amounts::default() };
        let fits = |tokens, what| Ok(OutputFit { tokens, lowered_by: Some(what) });
        assert_eq!(quote.fit(left(u64::MAX, u64::MAX)), Ok(OutputFit { tokens: 8192, lowered_by: None }));
        assert_eq!(quote.fit(left(1_000_000 + 15_000 * 300, u64::MAX)), fits(300, BudgetQuantity::CostUsd));
        assert_eq!(quote.fit(left(u64::MAX, 400)), fits(300, BudgetQuantity::Tokens));
        assert_eq!(quote.fit(left(1_000_000 + 15_000 * 255, 9999)), Err(BudgetQuantity::CostUsd));
        assert_eq!(quote.fit(left(u64::MAX, 355)), Err(BudgetQuantity::Tokens));
        assert_eq!(quote.fit(Amounts { turns: 0, ..left(u64::MAX, 999) }), Err(BudgetQuantity::Turns));
        // A model whose answers are shorter than the least.
        let short = Quote { output: 10, ..quote };
        assert_eq!(short.fit(left(1_000_000 + 150_000, 110)), Ok(OutputFit { tokens: 10, lowered_by: None }));
    }
}
