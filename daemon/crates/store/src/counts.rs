//! What one entry adds to the numbers of a session, found while its line is read.

use agentd_protocol::{
    json_text::{JsonCursor, ScanFault},
    message::Usage,
};

use crate::{
    Entry, EntryKind, Role,
    entry::{LineInFile, MessageMembers, Scanned},
    object::{each_member, name},
    spending::{SPENDING_ENTRY, spending_of},
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

/// What an entry adds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct EntryCounts {
    /// What it says of tokens and cost.
    pub(crate) usage: Option<CountedUsage>,
    /// The tool calls of an answer.
    pub(crate) tool_calls: u64,
    /// What it spent in US dollars, by [`spending_of`].
    pub(crate) spent: f64,
}

/// An entry that was read, and what it adds.
pub(crate) struct ReadEntry {
    pub(crate) entry: Entry,
    pub(crate) counts: EntryCounts,
}

impl ReadEntry {
    /// Reads a line, as [`Entry::parse`]; by one look at it. With the line's place in a file, its message stays there.
    pub(crate) fn of(line: &str, place: Option<LineInFile<'_>>) -> Option<Self> {
        let Scanned { entry, message } = Entry::scan(line, place)?;
        let counts = match (entry.kind(), message) {
            (EntryKind::Message(role), Some((text, members))) => {
                EntryCounts::of_message(role, text, &members)
            }
            _ => EntryCounts::of(&entry),
        };
        Some(Self { entry, counts })
    }
}

impl From<Entry> for ReadEntry {
    fn from(entry: Entry) -> Self {
        Self { counts: EntryCounts::of(&entry), entry }
    }
}

impl EntryCounts {
    /// Those of a message, whose `text` has these members.
    pub(crate) fn of_message(role: Role, text: &str, members: &MessageMembers<'_>) -> Self {
        if !matches!(role, Role::Assistant | Role::ToolResult) {
            return Self::default();
        }
        let usage = members.usage.and_then(CountedUsage::of);
        let tool_calls = if role == Role::Assistant { members.tool_calls } else { 0 };
        let spent = if members.is_odd {
            spending_of(EntryKind::Message(role), text).map_or(0.0, |spent| spent.usage.cost.total)
        } else {
            usage.map_or(0.0, |usage| usage.cost)
        };
        Self { usage, tool_calls, spent }
    }

    /// Those of an entry.
    pub(crate) fn of(entry: &Entry) -> Self {
        match entry.kind() {
            EntryKind::Message(role) => {
                let text = entry.message().map_or("", |message| message.text());
                Self::of_message(role, text, &MessageMembers::of(text))
            }
            kind @ (EntryKind::Usage | EntryKind::Compaction | EntryKind::BranchSummary) => {
                let mut usage = None;
                each_member(entry.frame(), |key, value| {
                    if &*name(key) == "usage" {
                        usage = Some(value);
                    }
                });
                let spent = match usage {
                    Some(_) => spending_of(kind, entry.frame()).map_or(0.0, |spent| spent.usage.cost.total),
                    None => 0.0,
                };
                Self { usage: usage.and_then(CountedUsage::of), tool_calls: 0, spent }
            }
            kind @ EntryKind::Custom if entry.may_be_custom(SPENDING_ENTRY) => {
                let spent = spending_of(kind, entry.frame()).map_or(0.0, |spent| spent.usage.cost.total);
                Self { spent, ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

impl CountedUsage {
    /// Reads a `usage`; `None` for what is none.
    fn of(text: &str) -> Option<Self> {
        Self::of_plain(text)
            .or_else(|_| serde_json::from_str::<Usage>(text).map(|usage| Self::from(&usage)))
            .ok()
    }

    /// Reads one of the usual form, in a tenth of the time: members that are known and there once, whole numbers, short fractions.
    fn of_plain(text: &str) -> Result<Self, ScanFault> {
        let mut usage = Self::default();
        let mut seen = 0_u32;
        let mut cursor = JsonCursor::new(text);
        cursor.members(|key, cursor| {
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
        cursor.end()?;
        Ok(usage)
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
