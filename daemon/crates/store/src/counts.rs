//! What one entry adds to the numbers of a session, found while its line is read.

use crate::{
    Entry, EntryKind, Role,
    counted_usage::CountedUsage,
    entry::{LineInFile, MessageMembers, Scanned},
    object::{each_member, name},
    spending::{SPENDING_ENTRY, spending_of},
};

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
        let usage = members.usage.and_then(|text| members.counted.or_else(|| CountedUsage::of(text)));
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
            EntryKind::Message(role @ (Role::Assistant | Role::ToolResult)) => {
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
