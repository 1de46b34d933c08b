//! The setting `budgets`: what a run, a session and a day may spend.

use serde::{Deserialize, Serialize};

use crate::number;

/// What may be spent, by scope. A scope without limits is not counted. Only read from the user's settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// The limits of each run: from a prompt to `agent_settled`, queued messages included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<BudgetLimits>,
    /// The limits of each session over its whole life. A fork counts what it spent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<BudgetLimits>,
    /// The limits of a calendar day in local time, over all sessions of all daemons of the agent directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<BudgetLimits>,
    /// What a model without a price means while `costUsd` is limited: it is not asked (`refuse`, the default), or it costs nothing
    /// (`zero`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "refuse")))]
    pub unknown_price: Option<UnknownPrice>,
}

/// The limits of one scope. A limit that is absent limits nothing; 0 permits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// US dollars for model calls: answers, summaries of compactions and of branches.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "dollars",
        serialize_with = "as_number"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", range(min = 0)))]
    pub cost_usd: Option<f64>,
    /// Tokens of model calls: input, cached input and output.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub tokens: Option<u64>,
    /// Answers of models. Summaries are none.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub turns: Option<u64>,
    /// Tool calls that are started.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub tool_calls: Option<u64>,
    /// Seconds during which runs are at work. Runs that are at work side by side count each.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub seconds: Option<u64>,
}

/// Every number of them is one: none is NaN.
impl Eq for BudgetLimits {}

/// What a model without a price means for a limit of cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UnknownPrice {
    /// It is not asked.
    #[default]
    Refuse,
    /// It costs nothing.
    Zero,
}

impl BudgetLimits {
    /// The flags that set the limits of a run.
    pub const FLAGS: [&str; 5] =
        ["--max-cost", "--max-tokens", "--max-turns", "--max-tool-calls", "--timeout"];

    /// Sets the limit that one of [`Self::FLAGS`] stands for.
    ///
    /// # Errors
    /// A sentence about the value, without the flag's name; nothing is set then.
    pub fn set_by_flag(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "--max-cost" => self.cost_usd = Some(parse_dollars(value)?),
            "--max-tokens" => self.tokens = Some(parse_count(value)?),
            "--max-turns" => self.turns = Some(parse_count(value)?),
            "--max-tool-calls" => self.tool_calls = Some(parse_count(value)?),
            "--timeout" => self.seconds = Some(parse_duration(value)?),
            other => return Err(format!("{other} is no budget")),
        }
        Ok(())
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Of each limit the lower one.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        fn lower<T: PartialOrd>(one: Option<T>, two: Option<T>) -> Option<T> {
            match (one, two) {
                (Some(one), Some(two)) => Some(if two < one { two } else { one }),
                (one, two) => one.or(two),
            }
        }
        Self {
            cost_usd: lower(self.cost_usd, other.cost_usd),
            tokens: lower(self.tokens, other.tokens),
            turns: lower(self.turns, other.turns),
            tool_calls: lower(self.tool_calls, other.tool_calls),
            seconds: lower(self.seconds, other.seconds),
        }
    }
}

/// Reads US dollars, such as `0.50`; more than 0.
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_dollars(text: &str) -> Result<f64, String> {
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let sum = text.parse::<f64>().ok().filter(|sum| is_plain && sum.is_finite() && *sum > 0.0);
    sum.ok_or_else(|| format!("expected US dollars above 0, such as 0.50, got \"{text}\""))
}

/// Reads a count above 0.
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let count = text.parse::<u64>().ok().filter(|count| *count > 0 && !text.starts_with('+'));
    count.ok_or_else(|| format!("expected a whole number above 0, got \"{text}\""))
}

/// Reads a time such as `90s`, `10m` or `1h30m`; in seconds, above 0.
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let read = || {
        let (mut seconds, mut number, mut last) = (0_u64, None::<u64>, u64::MAX);
        for c in text.chars() {
            if let Some(digit) = c.to_digit(10) {
                number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit.into())?);
                continue;
            }
            let unit = match c {
                'h' => 3600,
                'm' => 60,
                's' => 1,
                _ => return None,
            };
            // Each unit once, the larger before the smaller.
            if unit >= last {
                return None;
            }
            last = unit;
            seconds = seconds.checked_add(number.take()?.checked_mul(unit)?)?;
        }
        number.is_none().then_some(seconds).filter(|seconds| *seconds > 0)
    };
    read().ok_or_else(|| format!("expected a time such as 90s, 10m or 1h30m, got \"{text}\""))
}

/// A sum of dollars that can be a limit.
fn dollars<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        Some(sum) if !sum.is_finite() || sum < 0.0 => {
            Err(serde::de::Error::custom(format!("expected US dollars, 0 or more, got {sum}")))
        }
        sum => Ok(sum),
    }
}

/// A number that can be a limit.
fn count<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(value) = Option::<serde_json::Value>::deserialize(deserializer)? else { return Ok(None) };
    let text = || serde::de::Error::custom(format!("expected a whole number, 0 or more, got {value}"));
    value.as_u64().map(Some).ok_or_else(text)
}

fn as_number<S: serde::Serializer>(sum: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match sum {
        Some(sum) => number::serialize(sum, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_lower_of_two_limits_counts() {
        let limits = |value| serde_json::from_value::<BudgetLimits>(value).unwrap();
        let both = limits(json!({"costUsd": 0.5, "turns": 3}))
            .stricter(limits(json!({"costUsd": 1, "turns": 2, "seconds": 9})));
        assert_eq!(serde_json::to_value(both).unwrap(), json!({"costUsd": 0.5, "turns": 2, "seconds": 9}));
        assert!(BudgetLimits::default().is_empty() && !both.is_empty());
    }

    #[test]
    fn flags_take_what_people_write() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h", 7200), ("1h1s", 3601)] {
            assert_eq!(parse_duration(text), Ok(seconds));
        }
        for bad in [
            "",
            "10",
            "m",
            "1m1h",
            "1s1s",
            "-1s",
            "0s",
            "1.5h",
            "1 m",
            "99999999999999999999s",
            "6000000000000000h",
        ] {
            assert!(parse_duration(bad).unwrap_err().contains("such as 90s, 10m or 1h30m"), "{bad}");
        }
        for (text, sum) in [("0.50", 0.5), ("2", 2.0), (".05", 0.05)] {
            assert_eq!(parse_dollars(text), Ok(sum));
        }
        for bad in ["", "0", "-1", "inf", "nan", "1e3", "$1", "1,5", "."] {
            assert!(parse_dollars(bad).is_err(), "{bad}");
        }
        assert!(parse_count("0").is_err() && parse_count("1.5").is_err() && parse_count("+1").is_err());
        let mut limits = BudgetLimits::default();
        for (flag, value) in BudgetLimits::FLAGS.into_iter().zip(["1", "2", "3", "4", "5s"]) {
            limits.set_by_flag(flag, value).unwrap();
        }
        let expected = json!({"costUsd": 1, "tokens": 2, "turns": 3, "toolCalls": 4, "seconds": 5});
        assert_eq!(serde_json::to_value(limits).unwrap(), expected);
        assert!(limits.set_by_flag("--max-turns", "many").is_err() && limits.turns == Some(3));
    }

    #[test]
    fn what_is_no_sum_is_refused() {
        for bad in
            [json!({"costUsd": -1}), json!({"costUsd": "1"}), json!({"turns": -1}), json!({"turns": 1.5})]
        {
            let error = serde_json::from_value::<BudgetLimits>(bad.clone()).unwrap_err().to_string();
            let is_clear = error.contains("expected a whole number, 0 or more, got -1");
            assert!(is_clear || bad["turns"] != -1, "{error}");
        }
    }
}
