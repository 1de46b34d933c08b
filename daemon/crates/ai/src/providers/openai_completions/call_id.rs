//! Makes tool call ids of other models legal here.

use crate::handoff::call_id::{hash, sanitized};

/// The longest id that OpenAI takes, in bytes.
const MAX_ID: usize = 40;

/// The longest id that others are given.
const MAX_ELSEWHERE: usize = 64;

/// An id for this API. Ids of the form `call|item` (another API's) become one word; long ones keep their beginning and
/// get a hash, so that equal ids stay equal and different ones different.
pub(super) fn normalized(id: &str, provider: &str) -> String {
    if let Some((call, item)) = id.split_once('|') {
        let joined = match item {
            "" => sanitized(call),
            item => format!("{}_{}", sanitized(call), sanitized(item)),
        };
        if joined.len() <= MAX_ID {
            return joined;
        }
        let mut prefix = sanitized(call);
        prefix.truncate(MAX_ID - 9);
        return format!("{prefix}_{}", hash(id));
    }
    let mut legal = sanitized(id);
    if provider == "openai" {
        // Only ASCII is left, so every place is a boundary.
        legal.truncate(MAX_ID);
    } else if legal.len() > MAX_ELSEWHERE {
        legal.truncate(MAX_ELSEWHERE - 9);
        legal = format!("{legal}_{}", hash(id));
    }
    if legal.is_empty() { format!("call_{}", hash(id)) } else { legal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_apis_become_one_word() {
        assert_eq!(normalized("call_1|fc_2", "x"), "call_1_fc_2");
        assert_eq!(normalized("call/1|fc.2", "x"), "call_1_fc_2");
        assert_eq!(normalized("call_1|", "x"), "call_1");
        let long = format!("call_abc|fc_{}", "x".repeat(60));
        let id = normalized(&long, "x");
        assert!(id.starts_with("call_abc_") && id.len() == 17, "{id}");
        assert_eq!(id, normalized(&long, "x"));
        assert_ne!(id, normalized(&format!("{long}y"), "x"));
        assert_eq!(normalized(&format!("{}|y", "c".repeat(60)), "x").len(), 40);
    }

    #[test]
    fn other_ids_stay() {
        let long = "a".repeat(50);
        assert_eq!(normalized(&long, "local"), long);
        assert_eq!(normalized(&long, "openai").len(), 40);
        assert_eq!(normalized("call_1", "openai"), "call_1");
    }

    #[test]
    fn what_servers_refuse_is_replaced() {
        assert_eq!(normalized("a b.\u{fc}", "local"), "a_b__");
        assert_eq!(normalized(&"a".repeat(70), "local").len(), 64);
        assert_ne!(normalized(&"a".repeat(70), "local"), normalized(&"a".repeat(71), "local"));
        assert!(normalized("", "local").starts_with("call_") && normalized("", "openai").len() > 5);
    }
}
