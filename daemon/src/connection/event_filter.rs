//! The filter of a connection: the types of the events that it wants.
//!
//! It is a view of one connection on finished lines. What it leaves out keeps its number, so that the numbers of a client that counts
//! events have holes there; nothing is ever missing otherwise, since a lag is told by `lagged`.

use std::collections::BTreeSet;

use agentd_protocol::event_filter::NEVER_FILTERED;

/// The beginning of every event's line.
const START: &[u8] = b"{\"type\":\"";

/// The types of the events that a connection wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventTypes(BTreeSet<Box<str>>);

impl EventTypes {
    pub(super) fn of(names: Vec<String>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// The types, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|name| name.to_string()).collect()
    }

    /// Whether an event's line is written.
    pub(super) fn shows(&self, line: &[u8]) -> bool {
        let kind = line.strip_prefix(START).and_then(|rest| {
            let end = rest.iter().position(|byte| *byte == b'"')?;
            std::str::from_utf8(&rest[..end]).ok()
        });
        kind.is_none_or(|kind| self.0.contains(kind) || NEVER_FILTERED.contains(&kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_by_its_type() {
        let types = EventTypes::of(vec!["message_end".into(), "agent_end".into(), "agent_end".into()]);
        assert_eq!(types.names(), ["agent_end", "message_end"]);
        for (line, shown) in [
            (r#"{"type":"message_end","message":{}}"#, true),
            (r#"{"type":"message_update","type2":"message_end"}"#, false),
            (r#"{"type":"message_end_x"}"#, false),
            (r#"{"type":"extension_ui_request","id":"1"}"#, true),
            (r#"{"type":"lagged","fromSeq":3}"#, true),
        ] {
            assert_eq!(types.shows(line.as_bytes()), shown, "{line}");
        }
        assert!(!EventTypes::of(Vec::new()).shows(br#"{"type":"message_end"}"#));
    }
}
