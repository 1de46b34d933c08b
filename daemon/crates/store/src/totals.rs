//! Sums over the entries of a session. Pure.

use agentd_protocol::session::TokenStats;

use crate::{EntryKind, Role, counts::EntryCounts};

/// Sums over the entries of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionTotals {
    /// User messages.
    pub user_messages: u64,
    /// Answers.
    pub assistant_messages: u64,
    /// Tool calls in the answers.
    pub tool_calls: u64,
    /// Tool results.
    pub tool_results: u64,
    /// Messages of every role.
    pub total_messages: u64,
    /// Tokens of answers, tools, summaries and whatever else was noted.
    pub tokens: TokenStats,
    /// US dollars.
    pub cost: f64,
}

impl SessionTotals {
    /// Adds an entry of a kind.
    pub(crate) fn add(&mut self, kind: EntryKind, counts: &EntryCounts) {
        if let EntryKind::Message(role) = kind {
            self.total_messages += 1;
            match role {
                Role::User => self.user_messages += 1,
                Role::Assistant => self.assistant_messages += 1,
                Role::ToolResult => self.tool_results += 1,
                _ => {}
            }
        }
        self.tool_calls += counts.tool_calls;
        let Some(usage) = counts.usage else { return };
        let tokens = &mut self.tokens;
        tokens.input += usage.input;
        tokens.output += usage.output;
        tokens.cache_read += usage.cache_read;
        tokens.cache_write += usage.cache_write;
        tokens.total += usage.input + usage.output + usage.cache_read + usage.cache_write;
        self.cost += usage.cost;
    }
}
