//! Tokens and their cost, as messages report them.

use agentd_protocol::{
    json_text::{JsonCursor, JsonText, ScanFault},
    message::Usage,
};

/// Tokens and their cost, as far as they are summed up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CountedUsage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    /// US dollars.
    pub(crate) cost: f64,
}

impl CountedUsage {
    /// Reads a `usage`; `None` for what is none.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut cursor = JsonCursor::new(text);
        let plain = Self::plain(&mut cursor).and_then(|(_, usage)| cursor.end().map(|()| usage));
        plain.or_else(|_| serde_json::from_str::<Usage>(text).map(|usage| Self::from(&usage))).ok()
    }

    /// Reads one of the usual form, in a tenth of the time, and goes behind it: members that are known and there once, whole numbers, short fractions.
    pub(crate) fn plain<'a>(cursor: &mut JsonCursor<'a>) -> Result<(JsonText<'a>, Self), ScanFault> {
        let mut usage = Self::default();
        let mut seen = 0_u32;
        let text = cursor.members(|key, cursor| {
            let bit = match key {
                r#""input""# => 1,
                r#""output""# => 2,
                r#""cacheRead""# => 4,
                r#""cacheWrite""# => 8,
                r#""totalTokens""# => 16,
                r#""cost""# => 32,
                _ => return Err(ScanFault::NoJson),
            };
            if seen & bit != 0 {
                return Err(ScanFault::NoJson);
            }
            seen |= bit;
            if bit == 32 {
                return usage.cost_members(cursor);
            }
            let count = whole(cursor.value()?.as_str()).ok_or(ScanFault::NoJson)?;
            match bit {
                1 => usage.input = count,
                2 => usage.output = count,
                4 => usage.cache_read = count,
                8 => usage.cache_write = count,
                _ => {}
            }
            Ok(())
        })?;
        Ok((text, usage))
    }

    fn cost_members(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), ScanFault> {
        let mut seen = 0_u32;
        cursor.members(|key, cursor| {
            let bit = match key {
                r#""input""# => 1,
                r#""output""# => 2,
                r#""cacheRead""# => 4,
                r#""cacheWrite""# => 8,
                r#""total""# => 16,
                _ => return Err(ScanFault::NoJson),
            };
            let cost = cursor.value()?.as_str();
            if seen & bit != 0 || !is_short_number(cost) {
                return Err(ScanFault::NoJson);
            }
            seen |= bit;
            if bit == 16 {
                self.cost = cost.parse().map_err(|_| ScanFault::NoJson)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

impl From<&Usage> for CountedUsage {
    fn from(usage: &Usage) -> Self {
        let Usage { input, output, cache_read, cache_write, cost, .. } = usage;
        Self {
            input: *input,
            output: *output,
            cache_read: *cache_read,
            cache_write: *cache_write,
            cost: cost.total,
        }
    }
}

/// The digits of a number that every reader takes for the same `f64`.
const SURE_DIGITS: usize = 15;

fn whole(text: &str) -> Option<u64> {
    let is_plain = text.len() <= SURE_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

/// Whether a JSON value is a number of few digits, without sign and exponent.
fn is_short_number(value: &str) -> bool {
    value.len() <= SURE_DIGITS && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            (0..3_000_000_u64).prop_map(|count| count.to_string()),
            any::<u64>().prop_map(|count| count.to_string()),
            (0.0..10.0_f64).prop_map(|cost| cost.to_string()),
            (0..1_000_000_u64).prop_map(|cost| format!("0.{cost:06}")),
            prop_oneof![
                Just("-1"),
                Just("1e3"),
                Just("null"),
                Just("\"7\""),
                Just("1.0"),
                Just("{}"),
                Just("true")
            ]
            .prop_map(str::to_owned),
        ]
    }

    fn members(names: &'static [&'static str]) -> impl Strategy<Value = String> {
        let member =
            (prop::sample::select(names), number()).prop_map(|(name, number)| format!("\"{name}\":{number}"));
        prop::collection::vec(member, 0..6).prop_map(|members| members.join(","))
    }

    proptest! {
        #[test]
        fn usage_is_read_as_by_serde(
            counts in members(&["input", "output", "cacheRead", "cacheWrite", "totalTokens", "reasoning", "new", "c\\u006fst"]),
            cost in members(&["input", "output", "cacheRead", "cacheWrite", "total", "new"]),
            has_cost in any::<bool>(),
        ) {
            let cost = if has_cost { format!("\"cost\":{{{cost}}}") } else { String::new() };
            let comma = if has_cost && !counts.is_empty() { "," } else { "" };
            let text = format!("{{{counts}{comma}{cost}}}");
            let by_serde = serde_json::from_str::<Usage>(&text).ok().map(|usage| CountedUsage::from(&usage));
            prop_assert_eq!(CountedUsage::of(&text), by_serde, "{}", text);
        }
    }
}
