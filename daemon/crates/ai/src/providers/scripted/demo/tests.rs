use std::sync::Arc;

use agentd_protocol::{
    Json,
    message::{AssistantMessage, Message},
    model::Model,
};

use super::*;
use crate::Accumulator;

/// A session with the demo whose tools answer from a table.
struct Session {
    messages: Vec<Value>,
}

impl Session {
    fn new(tools: &[&str]) -> Self {
        let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
        Self { messages: vec![json!({"role": "system", "content": "", "toolsAdded": tools})] }
    }

    fn ask(&self) -> AssistantMessage {
        let messages: Vec<Json<Message>> = serde_json::from_value(json!(self.messages)).unwrap();
        let model = Arc::new(Model { api: "scripted".into(), ..Model::placeholder() });
        let request = Request::new(Arc::clone(&model), messages);
        let mut accumulator = Accumulator::new(model, 0);
        for delta in answer(&request) {
            accumulator.fold(delta);
        }
        assert!(accumulator.is_finished());
        accumulator.into_message()
    }

    /// Runs a prompt to its end; the calls made, and the last answer.
    fn prompt(&mut self, text: &str, results: &[(&str, bool)]) -> (Vec<String>, String) {
        self.messages.push(json!({"role": "user", "content": text}));
        let mut results = results.iter();
        let mut calls = Vec::new();
        loop {
            let answer = self.ask();
            let mut message = json!(Message::Assistant(answer.clone()));
            message["stopReason"] = json!(answer.stop_reason);
            self.messages.push(message);
            let Some(call) = answer.tool_calls().next() else {
                assert_eq!((answer.stop_reason, results.next()), (StopReason::Stop, None));
                return (calls, answer.text());
            };
            assert_eq!(answer.stop_reason, StopReason::ToolUse);
            calls.push(format!("{} {}", call.name, json!(call.arguments)));
            let (text, is_error) = results.next().unwrap();
            self.messages.push(json!({"role": "toolResult", "toolCallId": call.id, "toolName": call.name,
                "content": [{"type": "text", "text": text}], "isError": is_error}));
        }
    }
}

#[test]
fn it_looks_reads_and_says_what_it_saw() {
    let mut session = Session::new(&["read", "bash"]);
    let listing = "Cargo.toml\nREADME.md\nsrc/\nz.bin\n";
    let (calls, text) =
        session.prompt("What is this?", &[(listing, false), ("\n# Zebra  counter\n\nCounts.", false)]);
    assert_eq!(calls, [r#"bash {"command":"ls -1Ap"}"#, r#"read {"path":"README.md","limit":40}"#]);
    assert!(text.contains("You asked: \"What is this?\""), "{text}");
    assert!(text.contains("3 files and 1 folder: Cargo.toml, README.md, z.bin, src/."), "{text}");
    assert!(text.contains("I read README.md; its first heading is \"Zebra counter\"."), "{text}");
    // A follow-up looks again, at another file.
    let (calls, text) =
        session.prompt("And now?", &[(listing, false), ("[package]\nname = \"zebra\"", false)]);
    assert_eq!(calls[1], r#"read {"path":"Cargo.toml","limit":40}"#);
    assert!(text.contains("I read Cargo.toml; its first line is \"[package]\"."), "{text}");
    let ids: Vec<&Value> = session.messages.iter().filter_map(|message| message.get("toolCallId")).collect();
    assert_eq!(ids, ["demo_1", "demo_2", "demo_3", "demo_4"]);
}

#[test]
fn it_is_honest_about_what_failed() {
    let mut session = Session::new(&["bash", "read"]);
    let (calls, text) = session.prompt("Hi", &[("sh: ls: not found\n\nCommand exited with code 127", true)]);
    assert_eq!(calls.len(), 1);
    assert!(
        text.contains("could not list this folder: the tool bash failed with \"sh: ls: not found\""),
        "{text}"
    );
    let (_, text) = session.prompt("Hi", &[("README.md", false), ("Permission denied", true)]);
    assert!(
        text.contains("tried to read README.md, but the tool failed with \"Permission denied\""),
        "{text}"
    );
}

#[test]
fn it_says_what_it_lacks() {
    let (calls, text) = Session::new(&[]).prompt("Hi", &[]);
    assert!(calls.is_empty() && text.contains("No tool is on offer"), "{text}");
    let (calls, text) = Session::new(&["ls"]).prompt("Hi", &[("a.txt", false)]);
    assert!(calls[0].starts_with("ls ") && text.contains("The tool read is not on offer"), "{text}");
    let (_, text) = Session::new(&["bash", "read"]).prompt("Hi", &[("(no output)", false)]);
    assert!(text.contains("This folder is empty."), "{text}");
}
