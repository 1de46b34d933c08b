use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(text: &str, expected: Value) {
    assert_eq!(parse_arguments(text).map(Value::Object).unwrap(), expected, "{text}");
}

fn check_error(text: &str, expected: &str) {
    let error = parse_arguments(text).unwrap_err().to_string();
    assert!(error.contains(expected), "{text}: {error}");
}

fn check_cut(text: &str, expected: Value) {
    assert_eq!(Value::Object(best_reading(text)), expected, "{text}");
}

#[test]
fn valid_arguments_are_taken_exactly() {
    check("", json!({}));
    check("  \n", json!({}));
    check(r#"{"b":1.0,"a":[1.5,-2.0]}"#, json!({"b": 1, "a": [1.5, -2]}));
    let map = parse_arguments(r#"{"z":1,"a":2,"m":3}"#).unwrap();
    assert_eq!(map.keys().collect::<Vec<_>>(), ["z", "a", "m"]);
}

#[test]
fn slips_of_models_are_mended() {
    check("{\"a\":\"one\ntwo\tthree\"}", json!({"a": "one\ntwo\tthree"}));
    check(r#"{"a":"C:\path\new"}"#, json!({"a": "C:\\path\new"}));
    check(r#"{"a":"\d+\.\w \x41"}"#, json!({"a": "\\d+\\.\\w \\x41"}));
    check(r#"{"a":"\u12 \uZZZZ"}"#, json!({"a": "\\u12 \\uZZZZ"}));
    check(r#"{"a":"x\ud800y"}"#, json!({"a": "x\u{fffd}y"}));
    check(r#"{"a":"\udc00\ud83d\ude00\ud83d"}"#, json!({"a": "\u{fffd}😀\u{fffd}"}));
    check(r#"{"a":"\ud83d\u0041"}"#, json!({"a": "\u{fffd}A"}));
    check("```json\n{\"a\":1}\n```", json!({"a": 1}));
    check(r#""{\"a\":1}""#, json!({"a": 1}));
    check(r#"{"a":1e999,"b":"\p"}"#, json!({"a": null, "b": "\\p"}));
}

#[test]
fn what_cannot_be_read_says_why() {
    check_error(r#"{"command":"rm -rf /tmp/x"#, "breaks off");
    check_error(r#"{"a":1"#, "breaks off");
    check_error(r#"{"a" 1}"#, "unexpected text at byte 5");
    check_error(r#"{"a":1}}"#, "unexpected text at byte 7");
    check_error("[1]", "an array");
    check_error("null", "null");
    check_error("12", "a number");
    check_error("hello", "\n\nReceived arguments:\nhello");
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    check_error(&deep, "nested deeper");
    let long = parse_arguments(&"x".repeat(5000)).unwrap_err().to_string();
    assert!(long.chars().count() < 300, "{long}");
}

#[test]
fn cut_arguments_are_read_as_far_as_they_go() {
    check_cut("", json!({}));
    check_cut("{", json!({}));
    check_cut(r#"{"pa"#, json!({}));
    check_cut(r#"{"path""#, json!({}));
    check_cut(r#"{"path":"#, json!({}));
    check_cut(r#"{"path":"/tm"#, json!({"path": "/tm"}));
    check_cut(r#"{"path":"a\"#, json!({"path": "a"}));
    check_cut(r#"{"path":"a\u00"#, json!({"path": "a"}));
    check_cut(r#"{"n":1,"m":-"#, json!({"n": 1}));
    check_cut(r#"{"n":1.5e"#, json!({"n": 1.5}));
    check_cut(r#"{"n":tr"#, json!({"n": true}));
    check_cut(r#"{"l":[1,{"a":nu"#, json!({"l": [1, {"a": null}]}));
    check_cut("plain text", json!({}));
    check_cut("```json\n{\"a\":\"b", json!({"a": "b"}));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6).prop_map(|float: f64| Value::from(float + 0.5)),
        "\\PC*".prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((".{0,6}", any_json()), 0..6)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    #[test]
    fn whole_objects_are_read_exactly_by_both_readers(value in any_object()) {
        let text = value.to_string();
        let mut expected = value;
        number::normalize(&mut expected);
        prop_assert_eq!(Value::Object(parse_arguments(&text).unwrap()), expected.clone());
        prop_assert_eq!(Value::Object(best_reading(&text)), expected.clone());
        let (read, stop) = Reader::new(&text).read();
        prop_assert_eq!(stop, Stop::Complete);
        let mut read = read.unwrap();
        number::normalize(&mut read);
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn any_cut_of_an_object_is_an_object_with_its_first_members(value in any_object(), at in 0.0..1.0) {
        let text = value.to_string();
        let end = text.floor_char_boundary((text.len() as f64 * at) as usize);
        let read = best_reading(&text[..end]);
        let whole = best_reading(&text);
        // Every member but the last one is complete.
        let complete = read.len().saturating_sub(1);
        for ((name, value), (whole_name, whole_value)) in read.iter().zip(&whole).take(complete) {
            prop_assert_eq!(name, whole_name);
            prop_assert_eq!(value, whole_value);
        }
        prop_assert!(read.len() <= whole.len());
        if end < text.len() {
            prop_assert!(parse_arguments(&text[..end]).is_err() || end == 0);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in ".*") {
        let _ = best_reading(&text);
        let _ = parse_arguments(&text);
        let _ = best_reading(&format!("{{\"a\":{text}"));
    }
}
