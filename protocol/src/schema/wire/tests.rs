use std::sync::LazyLock;

use super::*;

static WIRE: LazyLock<Value> = LazyLock::new(wire);

fn types() -> &'static Map<String, Value> {
    WIRE["$defs"].as_object().unwrap()
}

/// Every schema within a schema, itself included.
fn parts(schema: &Value) -> Vec<&Value> {
    let mut all = vec![schema];
    for list in ["anyOf", "allOf"] {
        all.extend(schema[list].as_array().into_iter().flatten().flat_map(parts));
    }
    all.extend(schema["properties"].as_object().into_iter().flatten().flat_map(|(_, part)| parts(part)));
    for one in ["items", "additionalProperties"] {
        all.extend(schema.get(one).into_iter().flat_map(parts));
    }
    all
}

/// The named objects of a union, through unions within it.
fn members(name: &str) -> Vec<&'static Value> {
    let schema = &types()[name];
    match schema["anyOf"].as_array() {
        Some(list) => list.iter().flat_map(|member| members(definition(member).unwrap())).collect(),
        None => vec![schema],
    }
}

#[test]
fn every_reference_has_its_type() {
    for (name, schema) in types() {
        for target in parts(schema).into_iter().filter_map(definition) {
            assert!(types().contains_key(target), "{name} refers to {target}");
        }
    }
}

#[test]
fn there_is_a_type_for_every_command_response_and_event() {
    let constants = |name: &str, field: &str| -> Vec<&str> {
        members(name).into_iter().filter_map(|schema| schema["properties"][field]["const"].as_str()).collect()
    };
    assert_eq!(constants("Command", "type"), Command::NAMES);
    assert_eq!(constants("Response", "command"), Command::NAMES);
    let mut events = constants("Event", "type");
    events.dedup();
    assert_eq!(events, Event::NAMES);
}

#[test]
fn members_of_unions_are_told_apart_by_constants() {
    for name in [
        "Command",
        "Event",
        "Message",
        "ContentBlock",
        "SessionEntry",
        "AssistantMessageEvent",
        "ExtensionUiRequest",
    ] {
        let tags: Vec<String> = members(name)
            .iter()
            .map(|schema| {
                let fields = schema["properties"].as_object().unwrap();
                let required = strings(&schema["required"]);
                let constants = fields
                    .iter()
                    .filter(|(field, part)| part.get("const").is_some() && required.contains(field));
                constants.map(|(field, part)| format!("{field}={} ", part["const"])).collect()
            })
            .collect();
        let distinct: BTreeSet<&String> = tags.iter().collect();
        assert_eq!(distinct.len(), tags.len(), "{name}: {tags:?}");
    }
}

#[test]
fn what_is_absent_is_not_null() {
    for (name, schema) in types() {
        for (field, part) in schema["properties"].as_object().into_iter().flatten() {
            let nullable =
                part["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
            let required = strings(&schema["required"]).contains(field);
            assert!(required || !nullable, "{name}.{field}");
        }
    }
}

#[test]
fn what_is_always_written_is_required() {
    let required = |name: &str| strings(&types()[name]["required"]);
    assert!(required("MessageEntry").contains(&"parentId".to_owned()));
    assert!(required("Entries").contains(&"leafId".to_owned()));
    assert!(!required("SessionState").contains(&"sessionFile".to_owned()));
}
