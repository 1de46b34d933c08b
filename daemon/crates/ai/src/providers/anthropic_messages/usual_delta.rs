//! The event that nearly all events of an answer are, read by its text: as JSON it takes five times as long.

use agentd_protocol::json_text::JsonCursor;

use super::api_types::BlockDelta;
use crate::partial_json::read_string;

/// The number of the block and the addition to it, of an event as the API writes it; `None` for any other.
pub(super) fn usual_delta(data: &str) -> Option<(u64, BlockDelta<'_>)> {
    let rest = data.strip_prefix(r#"{"type":"content_block_delta","index":"#)?;
    let (number, rest) = rest.split_once(',')?;
    // JSON has no leading zeros and no plus sign.
    let is_number = number.len() <= 3
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (number.len() == 1 || !number.starts_with('0'));
    let number = number.parse().ok().filter(|_| is_number)?;
    let rest = rest.strip_prefix(r#""delta":{"type":""#)?;
    let (kind, rest) = KINDS.iter().find_map(|kind| Some((kind, rest.strip_prefix(kind.before_text)?)))?;
    if !rest.starts_with('"') {
        return None;
    }
    let mut cursor = JsonCursor::new(rest);
    let text = cursor.value().ok()?.as_str();
    // The API pads its events with spaces.
    let end = rest.get(text.len()..)?.strip_prefix('}')?.trim_start_matches(' ');
    if end != "}" {
        return None;
    }
    let text =
        if cursor.may_have_escapes() { read_string(text)? } else { text[1..text.len() - 1].to_owned() };
    let mut delta = BlockDelta { kind: kind.name, ..BlockDelta::default() };
    match kind.name {
        "text_delta" => delta.text = Some(text),
        "thinking_delta" => delta.thinking = Some(text),
        _ => delta.partial_json = Some(text),
    }
    Some((number, delta))
}

/// A kind of addition.
struct Kind {
    name: &'static str,
    /// What stands between `"type":"` and the added text.
    before_text: &'static str,
}

const KINDS: &[Kind] = &[
    Kind { name: "text_delta", before_text: r#"text_delta","text":"# },
    Kind { name: "thinking_delta", before_text: r#"thinking_delta","thinking":"# },
    Kind { name: "input_json_delta", before_text: r#"input_json_delta","partial_json":"# },
];

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

    /// Pieces of which events may be made.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            r#"{"type":"content_block_delta","index":"#,
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
            let kind = &KINDS[kind];
            let member = kind.before_text.split('"').nth(2).unwrap();
            for text in [text, ascii] {
                let delta = json!({"type": kind.name, member: text});
                let data = json!({"type": "content_block_delta", "index": number, "delta": delta}).to_string();
                let found = usual_delta(&data).map(added).unwrap();
                prop_assert_eq!(&found, &(number, kind.name.to_owned(), Some(text)));
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
        for other in [
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"},"error":{}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a","text":"b"}}"#,
            r#"{"type":"content_block_delta","index":01,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":["a"]}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}} }"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"#,
        ] {
            assert!(usual_delta(other).is_none(), "{other}");
        }
    }
}
