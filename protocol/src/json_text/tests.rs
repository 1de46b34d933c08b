use proptest::{collection::vec, prelude::*};

use super::*;

type Told<'a> = (bool, Vec<(&'a str, &'a str)>);

fn told(text: &str) -> Told<'_> {
    let mut members = Vec::new();
    (each_member(text, |name, value| members.push((name, value.as_str()))), members)
}

fn told_by_serde(text: &str) -> Told<'_> {
    let mut members = Vec::new();
    (each_member_at_any_depth(text, |name, value| members.push((name, value.as_str()))), members)
}

#[test]
fn members_are_pieces_of_the_text() {
    let text = r#" { "a" : 1.0 , "\u0062":"\ud800","c":[ 1, {"x":"}"} ] } "#;
    let (is_object, members) = told(text);
    assert!(is_object);
    assert_eq!(
        members,
        [(r#""a""#, "1.0"), (r#""\u0062""#, r#""\ud800""#), (r#""c""#, r#"[ 1, {"x":"}"} ]"#)]
    );
}

#[test]
fn what_is_no_object_is_told_apart() {
    for text in [
        "",
        "[]",
        "1",
        "null",
        "{",
        "{}x",
        r#"{"a":1"#,
        r#"{"a":1}x"#,
        r#"{"a":1,}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[1}"#,
        r#"{"a":{"b":1]}"#,
        r#"{a:1}"#,
        r#"{"a" 1}"#,
        r#"{"a":01}"#,
        r#"{"a":-}"#,
        r#"{"a":1.}"#,
        r#"{"a":1e}"#,
        r#"{"a":tru}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        r#"{"a":"\u12"}"#,
        "{\"a\":\"\n\"}",
        "{\"a\u{1}\":1}",
        "{\u{1}}",
        r#"{"a":"b}"#,
        r#"{"a":"b\"#,
    ] {
        assert!(!told(text).0, "{text}");
        assert_eq!(told(text), told_by_serde(text), "{text}");
    }
    for text in ["{}", " {\t} ", r#"{"a":{},"b":[],"":-0.1e+5,"c":[[[]],{"d":null}]}"#] {
        assert!(told(text).0, "{text}");
    }
}

#[test]
fn any_depth_is_read_and_no_member_told_of_twice() {
    for depth in [63, 64, 65, 5000] {
        let text = format!(r#"{{"first":1,"deep":{}{},"last":2}}"#, "[".repeat(depth), "]".repeat(depth));
        let (is_object, members) = told(&text);
        assert!(is_object, "{depth}");
        assert_eq!(members, told_by_serde(&text).1);
        assert_eq!(members.len(), 3);
    }
}

#[test]
fn elements_are_told_one_by_one() {
    let elements = |text: &str| {
        let (mut found, mut is_array) = (Vec::new(), false);
        each_member(text, |_, value| {
            is_array = each_element(value, |element| found.push(element.as_str().to_owned()));
        });
        (is_array, found)
    };
    let text = |found: &[&str]| found.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(elements(r#"{"a":[ 1 , {"b":[2]},"x]" ]}"#), (true, text(&["1", r#"{"b":[2]}"#, r#""x]""#])));
    assert_eq!(elements(r#"{"a":[ ]}"#), (true, Vec::new()));
    assert_eq!(elements(r#"{"a":{"b":1}}"#), (false, Vec::new()));
    assert_eq!(
        elements(&format!(r#"{{"a":[1,{}1{}]}}"#, "[".repeat(70), "]".repeat(70))),
        (false, text(&["1"]))
    );
}

#[test]
fn two_levels_are_walked_at_once() {
    let text = r#" {"a":{"b":[1,[2] , "x"],"c":{}},"d":null} "#;
    let (mut names, mut inner) = (Vec::new(), Vec::new());
    let mut cursor = JsonCursor::new(text);
    let whole = cursor.members(|name, cursor| {
        names.push(name);
        if name != r#""a""# {
            return cursor.value().map(drop);
        }
        let object = cursor.members(|name, cursor| {
            names.push(name);
            if cursor.peek() == Some(b'[') {
                let elements = cursor.elements(|cursor| {
                    inner.push(cursor.value()?.as_str());
                    Ok(())
                });
                elements.map(drop)
            } else {
                cursor.value().map(drop)
            }
        })?;
        assert_eq!(object.as_str(), r#"{"b":[1,[2] , "x"],"c":{}}"#);
        Ok(())
    });
    assert_eq!(whole.unwrap().as_str(), text.trim());
    assert_eq!(cursor.end(), Ok(()));
    assert_eq!((names, inner), (vec![r#""a""#, r#""b""#, r#""c""#, r#""d""#], vec!["1", "[2]", r#""x""#]));
    // What is not passed over is no JSON.
    assert!(JsonCursor::new(text).members(|_, _| Ok(())).is_err());
    assert_eq!(JsonCursor::new("{} x").members(|_, _| Ok(())).map(JsonText::as_str), Ok("{}"));
}

#[test]
fn a_copy_is_the_same_text() {
    each_member(r#"{"a":{"b":"\ud83d"}}"#, |_, value| assert_eq!(value.to_raw().get(), value.as_str()));
}

/// Texts that are nearly JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("\""),
        Just("\\"),
        Just("\\u00e9"),
        Just("\\n"),
        Just(" "),
        Just("\n"),
        Just("\t"),
        Just("\u{1}"),
        Just("0"),
        Just("12"),
        Just("-"),
        Just("."),
        Just("e"),
        Just("E+"),
        Just("true"),
        Just("false"),
        Just("null"),
        Just("a"),
        Just("é"),
        Just("\"a\":"),
        Just("\"some longer text, past the near bytes\""),
        Just("{\"x\":[1,2]}"),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_the_text_serde_says_the_same(text in nearly_json(), around in any::<bool>()) {
        let text = if around { format!("{{\"a\":{text}}}") } else { text };
        prop_assert_eq!(told(&text), told_by_serde(&text));
    }

    #[test]
    fn a_changed_byte_is_judged_as_by_serde(at in 0..200_usize, byte in any::<u8>()) {
        let whole = r#"{"type":"message","id":"a1","message":{"role":"user","content":[{"type":"text","text":"x \"y\" \\ \u00e9 é"}],"n":-1.5e3,"b":[true,false,null,{}]}}"#;
        let mut bytes = whole.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            prop_assert_eq!(told(&text), told_by_serde(&text));
        }
    }

    #[test]
    fn a_piece_of_json_is_judged_as_by_serde(end in 0..200_usize) {
        let whole = r#"{"type":"message","id":"a1","message":{"role":"user","content":[{"type":"text","text":"x \"y\" \\ \u00e9 é"}],"n":-1.5e3}}"#;
        if let Some(text) = whole.get(..end.min(whole.len())) {
            prop_assert_eq!(told(text), told_by_serde(text));
        }
    }
}
