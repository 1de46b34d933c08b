//! The event that nearly all events of an answer are, without the reader of all events, which takes five times as long.

use agentd_protocol::json_text::{JsonCursor, ScanFault};

use super::api_types::BlockDelta;
use crate::partial_json::read_string;

/// The number of the block and the addition to it, of an event that says nothing else; `None` for any other event.
pub(super) fn usual_delta(data: &str) -> Option<(u64, BlockDelta<'_>)> {
    let (mut is_addition, mut number, mut delta) = (false, None, None);
    let mut cursor = JsonCursor::new(data);
    let members = cursor.members(|name, cursor| {
        match name {
            r#""type""# if !is_addition => {
                is_addition = cursor.value()?.as_str() == r#""content_block_delta""#;
                is_addition.then_some(()).ok_or(ScanFault::NoJson)?;
            }
            r#""index""# if number.is_none() => number = Some(block_number(cursor.value()?.as_str())?),
            r#""delta""# if delta.is_none() => delta = Some(addition(cursor)?),
            _ => return Err(ScanFault::NoJson),
        }
        Ok(())
    });
    members.and_then(|_| cursor.end()).ok()?;
    Some((number?, delta?)).filter(|_| is_addition)
}

fn block_number(value: &str) -> Result<u64, ScanFault> {
    let is_plain = value.len() <= 3 && value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| is_plain).ok_or(ScanFault::NoJson)
}

/// Goes behind an addition of text.
fn addition<'a>(cursor: &mut JsonCursor<'a>) -> Result<BlockDelta<'a>, ScanFault> {
    let (mut name, mut added) = (None, None);
    cursor.members(|member, cursor| {
        let value = cursor.value()?.as_str();
        match member {
            r#""type""# if name.is_none() => name = Some(value),
            r#""text""# | r#""thinking""# | r#""partial_json""#
                if added.is_none() && value.starts_with('"') =>
            {
                added = Some((member, value, cursor.may_have_escapes()));
            }
            _ => return Err(ScanFault::NoJson),
        }
        Ok(())
    })?;
    let (Some(name), Some((member, value, may_have_escapes))) = (name, added) else {
        return Err(ScanFault::NoJson);
    };
    let text =
        if may_have_escapes { read_string(value) } else { value.get(1..value.len() - 1).map(str::to_owned) };
    let text = Some(text.ok_or(ScanFault::NoJson)?);
    Ok(match (name, member) {
        (r#""text_delta""#, r#""text""#) => BlockDelta { kind: "text_delta", text, ..BlockDelta::default() },
        (r#""thinking_delta""#, r#""thinking""#) => {
            BlockDelta { kind: "thinking_delta", thinking: text, ..BlockDelta::default() }
        }
        (r#""input_json_delta""#, r#""partial_json""#) => {
            BlockDelta { kind: "input_json_delta", partial_json: text, ..BlockDelta::default() }
        }
        _ => return Err(ScanFault::NoJson),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::providers::anthropic_messages::api_types::{StreamEvent, is_error};

    /// What an event adds: the block, the kind, the text.
    type Added = (u64, String, Option<String>);

    fn added((number, delta): (u64, BlockDelta<'_>)) -> Added {
        assert!(delta.signature.is_none() && delta.stop_reason.is_none() && delta.stop_details.is_none());
        let texts = [delta.text, delta.thinking, delta.partial_json];
        let [text, None] = [0, 1].map({
            let mut there = texts.into_iter().flatten();
            move |_| there.next()
        }) else {
            panic!("more than one text")
        };
        (number, delta.kind.to_owned(), text)
    }

    /// By the reader of all events.
    fn read(data: &str) -> Added {
        let event: StreamEvent<'_> = serde_json::from_str(data).unwrap();
        assert_eq!((event.kind, is_error(event.error)), ("content_block_delta", false));
        added((event.index.unwrap_or(0), event.delta.unwrap()))
    }

    const KINDS: [(&str, &str); 3] =
        [("text_delta", "text"), ("thinking_delta", "thinking"), ("input_json_delta", "partial_json")];

    /// Pieces of which events may be made.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            r#"{"type":"content_block_delta","index":"#,
            r#"{ "delta":{"text":"a","type":"text_delta"}, "index": "#,
            r#","type":"content_block_delta""#,
            "0",
            "12",
            "01",
            "-1",
            "\"3\"",
            r#","delta":{"type":""#,
            r#"text_delta","text":"#,
            r#"thinking_delta","thinking":"#,
            r#"input_json_delta","partial_json":"#,
            r#"signature_delta","signature":"#,
            "\"a\"",
            r#""\u00e4 \ud83d""#,
            "\"\n\"",
            "null",
            "}",
            " ",
            "}",
            ",",
        ]);
        prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn additions_of_any_text_are_read(text in ".*", ascii in "[\x00-\x7f]*", number in 0..1_000_u64, kind in 0..3_usize) {
            let (name, member) = KINDS[kind];
            for text in [text, ascii] {
                let delta = json!({"type": name, member: text});
                let data = json!({"type": "content_block_delta", "index": number, "delta": delta}).to_string();
                let found = usual_delta(&data).map(added).unwrap();
                prop_assert_eq!(&found, &(number, name.to_owned(), Some(text)));
                prop_assert_eq!(found, read(&data));
            }
        }

        #[test]
        fn what_is_taken_is_what_a_reader_of_json_takes(data in pieces()) {
            if let Some(found) = usual_delta(&data) {
                prop_assert_eq!(added(found), read(&data));
            }
        }
    }

    #[test]
    fn the_usual_form_is_what_the_api_writes() {
        let padded =
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hel\"lo"}   }"#;
        let read = usual_delta(padded).map(added);
        assert_eq!(read, Some((1, "text_delta".to_owned(), Some("Hel\"lo".to_owned()))));
        let sorted =
            r#"{"delta": {"text": "a", "type": "text_delta"}, "index": 0, "type": "content_block_delta"}"#;
        assert_eq!(usual_delta(sorted).map(added), Some((0, "text_delta".to_owned(), Some("a".to_owned()))));
        for other in [
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"},"error":{}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a","text":"b"}}"#,
            r#"{"type":"content_block_delta","index":1}"#,
            r#"{"index":1,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":01,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":["a"]}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}} }"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"#,
        ] {
            assert!(usual_delta(other).is_none(), "{other}");
        }
    }
}
