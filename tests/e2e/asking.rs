//! What tests of questions about permissions share: models that call, clients that are asked, decisions on record.

use std::fs;

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, sse};
use serde_json::{Value, json};

/// A model that calls `bash` once and then says that it is done.
pub(crate) fn calling(command: &str) -> MockServer {
    MockServer::start([calls(&[command]), Reply::stream(sse::answer("Done."))])
}

/// An answer with a call of `bash` for each command.
pub(crate) fn calls(commands: &[&str]) -> Reply {
    let ids = ["call_1", "call_2", "call_3"];
    let calls: Vec<(&str, &str, Value)> = ids
        .into_iter()
        .zip(commands)
        .map(|(id, command)| (id, "bash", json!({ "command": command })))
        .collect();
    Reply::stream(sse::calls(&calls))
}

/// A client that answers the daemon's questions.
pub(crate) fn asked(service: &Service, name: &str) -> SocketClient {
    let mut client = service.client();
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": name}, "capabilities": {"sessions": true, "ui": true},
    }));
    client
}

pub(crate) fn open(client: &mut SocketClient, home: &Home, args: &[&str]) -> String {
    let args = [&["--model", "fake/fake"], args].concat();
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "args": args}));
    opened["sessionId"].as_str().unwrap().to_owned()
}

/// The option of a question that begins so.
pub(crate) fn option(question: &Value, begins: &str) -> Value {
    let options = question["options"].as_array().unwrap();
    let found = options.iter().find(|option| option.as_str().unwrap().starts_with(begins));
    found.unwrap_or_else(|| panic!("no option {begins:?}: {question}")).clone()
}

pub(crate) fn answer(client: &mut SocketClient, question: &Value, begins: &str) {
    let value = option(question, begins);
    client.send(&json!({"type": "extension_ui_response", "id": question["id"], "value": value}));
}

pub(crate) fn result_of(client: &mut SocketClient) -> String {
    let end = client.event("tool_execution_end");
    end["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn home(server: &MockServer, permissions: &Value) -> Home {
    let home = Home::with_model(server);
    home.settings(&json!({ "permissions": permissions }));
    home
}

/// The texts of the session's file.
pub(crate) fn stored(home: &Home) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut folders = vec![home.agent_dir().join("sessions")];
    while let Some(folder) = folders.pop() {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "jsonl") {
                let text = fs::read_to_string(path).unwrap();
                entries.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
            }
        }
    }
    entries
}

pub(crate) fn decisions(home: &Home) -> Vec<Value> {
    let is_decision = |entry: &Value| entry["type"] == "custom" && entry["customType"] == "permission";
    stored(home).into_iter().filter(is_decision).map(|entry| entry["data"].clone()).collect()
}
