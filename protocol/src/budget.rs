//! Budgets on the wire: what is spent of them, and the event that tells of a reached one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    error::{ErrorCode, Failure},
    number,
    settings::{BudgetLimits, UnknownPrice},
};

/// The first words of every error about a reached budget.
const PREFIX: &str = "Budget reached: ";

/// What a budget is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BudgetScope {
    /// One run.
    Run,
    /// One session.
    Session,
    /// A calendar day, over all sessions.
    Day,
}

/// What a budget limits; the names are those of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum BudgetQuantity {
    /// US dollars.
    CostUsd,
    /// Tokens.
    Tokens,
    /// Answers.
    Turns,
    /// Tool calls.
    ToolCalls,
    /// Seconds of work.
    Seconds,
}

impl BudgetScope {
    /// The name in settings and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Session => "session",
            Self::Day => "day",
        }
    }
}

impl BudgetQuantity {
    /// The name in settings and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CostUsd => "costUsd",
            Self::Tokens => "tokens",
            Self::Turns => "turns",
            Self::ToolCalls => "toolCalls",
            Self::Seconds => "seconds",
        }
    }

    /// What is used of a limit, in words.
    fn of(self, used: f64, limit: f64) -> String {
        let unit = match self {
            Self::CostUsd => return format!("{} of {}", dollars(used), dollars(limit)),
            Self::Seconds => "s",
            Self::Tokens => "tokens",
            Self::Turns => "turns",
            Self::ToolCalls => "tool calls",
        };
        format!("{used:.0} of {limit:.0} {unit}")
    }
}

/// At least cents, and no digit that says nothing.
fn dollars(sum: f64) -> String {
    let text = format!("{sum:.6}");
    let text = text.trim_end_matches('0');
    let decimals = text.len() - text.find('.').map_or(0, |point| point + 1);
    format!("${text}{}", "0".repeat(2_usize.saturating_sub(decimals)))
}

/// `budget_reached`: the work stops here because the next step could exceed a budget. The entry that says so is on disk. Also the
/// data of the `custom` entry of the type `budget`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetReached {
    /// Whose budget.
    pub scope: BudgetScope,
    /// What it limits.
    pub what: BudgetQuantity,
    /// The limit: dollars, tokens, a number, seconds.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub limit: f64,
    /// What is spent of it, which may be less than the limit: the next step would have been too much.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub used: f64,
}

impl BudgetReached {
    /// The failure of a command that would need more.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let hint = match self.scope {
            BudgetScope::Run => "The next prompt has a budget of its own.",
            BudgetScope::Session => "A new session has a budget of its own.",
            BudgetScope::Day => "The budget is new at midnight, local time.",
        };
        let setting = format!("budgets.{}.{}", self.scope.as_str(), self.what.as_str());
        Failure::limit(self.to_string(), &setting, hint)
    }

    /// Whether a failure with this code and text is about a budget, and not about another limit.
    #[must_use]
    pub fn is_in(code: ErrorCode, error: &str) -> bool {
        code == ErrorCode::LimitReached && error.starts_with(PREFIX)
    }
}

impl fmt::Display for BudgetReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, what, limit, used } = self;
        let scope = match scope {
            BudgetScope::Run => "this run",
            BudgetScope::Session => "this session",
            BudgetScope::Day => "today",
        };
        let amount = what.of(*used, *limit);
        write!(f, "{PREFIX}{amount} used for {scope}, and the next step would be too much.")
    }
}

/// The budgets in the answer to `get_state`: one for each scope that has limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BudgetState {
    /// The run that is at work, or the limits of the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<ScopeBudget>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<ScopeBudget>,
    /// The day, as far as this daemon knows: other daemons' spending is included up to this session's last model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<ScopeBudget>,
    /// What a model without a price means.
    pub unknown_price: UnknownPrice,
}

/// The limits of a scope, and what is spent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScopeBudget {
    /// The limits.
    pub limits: BudgetLimits,
    /// What is spent, of each limited quantity.
    pub used: BudgetLimits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_what_is_used_of_which_limit_and_where_it_stands() {
        let check = |what, limit, used, error: &str| {
            let failure = BudgetReached { scope: BudgetScope::Run, what, limit, used }.failure();
            assert_eq!(
                failure.error,
                format!("Budget reached: {error}, and the next step would be too much.")
            );
            assert!(BudgetReached::is_in(failure.code, &failure.error));
            assert!(failure.hint.unwrap().contains(&format!("budgets.run.{}", what.as_str())));
        };
        check(BudgetQuantity::CostUsd, 0.5, 0.4987, "$0.4987 of $0.50 used for this run");
        check(BudgetQuantity::CostUsd, 2.0, 0.0, "$0.00 of $2.00 used for this run");
        check(BudgetQuantity::Seconds, 90.0, 90.0, "90 of 90 s used for this run");
        check(BudgetQuantity::ToolCalls, 3.0, 3.0, "3 of 3 tool calls used for this run");
        assert!(!BudgetReached::is_in(ErrorCode::LimitReached, "The message is too long"));
    }
}
