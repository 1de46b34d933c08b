//! The lines of deltas, which are most lines of all: put together from their pieces, at a fifth of what a serializer takes.

use std::io::Write as _;

use super::{AssistantMessageEvent, Event, MessageUpdate};

impl Event {
    /// Appends the line of the event, without LF: the same bytes as its serialization.
    ///
    /// # Errors
    /// As serialization: only for types that JSON cannot represent.
    pub fn write_line(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match self {
            Self::MessageUpdate(update) => write_update(update, out),
            event => serde_json::to_writer(out, event),
        }
    }
}

fn write_update(update: &MessageUpdate, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    out.extend_from_slice(br#"{"type":"message_update","usage":"#);
    out.extend_from_slice(update.usage.text().as_bytes());
    out.extend_from_slice(br#","assistantMessageEvent":"#);
    match &update.assistant_message_event {
        AssistantMessageEvent::TextDelta { content_index, delta } => {
            write_delta("text_delta", *content_index, delta, out)?;
        }
        AssistantMessageEvent::ThinkingDelta { content_index, delta } => {
            write_delta("thinking_delta", *content_index, delta, out)?;
        }
        AssistantMessageEvent::ToolcallDelta { content_index, delta } => {
            write_delta("toolcall_delta", *content_index, delta, out)?;
        }
        seldom => serde_json::to_writer(&mut *out, seldom)?,
    }
    out.push(b'}');
    Ok(())
}

fn write_delta(kind: &str, index: usize, delta: &str, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(br#"","contentIndex":"#);
    match u8::try_from(index) {
        Ok(digit @ 0..10) => out.push(b'0' + digit),
        _ => write!(out, "{index}").map_err(serde_json::Error::io)?,
    }
    out.extend_from_slice(br#","delta":"#);
    if delta.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..b' ')) {
        serde_json::to_writer(&mut *out, delta)?;
    } else {
        out.push(b'"');
        out.extend_from_slice(delta.as_bytes());
        out.push(b'"');
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{json, value::RawValue};

    use super::*;
    use crate::{
        Json,
        event::{AgentStart, ToolCallBlock},
        message::ToolCall,
    };

    fn addition() -> impl Strategy<Value = AssistantMessageEvent> {
        use AssistantMessageEvent as Added;
        let index = prop_oneof![0..12_usize, any::<usize>()];
        let text = prop_oneof![".*", "[\\x00-\\x7f]*", "[a-z \"\\\\]*"];
        (0..9, index, text).prop_map(|(kind, content_index, text)| match kind {
            0 => Added::TextStart { content_index },
            1 => Added::TextDelta { content_index, delta: text },
            2 => Added::TextEnd { content_index, content: text },
            3 => Added::ThinkingStart { content_index },
            4 => Added::ThinkingDelta { content_index, delta: text },
            5 => Added::ThinkingEnd { content_index, content: text },
            6 => Added::ToolcallStart { content_index, id: text.clone(), tool_name: text },
            7 => Added::ToolcallDelta { content_index, delta: text },
            _ => {
                let call = json!({"id": text, "name": text, "arguments": {}});
                let call: ToolCall = serde_json::from_value(call).unwrap();
                Added::ToolcallEnd { content_index, tool_call: ToolCallBlock::ToolCall(call) }
            }
        })
    }

    fn check(event: &Event) {
        let mut line = b"before ".to_vec();
        event.write_line(&mut line).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line, format!("before {}", serde_json::to_string(event).unwrap()));
    }

    proptest! {
        #[test]
        fn a_line_is_the_serialization(addition in addition(), usage in "[a-z ]{0,9}") {
            let usage = RawValue::from_string(format!("{{\"input\":1.0,\"{usage}\":null}}")).unwrap();
            check(&MessageUpdate { usage: Json::from_raw(usage), assistant_message_event: addition }.into());
        }
    }

    #[test]
    fn other_events_are_serialized() {
        check(&AgentStart {}.into());
    }
}
