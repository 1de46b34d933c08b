//! What was spent, as `agentctl usage` shows it: the request to `agentd --usage`, and its answer.

use serde::{Deserialize, Serialize};

use crate::{number, session::TokenStats};

/// What the sums are made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageGrouping {
    /// The calendar day, local time.
    #[default]
    Day,
    /// The model that answered.
    Model,
    /// The session.
    Session,
    /// The folder that the session works in.
    Project,
    /// The agent that worked: `main`, or the name of a subagent's definition.
    Agent,
}

impl UsageGrouping {
    /// The name of a flag's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Session => "session",
            Self::Project => "project",
            Self::Agent => "agent",
        }
    }
}

/// The request, a line on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageRequest {
    /// What the sums are made by.
    #[serde(default)]
    pub by: UsageGrouping,
    /// So many days count, today included; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
}

/// The answer, a line on stdout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// What the sums are made by.
    pub by: UsageGrouping,
    /// The first day that counts, such as `2026-02-03`; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The sums: days in their order, all else by cost, the dearest first.
    pub rows: Vec<UsageRow>,
    /// The sum of the rows.
    pub total: UsageSum,
    /// Session files that were looked at.
    pub files: u64,
    /// Files that cannot be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// One sum.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageRow {
    /// The day, the model as `provider/id`, the session's id, or the folder.
    pub key: String,
    /// The name of a session, else its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What was spent.
    #[serde(flatten)]
    pub sum: UsageSum,
}

/// What was spent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSum {
    /// US dollars.
    #[serde(with = "number")]
    pub cost_usd: f64,
    /// Tokens.
    pub tokens: TokenStats,
    /// Answers of models.
    pub answers: u64,
    /// Tool calls that have a result.
    pub tool_calls: u64,
    /// Sessions that spent something.
    pub sessions: u64,
}
