//! Ids of tool calls. A transcript has `call|item`: what results refer to, and what the call itself is called.

use crate::handoff::call_id::{hash, sanitized};

/// The longest id that OpenAI takes, in bytes.
pub(super) const MAX_ID: usize = 64;

/// The id of another model's call for this API. The item is not the provider's own, so it gets a name of its own kind.
pub(super) fn normalized(id: &str) -> String {
    match id.split_once('|') {
        Some((call, item)) => format!("{}|fc_{}", shortened(call), hash(item)),
        None => shortened(id),
    }
}

/// Both parts of an id.
pub(super) fn split(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item).filter(|item| !item.is_empty())),
        None => (id, None),
    }
}

/// Whether a call may be sent under this id of an item: the API takes no other kind of it.
pub(super) fn is_item_id(id: &str) -> bool {
    id.len() <= MAX_ID && id.starts_with("fc") && sanitized(id) == id
}

/// Legal characters only, and few enough; different ids stay different.
fn shortened(part: &str) -> String {
    let mut legal = sanitized(part);
    if legal.is_empty() {
        return format!("call_{}", hash(part));
    }
    if legal.len() > MAX_ID {
        legal.truncate(MAX_ID - 9);
        legal = format!("{legal}_{}", hash(part));
    }
    legal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_models_become_legal() {
        assert_eq!(normalized("call_1"), "call_1");
        assert_eq!(normalized("toolu/1:x"), "toolu_1_x");
        assert_eq!(normalized(""), format!("call_{}", hash("")));
        let item = normalized("call.1|fc_abc");
        assert_eq!(item, format!("call_1|fc_{}", hash("fc_abc")));
        assert!(is_item_id(split(&item).1.unwrap()));
        let long = "é".repeat(80);
        assert_eq!(normalized(&long).len(), MAX_ID);
        assert_ne!(normalized(&long), normalized(&format!("{long}x")));
        assert_eq!(normalized(&"a".repeat(MAX_ID)), "a".repeat(MAX_ID));
    }

    #[test]
    fn ids_have_two_parts() {
        assert_eq!(split("a|b|c"), ("a", Some("b|c")));
        assert_eq!(split("a|"), ("a", None));
        assert_eq!(split("a"), ("a", None));
        assert!(is_item_id("fc-1") && !is_item_id("call_1") && !is_item_id("fc 1"));
    }
}
