//! What an entry of a session spent: tokens, money, answers, tool calls, time.

use agentd_protocol::message::Usage;
use serde::Deserialize;

use crate::{Entry, EntryKind, Role};

/// The `customType` of entries that tell what model calls took of which no other entry tells: `{"usage": {…}}`.
pub const SPENDING_ENTRY: &str = "spending";

/// What one entry spent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spending {
    /// Tokens and their cost.
    pub usage: Usage,
    /// The provider of the model that answered; empty where the entry does not say.
    pub provider: String,
    /// The model that answered; empty where the entry does not say.
    pub model: String,
    /// Whether it is an answer of a model.
    pub is_answer: bool,
    /// Whether it is the result of a tool call.
    pub is_tool_result: bool,
    /// How long the answer or the tool call took, in milliseconds, as far as the entry says.
    pub duration_ms: u64,
}

impl Spending {
    /// All tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let Usage { input, output, cache_read, cache_write, total_tokens, .. } = &self.usage;
        let parts = [input, output, cache_read, cache_write].into_iter();
        total_tokens.to_owned().max(parts.fold(0, |sum, part| sum.saturating_add(*part)))
    }
}

/// What an entry spent; `None` for kinds that spend nothing.
#[must_use]
pub fn spending(entry: &Entry) -> Option<Spending> {
    match entry.message() {
        Some(message) => message.with_text(|text| spending_of(entry.kind(), text)),
        None => spending_of(entry.kind(), entry.frame()),
    }
}

/// What an entry of a kind spent; `None` for kinds that spend nothing. `text` is its message, or the line of an entry without one.
pub(crate) fn spending_of(kind: EntryKind, text: &str) -> Option<Spending> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Untold {
        custom_type: String,
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        usage: Usage,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spender {
        #[serde(default)]
        usage: Option<Usage>,
        #[serde(default)]
        provider: Option<String>,
        #[serde(default)]
        model: Option<String>,
        #[serde(default)]
        duration_ms: Option<f64>,
    }
    // The text, not the typed view: that would stay in memory.
    let (is_answer, is_tool_result) = match kind {
        EntryKind::Message(Role::Assistant) => (true, false),
        EntryKind::Message(Role::ToolResult) => (false, true),
        EntryKind::Usage | EntryKind::Compaction | EntryKind::BranchSummary => (false, false),
        EntryKind::Custom => {
            let untold: Untold = agentd_protocol::parse_json(text).ok()?;
            let is_ours = untold.custom_type == SPENDING_ENTRY;
            return is_ours.then(|| Spending { usage: untold.data.usage, ..Spending::default() });
        }
        _ => return None,
    };
    let Spender { usage, provider, model, duration_ms } = agentd_protocol::parse_json(text).ok()?;
    Some(Spending {
        usage: usage.unwrap_or_default(),
        provider: provider.unwrap_or_default(),
        model: model.unwrap_or_default(),
        is_answer,
        is_tool_result,
        duration_ms: duration_ms.unwrap_or_default().max(0.0) as u64,
    })
}

/// Whether an entry was made in the session whose header says that it `begun` then. One without a time was.
pub(crate) fn is_own(entry: &Entry, begun: Option<i64>) -> bool {
    begun.zip(entry.timestamp_ms()).is_none_or(|(begun, at)| at >= begun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::parse_timestamp;

    fn line(kind: &str, at: &str, body: &str) -> String {
        format!(
            r#"{{"type":"{kind}","id":"{at}{kind}","parentId":null,"timestamp":"2026-01-0{at}T00:00:00.000Z",{body}}}"#
        )
    }

    #[test]
    fn entries_that_ask_models_or_tools_spend() {
        let usage = r#""usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":99,"cost":{"total":0.5}}"#;
        let answer = format!(
            r#""message":{{"role":"assistant","provider":"p","model":"m","durationMs":7,"content":[],{usage}}}"#
        );
        let spent = spending(&Entry::parse(&line("message", "1", &answer)).unwrap()).unwrap();
        assert_eq!(
            (spent.tokens(), spent.usage.cost.total, spent.is_answer, spent.duration_ms),
            (99, 0.5, true, 7)
        );
        assert_eq!((spent.provider.as_str(), spent.model.as_str()), ("p", "m"));
        let result = r#""message":{"role":"toolResult","toolCallId":"c","content":[],"durationMs":3.0}"#;
        let spent = spending(&Entry::parse(&line("message", "1", result)).unwrap()).unwrap();
        assert_eq!((spent.is_tool_result, spent.tokens(), spent.duration_ms), (true, 0, 3));
        let compaction = format!(r#""summary":"s",{usage}"#);
        assert_eq!(
            spending(&Entry::parse(&line("compaction", "1", &compaction)).unwrap()).unwrap().tokens(),
            99
        );
        let untold = |kind: &str| format!(r#""customType":"{kind}","data":{{{usage}}}"#);
        let spent = spending(&Entry::parse(&line("custom", "1", &untold(SPENDING_ENTRY))).unwrap()).unwrap();
        assert_eq!((spent.tokens(), spent.usage.cost.total, spent.is_answer), (99, 0.5, false));
        assert_eq!(spending(&Entry::parse(&line("custom", "1", &untold("other"))).unwrap()), None);
        assert_eq!(
            spending(
                &Entry::parse(&line("message", "1", r#""message":{"role":"user","content":"x"}"#)).unwrap()
            ),
            None
        );
        assert_eq!(
            spending(
                &Entry::parse(&line("message", "1", r#""message":{"role":"assistant","usage":5}"#)).unwrap()
            ),
            None
        );
    }

    #[test]
    fn what_a_fork_took_over_is_not_its_own() {
        let begun = parse_timestamp("2026-01-02T00:00:00.000Z");
        let entry = |at: &str| Entry::parse(&line("message", at, r#""message":{"role":"user"}"#)).unwrap();
        assert_eq!([1, 2, 3].map(|day| is_own(&entry(&day.to_string()), begun)), [false, true, true]);
        assert!(is_own(&entry("1"), None));
    }
}
