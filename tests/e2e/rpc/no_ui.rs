//! `--no-ui`: nobody is asked anything.

use agentd_e2e::{Daemon, Home, MockServer};
use serde_json::json;

use crate::{
    extensions::{extension, told},
    support::kinds,
};

#[test]
fn dialogs_take_their_defaults_and_nothing_is_shown() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let calls = json!([
        ["ui.confirm", {"title": "Sure?", "message": ""}],
        ["ui.input", {"title": "Name?"}],
        ["ui.select", {"title": "Which?", "options": ["a", "b"], "timeout": 600_000}],
    ]);
    extension(&home, "test", &json!({"commands": {"ask": {"calls": calls}}}));
    let mut daemon = Daemon::start(&home, &["--no-ui"]);
    daemon.send(&json!({"id": "a", "type": "prompt", "message": "/ask"}));
    let lines = daemon.all_until("the answer", |line| line["id"] == "a");
    assert_eq!(lines.last().expect("the answer")["data"]["disposition"], "handled");
    assert!(!kinds(&lines).contains(&"extension_ui_request"), "{lines:?}");
    assert_eq!(told(&home, "bind")[0]["core"]["hasUI"], false);
}
