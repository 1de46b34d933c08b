//! Every command of the protocol's table reaches a function that executes it.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, binaries, sse};
use agentd_protocol::command::Command;
use serde_json::{Map, Value, json};

/// The smallest value that a schema allows: only required fields, each as short as possible.
fn smallest(schema: &Value, definitions: &Value) -> Value {
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.strip_prefix("#/$defs/").expect("a definition of the same file");
        return smallest(&definitions[name], definitions);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    for list in ["oneOf", "anyOf"] {
        if let Some(variants) = schema[list].as_array() {
            return smallest(&variants[0], definitions);
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") => json!("x"),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        _ => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields = required.map(|name| {
                let mut value = smallest(&schema["properties"][name], definitions);
                if name == "protocol" {
                    value = json!(1);
                }
                (name.to_owned(), value)
            });
            Value::Object(fields.collect())
        }
    }
}

/// Each command of the table as the smallest line that can be read, in the order of the table.
fn commands() -> Vec<Value> {
    let path = binaries::workspace().join("schemas/commands.json");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let rows = document["oneOf"].as_array().unwrap();
    let of_row = |name: &&str| {
        let row =
            rows.iter().find(|row| row["title"] == **name).unwrap_or_else(|| panic!("no schema of {name}"));
        let mut fields = Map::new();
        for part in row["allOf"].as_array().unwrap() {
            if let Value::Object(more) = smallest(part, &document["$defs"]) {
                fields.extend(more);
            }
        }
        fields.insert("type".into(), json!(name));
        let line = Value::Object(fields);
        let parsed = Command::parse(name, &line.to_string());
        assert!(matches!(parsed, Some(Ok(_))), "{line}: {parsed:?}");
        line
    };
    Command::NAMES.iter().map(of_row).collect()
}

/// The answer may be a refusal, but not one that nobody is responsible for the command.
fn check(answer: &Value) {
    let code = answer["code"].as_str().unwrap_or_default();
    assert!(!["internal", "unknown_command", "parse"].contains(&code), "{answer}");
}

#[test]
fn every_command_is_executed_on_a_socket_and_for_a_host() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    for command in commands() {
        check(&client.call(command));
    }
    let home = Home::with_model(&server);
    let mut host = Daemon::start(&home, &[]);
    for command in commands() {
        check(&host.call(command));
    }
}
