//! Changing one member of a JSON text and nothing else: comments, order, number forms and unknown members stay.

mod items;
mod remove;
mod syntax;

use serde::Serialize as _;
use serde_json::{Serializer, Value, ser::PrettyFormatter};

use self::syntax::{members, skip_blanks, splice};
pub(crate) use self::{
    items::{append, remove_item, replace_item},
    remove::remove,
    syntax::{JsonStep, is_blank, line_of},
};
use crate::json_comments::strip;

/// Sets the member at `path` (outermost key first) of the object that `text` holds, making the objects between when they
/// are not there. `None` when the text holds no object or is broken.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Option<String> {
    let stripped = strip(text);
    let indent = Indent::of(&stripped);
    if is_blank(&stripped) {
        let member = indent.render(path, value, 1)?;
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{text}{gap}{{\n  {member}\n}}\n"));
    }
    let start = skip_blanks(stripped.as_bytes(), 0);
    set_in(text, &stripped, start, path, value, Place { depth: 1, indent: &indent })
}

/// The blanks of one level of a file.
struct Indent(String);

/// How deep an object lies in a file.
#[derive(Clone, Copy)]
struct Place<'a> {
    depth: usize,
    indent: &'a Indent,
}

/// [`set`] in the object that starts at `start`, whose members are `depth` levels deep.
fn set_in(
    text: &str,
    stripped: &str,
    start: usize,
    path: &[&str],
    value: &Value,
    place: Place<'_>,
) -> Option<String> {
    let Place { depth, indent } = place;
    let (key, below) = path.split_first()?;
    let object = members(stripped, start)?;
    // Parsers take the last of two members with the same key.
    if let Some(member) = object.members.iter().rev().find(|member| member.key == *key) {
        if !below.is_empty() && stripped.as_bytes()[member.value.start] == b'{' {
            let place = Place { depth: depth + 1, indent };
            return set_in(text, stripped, member.value.start, below, value, place);
        }
        let new = if below.is_empty() {
            indent.pretty(value, depth)?
        } else {
            indent.object_of(below, value, depth)?
        };
        return Some(splice(text, member.value.clone(), &new));
    }
    let member = indent.render(path, value, depth)?;
    match object.members.last() {
        Some(last) => {
            let gap = gap_before(stripped, last.start, place);
            Some(splice(text, last.value.end..last.value.end, &format!(",{gap}{member}")))
        }
        None => {
            let (inner, outer) = (indent.0.repeat(depth), indent.0.repeat(depth - 1));
            let inside = &text[start + 1..object.end];
            // A comment alone in the braces stays there.
            let kept =
                if inside.trim().is_empty() { String::new() } else { format!("{}\n", inside.trim_end()) };
            let lead = if kept.is_empty() { "\n" } else { "" };
            Some(splice(text, start + 1..object.end, &format!("{kept}{lead}{inner}{member}\n{outer}")))
        }
    }
}

/// The blanks between a comma and the next member: those before the member at `start`.
fn gap_before(json: &str, start: usize, place: Place<'_>) -> String {
    let before = &json[..start];
    let blanks = &before[before.trim_end_matches([' ', '\t']).len()..];
    if before.trim_end_matches([' ', '\t']).ends_with('\n') {
        return format!("\n{blanks}");
    }
    // On one line with what comes before it.
    if before[..before.len() - blanks.len()].ends_with(['{', ',']) {
        " ".into()
    } else {
        format!("\n{}", place.indent.0.repeat(place.depth))
    }
}

impl Indent {
    /// Two blanks, unless the first line that begins with a key has others before it.
    fn of(stripped: &str) -> Self {
        let first = stripped.lines().skip(1).find(|line| line.trim_start().starts_with('"'));
        let blanks = first.map(|line| &line[..line.len() - line.trim_start().len()]);
        Self(blanks.filter(|blanks| !blanks.is_empty()).unwrap_or("  ").to_owned())
    }

    /// `"key": value`, the value being what lies below the first key.
    fn render(&self, path: &[&str], value: &Value, depth: usize) -> Option<String> {
        let (key, below) = path.split_first()?;
        let value =
            if below.is_empty() { self.pretty(value, depth)? } else { self.object_of(below, value, depth)? };
        Some(format!("{}: {value}", serde_json::to_string(key).ok()?))
    }

    fn object_of(&self, path: &[&str], value: &Value, depth: usize) -> Option<String> {
        let member = self.render(path, value, depth + 1)?;
        Some(format!("{{\n{}{member}\n{}}}", self.0.repeat(depth + 1), self.0.repeat(depth)))
    }

    fn pretty(&self, value: &Value, depth: usize) -> Option<String> {
        let mut written = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.0.as_bytes());
        value.serialize(&mut Serializer::with_formatter(&mut written, formatter)).ok()?;
        let text = String::from_utf8(written).ok()?;
        Some(text.replace('\n', &format!("\n{}", self.0.repeat(depth))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::json_file::parse;

    fn check(text: &str, path: &[&str], value: Value, expected: &str) {
        assert_eq!(set(text, path, &value).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn only_the_member_changes() {
        check("", &["a"], json!(1), "{\n  \"a\": 1\n}\n");
        check("{}", &["a"], json!(1), "{\n  \"a\": 1\n}");
        check("{}\n", &["a", "b"], json!([]), "{\n  \"a\": {\n    \"b\": []\n  }\n}\n");
        check("// mine\n{ /* none */ }", &["a"], json!(1), "// mine\n{ /* none */\n  \"a\": 1\n}");
        check("// mine", &["a"], json!(1), "// mine\n{\n  \"a\": 1\n}\n");
        check("{\"x\":1.0,\"a\":2}", &["a"], json!("new"), "{\"x\":1.0,\"a\":\"new\"}");
        check("{\"x\":1.0}", &["a"], json!(1), "{\"x\":1.0, \"a\": 1}");
        check("{\n\t\"x\": 1 // one\n}", &["a"], json!(true), "{\n\t\"x\": 1,\n\t\"a\": true // one\n}");
        check("{\n  \"x\": 1,\n}", &["a"], json!(true), "{\n  \"x\": 1,\n  \"a\": true,\n}");
        check(
            "{\"c\": {\"d\": 1, \"e\": [{}]}, \"z\": 0}",
            &["c", "e"],
            json!(2),
            "{\"c\": {\"d\": 1, \"e\": 2}, \"z\": 0}",
        );
        check("{\"c\": 5}", &["c", "e"], json!(2), "{\"c\": {\n    \"e\": 2\n  }}");
        check("{\"a\":1,\"a\":2}", &["a"], json!(3), "{\"a\":1,\"a\":3}");
        check("{\"a\\u0062\":1}", &["ab"], json!(3), "{\"a\\u0062\":3}");
    }

    #[test]
    fn the_indentation_of_the_file_is_kept() {
        check(
            "{\n    \"s\": {\n        \"a\": 1\n    }\n}\n",
            &["s", "b"],
            json!({"c": [1]}),
            "{\n    \"s\": {\n        \"a\": 1,\n        \"b\": {\n            \"c\": [\n                1\n            ]\n        }\n    }\n}\n",
        );
        check(
            "{\n\t\"s\": {}\n}",
            &["s", "b"],
            json!({"c": 1}),
            "{\n\t\"s\": {\n\t\t\"b\": {\n\t\t\t\"c\": 1\n\t\t}\n\t}\n}",
        );
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "5", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":\"b"] {
            assert_eq!(set(text, &["x"], &json!(1)), None, "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\/,}é]{0,4}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_result_says_the_same_with_the_member_set(
            object in prop::collection::btree_map("[abc]", values(), 0..4), value in values(), pretty: bool, deep: bool,
        ) {
            let before = Value::Object(object.into_iter().collect());
            let text = if pretty { serde_json::to_string_pretty(&before).unwrap() } else { before.to_string() };
            let path: &[&str] = if deep { &["a", "b"] } else { &["a"] };
            let after = parse(&set(&text, path, &value).unwrap()).unwrap();
            let mut expected = before;
            if deep {
                if !expected["a"].is_object() {
                    expected["a"] = json!({});
                }
                expected["a"]["b"] = value;
            } else {
                expected["a"] = value;
            }
            prop_assert_eq!(after, expected);
        }
    }
}
