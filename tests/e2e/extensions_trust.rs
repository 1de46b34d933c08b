//! Extensions of a project run once the project is trusted, and as long as they are what it was trusted with.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer};
use serde_json::json;

use crate::extensions::HOST;

/// Below the project: the folder of its extension.
const FOLDER: &str = ".pi/extensions/test";

/// The records that the host got, below the home.
const LOG: &str = "host.log";

/// A home whose project has an extension with a tool of that name.
fn with_extension(model: &MockServer, tool: &str) -> Home {
    let home = Home::with_model(model);
    let path = |file: &str| home.project().join(FOLDER).join(file).display().to_string();
    let command = json!([HOST, path("script.json"), home.root().join(LOG).display().to_string()]);
    home.write(&format!("{FOLDER}/extension.json"), &json!({"command": command, "protocol": 1}).to_string());
    write_script(&home, tool);
    home
}

fn write_script(home: &Home, tool: &str) {
    let script = json!({"tools": {tool: {"value": {"content": [{"type": "text", "text": "said"}]}}}});
    home.write(&format!("{FOLDER}/script.json"), &script.to_string());
}

/// The names of the extensions' tools in a new session.
fn tools(home: &Home, flags: &[&str]) -> Vec<String> {
    let mut daemon = Daemon::start(home, flags);
    let list = daemon.done(json!({"type": "get_tools"}));
    let tools = list["tools"].as_array().expect("tools").iter();
    let of_extensions = tools.filter(|tool| tool["source"] == "extension");
    of_extensions.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

fn trust(home: &Home) {
    home.write_agent("trust.json", &json!({home.project().display().to_string(): true}).to_string());
}

#[test]
fn nothing_of_a_project_runs_before_its_trust() {
    let model = MockServer::start([]);
    let home = with_extension(&model, "echo");
    assert_eq!(tools(&home, &["--stdio"]), [""; 0]);
    assert_eq!(tools(&home, &["--stdio", "--no-approve"]), [""; 0]);
    assert!(!home.root().join(LOG).exists(), "its program was started");
    assert_eq!(tools(&home, &["--stdio", "--approve"]), ["echo"]);
    assert_eq!(tools(&home, &["--stdio", "--approve", "--no-extensions"]), [""; 0]);
}

#[test]
fn what_was_changed_since_is_not_run() {
    let model = MockServer::start([]);
    let home = with_extension(&model, "echo");
    trust(&home);
    assert_eq!(tools(&home, &["--stdio"]), ["echo"]);
    assert_eq!(tools(&home, &["--stdio"]), ["echo"], "it is what it was");
    write_script(&home, "other");
    fs::remove_file(home.root().join(LOG)).expect("a log");
    assert_eq!(tools(&home, &["--stdio"]), [""; 0]);
    assert!(!home.root().join(LOG).exists(), "the changed program was started");
    write_script(&home, "echo");
    assert_eq!(tools(&home, &["--stdio"]), ["echo"]);
}
