//! The arguments of tools in the spelling of Claude Code, and back. What has no counterpart is passed on as it is. Pure.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::dialect::claude_names;

/// Members that have another name in Claude Code, by tool: the own name, and theirs.
const MEMBERS: [(&str, &[(&str, &str)]); 8] = [
    ("read", &[("path", "file_path")]),
    ("write", &[("path", "file_path")]),
    ("edit", &[("path", "file_path")]),
    ("bash", &[("background", "run_in_background")]),
    ("grep", &[("ignoreCase", "-i"), ("context", "-C"), ("limit", "head_limit")]),
    ("todo", &[]),
    ("task", &[]),
    ("lsp", &[("file", "filePath")]),
];

/// Members that hold the path of a file or a folder: absolute in Claude Code.
const PATHS: [&str; 3] = ["path", "file_path", "filePath"];

/// The members of one change of `edit`: the own names, and theirs.
const EDIT: [(&str, &str); 2] = [("oldText", "old_string"), ("newText", "new_string")];

/// Milliseconds of a second: timeouts of `bash` are seconds here, and milliseconds there.
const MILLIS: f64 = 1000.0;

/// A call in the spelling of Claude Code: the name of the tool and its arguments.
pub(crate) fn to_claude(tool: &str, arguments: &Value, cwd: &Path) -> (String, Value) {
    let name = claude_names(tool).first().copied().unwrap_or(tool);
    let Value::Object(own) = arguments else { return (name.to_owned(), arguments.clone()) };
    let mut theirs = Map::new();
    for (key, value) in own {
        match (tool, key.as_str(), value) {
            ("edit", "edits", Value::Array(edits)) => {
                let edits: Vec<Value> = edits.iter().map(|edit| renamed(edit, &EDIT, Way::There)).collect();
                if let [Value::Object(edit)] = edits.as_slice() {
                    theirs.extend(edit.clone());
                } else {
                    theirs.insert("edits".to_owned(), edits.into());
                }
            }
            ("bash", "timeout", value) => {
                theirs.insert(key.clone(), scaled(value, MILLIS));
            }
            _ => {
                theirs.insert(member(tool, key, Way::There).to_owned(), value.clone());
            }
        }
    }
    for key in PATHS {
        if let Some(Value::String(path)) = theirs.get_mut(key)
            && !claude_names(tool).is_empty()
            && !path.starts_with(['/', '~', '@'])
            && !path.contains("://")
        {
            *path = cwd.join(&*path).display().to_string();
        }
    }
    // Several changes at once are another tool there.
    let is_several = tool == "edit" && theirs.contains_key("edits");
    let name = if is_several { "MultiEdit" } else { name };
    (name.to_owned(), Value::Object(theirs))
}

/// Arguments in the spelling of Claude Code, or already in the own one, as the tool takes them.
pub(crate) fn to_own(tool: &str, theirs: Map<String, Value>) -> Map<String, Value> {
    let mut own = Map::new();
    let mut edit = Map::new();
    for (key, value) in theirs {
        match (tool, key.as_str(), value) {
            ("edit", "old_string" | "new_string", value) => {
                let key = if key == "old_string" { "oldText" } else { "newText" };
                edit.insert(key.to_owned(), value);
            }
            ("edit", "edits", Value::Array(edits)) => {
                let edits: Vec<Value> = edits.iter().map(|edit| renamed(edit, &EDIT, Way::Back)).collect();
                own.insert(key, edits.into());
            }
            ("bash", "timeout", value) => {
                own.insert(key, scaled(&value, 1.0 / MILLIS));
            }
            (_, _, value) => {
                own.insert(member(tool, &key, Way::Back).to_owned(), value);
            }
        }
    }
    if !edit.is_empty() {
        own.entry("edits").or_insert_with(|| json!([edit]));
    }
    own
}

#[derive(Clone, Copy)]
enum Way {
    There,
    Back,
}

fn member<'a>(tool: &str, key: &'a str, way: Way) -> &'a str {
    let pairs = MEMBERS.iter().find(|(of, _)| *of == tool).map_or(&[][..], |(_, pairs)| pairs);
    other_name(key, pairs, way)
}

fn other_name<'a>(key: &'a str, pairs: &[(&'static str, &'static str)], way: Way) -> &'a str {
    let found = pairs.iter().find_map(|(own, theirs)| match way {
        Way::There => (key == *own).then_some(*theirs),
        Way::Back => (key == *theirs).then_some(*own),
    });
    found.unwrap_or(key)
}

fn renamed(value: &Value, pairs: &[(&'static str, &'static str)], way: Way) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (other_name(key, pairs, way).to_owned(), value.clone()))
            .collect(),
        other => other.clone(),
    }
}

/// A number times another; whole numbers stay whole where they can.
fn scaled(value: &Value, by: f64) -> Value {
    let Some(number) = value.as_f64() else { return value.clone() };
    let number = number * by;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(tool: &str, own: Value, name: &str, theirs: Value) {
        assert_eq!(to_claude(tool, &own, Path::new("/w")), (name.to_owned(), theirs.clone()));
        let Value::Object(theirs) = theirs else { panic!() };
        assert_eq!(Value::Object(to_own(tool, theirs)), own);
    }

    #[test]
    fn calls_are_spelled_as_in_claude_code() {
        check("read", json!({"path": "/w/a", "limit": 5}), "Read", json!({"file_path": "/w/a", "limit": 5}));
        check(
            "write",
            json!({"path": "/a", "content": "x"}),
            "Write",
            json!({"file_path": "/a", "content": "x"}),
        );
        check(
            "edit",
            json!({"path": "/a", "edits": [{"oldText": "x", "newText": "y"}]}),
            "Edit",
            json!({"file_path": "/a", "old_string": "x", "new_string": "y"}),
        );
        check(
            "edit",
            json!({"path": "/a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "1", "newText": "2"}]}),
            "MultiEdit",
            json!({"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y"}, {"old_string": "1", "new_string": "2"}]}),
        );
        check(
            "bash",
            json!({"command": "ls", "timeout": 2.5}),
            "Bash",
            json!({"command": "ls", "timeout": 2500}),
        );
        check(
            "grep",
            json!({"pattern": "x", "ignoreCase": true, "context": 2}),
            "Grep",
            json!({"pattern": "x", "-i": true, "-C": 2}),
        );
        check(
            "find",
            json!({"pattern": "*.rs", "path": "/w/src"}),
            "Glob",
            json!({"pattern": "*.rs", "path": "/w/src"}),
        );
        check("mcp__s__t", json!({"path": "a"}), "mcp__s__t", json!({"path": "a"}));
    }

    #[test]
    fn paths_are_absolute_there() {
        let path =
            |path: &str| to_claude("read", &json!({ "path": path }), Path::new("/w")).1["file_path"].clone();
        assert_eq!(path("src/a"), "/w/src/a");
        assert_eq!(path("~/a"), "~/a");
        assert_eq!(path("mcp://s/a"), "mcp://s/a");
    }

    #[test]
    fn what_a_hook_answers_may_have_either_spelling() {
        let own = |tool, value: Value| {
            let Value::Object(members) = value else { panic!() };
            Value::Object(to_own(tool, members))
        };
        assert_eq!(
            own("write", json!({"path": "/a", "content": "x"})),
            json!({"path": "/a", "content": "x"})
        );
        assert_eq!(
            own("edit", json!({"path": "/a", "edits": [{"oldText": "x", "newText": "y"}]})),
            json!({"path": "/a", "edits": [{"oldText": "x", "newText": "y"}]})
        );
    }

    fn edits() -> impl Strategy<Value = Value> {
        prop::collection::vec(("\\PC{0,5}", "\\PC{0,5}"), 1..4).prop_map(|edits| {
            let edit = |(old, new): (String, String)| json!({"oldText": old, "newText": new});
            json!({"path": "/p", "edits": edits.into_iter().map(edit).collect::<Vec<_>>()})
        })
    }

    proptest! {
        #[test]
        fn edits_come_back_as_they_went(arguments in edits()) {
            let (_, Value::Object(theirs)) = to_claude("edit", &arguments, Path::new("/w")) else { panic!() };
            prop_assert_eq!(Value::Object(to_own("edit", theirs)), arguments);
        }

        #[test]
        fn flat_arguments_come_back_as_they_went(
            tool in prop::sample::select(vec!["read", "write", "bash", "grep", "find", "ls", "mcp__a__b"]),
            members in prop::collection::btree_map("(path|content|limit|command|ignoreCase|glob|[a-z]{1,6})", 0..10_000_i64, 0..6),
        ) {
            let arguments = json!(members);
            let (_, Value::Object(theirs)) = to_claude(tool, &arguments, Path::new("/w")) else { panic!() };
            prop_assert_eq!(Value::Object(to_own(tool, theirs)), arguments);
        }
    }
}
