//! The transcripts of `tests/golden`, played against the daemon.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse, transcript};
use serde_json::{Value, json};

use crate::support;

/// Plays a transcript against a private daemon, and through the bridge to a shared one: the protocol is the same.
fn play(name: &str, replies: impl IntoIterator<Item = Reply>) {
    play_with(name, &[], replies);
}

/// Plays a transcript with more arguments.
fn play_with(name: &str, more: &[&str], replies: impl IntoIterator<Item = Reply>) {
    let replies: Vec<Reply> = replies.into_iter().collect();
    for shared in [false, true] {
        let server = MockServer::start(replies.clone());
        let home = Home::with_model(&server);
        let args = [&["--model", "fake/fake", "--no-session"], more].concat();
        let service = shared.then(|| Service::start(&home, &[]));
        let mut daemon =
            if shared { Daemon::start_shared(&home, &args) } else { Daemon::start(&home, &args) };
        transcript::play(name, &home, &mut daemon);
        let ended = daemon.close();
        let seen = (ended.status.code(), ended.rest, ended.stderr.as_str());
        assert_eq!(seen, (Some(0), Vec::<Value>::new(), ""), "shared: {shared}");
        drop(service);
    }
}

/// A tool call, and the answer to its result.
fn call_and_answer() -> [Reply; 2] {
    let call = sse::text("Running it.")
        + &sse::call_start(0, "call_1", "bash")
        + &sse::call_arguments(0, "{\"command\":\"")
        + &sse::call_arguments(0, "echo hi; exit 3\"}")
        + &sse::end("tool_calls", (100, 0, 20));
    let answer = sse::text("It ") + &sse::text("failed.") + &sse::end("stop", (50, 10, 2));
    [Reply::stream(call), Reply::stream(answer)]
}

#[test]
fn tool_call() {
    play("tool_call.jsonl", call_and_answer());
}

#[test]
fn cumulative_updates() {
    play_with("cumulative.jsonl", &["--cumulative-updates"], call_and_answer());
}

#[test]
fn steer_then_abort() {
    play("steer_then_abort.jsonl", [Reply::stream(sse::text("one ")).then(sse::text("two ")).hang()]);
}

#[test]
fn abort_tool() {
    let call = sse::calls(&[("call_1", "bash", json!({"command": "echo begun; sleep 1000"}))]);
    play("abort_tool.jsonl", [Reply::stream(call)]);
}

#[test]
fn queued_while_idle() {
    let replies = [Reply::stream(sse::answer("Done.")), Reply::stream(sse::answer("Done too."))];
    play("queued_while_idle.jsonl", replies);
}

#[test]
fn bash_command() {
    play("bash_command.jsonl", []);
}

#[test]
fn short_answers() {
    play("short_answers.jsonl", []);
}

#[test]
fn tree_commands() {
    play("tree_commands.jsonl", []);
}

#[test]
fn active_tools() {
    play("active_tools.jsonl", []);
}

#[test]
fn no_model() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    transcript::play("no_model.jsonl", &home, &mut daemon);
}

/// Authors of clients read the schemas: every line of every transcript has to match them.
#[test]
fn every_transcript_line_fits_the_schemas() {
    let commands = [schema("commands.json"), wire_schema("Command")];
    let responses = [schema("responses.json"), wire_schema("Response")];
    let events = [schema("events.json"), wire_schema("Event")];
    for entry in fs::read_dir(transcript::folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        for record in transcript::read(&name) {
            let (line, schemas) = match &record {
                transcript::Record::Sent(line) => (line, &commands),
                transcript::Record::Awaited(line) if line.contains(r#""type":"response""#) => {
                    (line, &responses)
                }
                transcript::Record::Awaited(line) => (line, &events),
            };
            let mut value: Value = serde_json::from_str(line).unwrap();
            if matches!(record, transcript::Record::Sent(_)) && !is_meant_well(&value) {
                continue;
            }
            restore(&mut value);
            let errors: Vec<String> = schemas
                .iter()
                .flat_map(|schema| schema.iter_errors(&value))
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{name}: {line}\nfits no variant: {errors:?}");
        }
    }
}

fn schema(file: &str) -> jsonschema::Validator {
    jsonschema::validator_for(&schema_file(file)).unwrap()
}

/// The schema of a type that other languages generate types from.
fn wire_schema(name: &str) -> jsonschema::Validator {
    let document = schema_file("wire.json");
    let schema = json!({"$schema": document["$schema"], "$ref": format!("#/$defs/{name}"), "$defs": document["$defs"]});
    jsonschema::validator_for(&schema).unwrap()
}

fn schema_file(name: &str) -> Value {
    let path = agentd_e2e::binaries::workspace().join("schemas").join(name);
    serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

/// Transcripts also hold lines that are refused because they are invalid.
fn is_meant_well(command: &Value) -> bool {
    let kind = command["type"].as_str().unwrap_or_default();
    let prompt_without_text = kind == "prompt" && !command["message"].is_string();
    agentd_protocol::command::Command::NAMES.contains(&kind) && !prompt_without_text
}

/// Replaces the normaliser's placeholders by examples.
fn restore(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value.as_str()) {
                    ("usage", Some("<usage>")) => {
                        *value = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0,
                        "totalTokens": 0, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}})
                    }
                    _ => restore(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(restore),
        _ => {}
    }
}

/// Checks that the comparison notices a wrong line.
#[test]
#[should_panic(expected = "differs from what came")]
fn a_difference_is_noticed() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&support::prompt("Shifts every answer by one."));
    transcript::play("no_model.jsonl", &home, &mut daemon);
}
