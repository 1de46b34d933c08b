//! The sum of one run or one session.

use agentd_protocol::budget::BudgetQuantity;

use crate::{Amounts, Limits, OutputFit, Quote};

/// Why a step may not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The quantity of which there is too little.
    pub what: BudgetQuantity,
    /// Whether it would fit if nothing else were reserved: what waits for that may get it.
    pub is_reserved: bool,
}

/// What is spent and reserved under limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The limits.
    pub limits: Limits,
    used: Amounts,
    reserved: Amounts,
}

impl Account {
    /// An account of which something is spent already.
    #[must_use]
    pub fn new(limits: Limits, used: Amounts) -> Self {
        Self { limits, used, reserved: Amounts::default() }
    }

    /// An account of which something is spent and something reserved.
    #[must_use]
    pub fn with_reserved(limits: Limits, used: Amounts, reserved: Amounts) -> Self {
        Self { limits, used, reserved }
    }

    /// What is spent.
    #[must_use]
    pub fn used(&self) -> Amounts {
        self.used
    }

    /// What is reserved.
    #[must_use]
    pub fn reserved(&self) -> Amounts {
        self.reserved
    }

    /// How much output a step could get now. Reserves nothing.
    ///
    /// # Errors
    /// [`Refusal`], also of a step that could get enough if others took less than they have reserved.
    pub fn fit(&self, quote: &Quote) -> Result<OutputFit, Refusal> {
        let now = quote.fit(self.limits.left(self.used.plus(self.reserved)));
        let later = || quote.fit(self.limits.left(self.used));
        match now {
            Ok(OutputFit { tokens, lowered_by: Some(what) })
                if tokens < quote.enough_output && later().is_ok_and(|fit| fit.tokens > tokens) =>
            {
                Err(Refusal { what, is_reserved: true })
            }
            Ok(fit) => Ok(fit),
            Err(what) => Err(Refusal { what, is_reserved: later().is_ok() }),
        }
    }

    /// Reserves for a step; gives the output that it may have.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is reserved then.
    pub fn reserve(&mut self, quote: &Quote) -> Result<OutputFit, Refusal> {
        let fit = self.fit(quote)?;
        self.reserved = self.reserved.plus(quote.with_output(fit.tokens));
        Ok(fit)
    }

    /// Puts what a step took in the place of what was reserved for it; nothing, for a step that was not taken.
    pub fn settle(&mut self, reserved: Amounts, spent: Amounts) {
        self.reserved = self.reserved.minus(reserved);
        self.used = self.used.plus(spent);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quote(cost: u64, tokens: u64, output: u64) -> Quote {
        let sure = Amounts { cost, tokens, turns: 1, ..Amounts::default() };
        Quote { sure, output, least_output: 2, enough_output: 9, output_price: 1.5 }
    }

    proptest! {
        /// Whatever steps are reserved and settled in whatever order, with anything up to what was reserved: no limit is exceeded.
        #[test]
        fn no_order_of_steps_exceeds_a_limit(
            limits in (proptest::option::of(0..500_u64), proptest::option::of(0..500_u64), proptest::option::of(0..9_u64)),
            steps in proptest::collection::vec((any::<bool>(), 0..60_u64, 0..60_u64, 0..60_u64, 0..=100_u64), 1..60),
        ) {
            let (cost, tokens, turns) = limits;
            let limits = Limits { cost, tokens, turns, ..Limits::default() };
            let mut account = Account::new(limits, Amounts::default());
            let mut open: Vec<Amounts> = Vec::new();
            for (begins, cost, tokens, output, share) in steps {
                if begins || open.is_empty() {
                    let quote = quote(cost, tokens, output);
                    let before = account;
                    match account.reserve(&quote) {
                        Ok(OutputFit { tokens: output, .. }) => {
                            prop_assert!(output <= quote.output && output >= quote.least_output.min(quote.output));
                            open.push(quote.with_output(output));
                        }
                        Err(refusal) => {
                            prop_assert_eq!(account, before);
                            prop_assert!(!refusal.is_reserved || account.reserved() != Amounts::default());
                        }
                    }
                } else {
                    let reserved = open.swap_remove((share as usize) % open.len());
                    let part = |amount: u64| amount * share / 100;
                    let spent = Amounts {
                        cost: part(reserved.cost),
                        tokens: part(reserved.tokens),
                        turns: reserved.turns,
                        ..Amounts::default()
                    };
                    account.settle(reserved, spent);
                }
                let sum = account.used().plus(account.reserved());
                prop_assert!(limits.cost.is_none_or(|limit| sum.cost <= limit));
                prop_assert!(limits.tokens.is_none_or(|limit| sum.tokens <= limit));
                prop_assert!(limits.turns.is_none_or(|limit| sum.turns <= limit));
            }
            for reserved in open {
                account.settle(reserved, Amounts::default());
            }
            prop_assert_eq!(account.reserved(), Amounts::default());
        }
    }

    #[test]
    fn what_others_have_reserved_may_come_back() {
        let limits = Limits { cost: Some(100), ..Limits::default() };
        let mut account = Account::new(limits, Amounts::default());
        let step = Quote::of(Amounts { cost: 60, ..Amounts::default() });
        account.reserve(&step).unwrap();
        let refusal = Refusal { what: BudgetQuantity::CostUsd, is_reserved: true };
        assert_eq!(account.reserve(&step), Err(refusal));
        account.settle(step.sure, Amounts { cost: 50, ..Amounts::default() });
        assert_eq!(account.reserve(&step), Err(Refusal { is_reserved: false, ..refusal }));
    }

    #[test]
    fn a_short_answer_is_not_made_while_others_may_give_back_what_they_reserved() {
        let limits = Limits { tokens: Some(100), ..Limits::default() };
        let mut account = Account::new(limits, Amounts::default());
        let step = |output| Quote { output, least_output: 5, enough_output: 40, ..Quote::default() };
        account.reserve(&step(50)).unwrap();
        // Enough, though less than wished.
        assert_eq!(
            account.fit(&step(60)),
            Ok(OutputFit { tokens: 50, lowered_by: Some(BudgetQuantity::Tokens) })
        );
        account.reserve(&step(20)).unwrap();
        let refusal = Refusal { what: BudgetQuantity::Tokens, is_reserved: true };
        assert_eq!(account.fit(&step(60)), Err(refusal));
        // A step that needs no more does not wait.
        assert_eq!(account.fit(&step(30)), Ok(OutputFit { tokens: 30, lowered_by: None }));
        let both = Amounts { tokens: 70, ..Amounts::default() };
        account.settle(both, both);
        assert_eq!(
            account.fit(&step(60)),
            Ok(OutputFit { tokens: 30, lowered_by: Some(BudgetQuantity::Tokens) })
        );
    }
}
