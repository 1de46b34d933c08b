//! The choice of a connection among the events of its sessions.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// The most types in a filter.
pub const MAX_FILTERED_EVENTS: usize = 256;

/// The longest type in a filter, in bytes.
pub const MAX_EVENT_TYPE_BYTES: usize = 128;

/// Events that no filter leaves out: they ask something of the client, answer it, or say that it missed something.
pub const NEVER_FILTERED: &[&str] = &[
    "ready",
    "rpc_chunk",
    "rpc_frame_error",
    "extension_ui_request",
    "ui_request_resolved",
    "extension_error",
    "login_update",
    "session_opened",
    "session_changed",
    "session_activity",
    "session_closed",
    "lagged",
    "tool_request",
    "tool_cancel",
    "host_tool_call",
    "host_tool_cancel",
    "host_uri_request",
    "host_uri_cancel",
    "eval_request",
    "eval_cancel",
    "prompt_result",
    "session_settled",
    "available_commands_update",
    "subagent_lifecycle",
    "subagent_progress",
    "subagent_event",
    "isolation_merge",
];

/// The fields of `set_event_filter`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetEventFilterParams {
    /// The types of the wanted events, such as `message_end`: at most 256, of 1 to 128 bytes each; `null` for all. Types that this
    /// version does not know may be named.
    #[serde(deserialize_with = "event_types")]
    #[cfg_attr(feature = "schema", schemars(required))]
    pub events: Option<Vec<String>>,
}

/// The answer to `set_event_filter`: the filter from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventFilter {
    /// The types of the wanted events, each once; `null` for all.
    pub events: Option<Vec<String>>,
}

fn event_types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let events = Option::<Vec<String>>::deserialize(deserializer)?;
    let Some(types) = &events else { return Ok(None) };
    if types.len() > MAX_FILTERED_EVENTS {
        return Err(D::Error::custom(format!(
            "expected at most {MAX_FILTERED_EVENTS} types, got {}",
            types.len()
        )));
    }
    match types.iter().find(|name| !(1..=MAX_EVENT_TYPE_BYTES).contains(&name.len())) {
        Some(name) => Err(D::Error::custom(format!(
            "expected types of 1 to {MAX_EVENT_TYPE_BYTES} bytes, got one of {}",
            name.len()
        ))),
        None => Ok(events),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::Command, event::Event};

    #[test]
    fn a_filter_is_a_list_of_types_or_null() {
        let read = |line: &str| Command::parse("set_event_filter", line).unwrap();
        assert!(read(r#"{"events":null}"#).is_ok());
        assert!(read(r#"{"events":[]}"#).is_ok());
        assert!(read(r#"{"events":["message_end","of_tomorrow"]}"#).is_ok());
        let many = format!(r#"{{"events":{}}}"#, serde_json::json!(vec!["x"; MAX_FILTERED_EVENTS + 1]));
        for (line, says) in [
            ("{}", "Missing field \"events\""),
            (r#"{"events":"x"}"#, "expected a sequence, got"),
            (r#"{"events":[""]}"#, "1 to 128 bytes, got one of 0"),
            (many.as_str(), "at most 256 types, got 257"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_never_filtered_are_events() {
        assert!(NEVER_FILTERED.iter().all(|name| Event::NAMES.contains(name)));
    }
}
