//! What a message can begin with, as omp's clients know it.

use agentd_e2e::{Daemon, Home, MockServer};
use serde_json::json;

use crate::extensions::extension;

#[test]
fn commands_are_listed_and_changes_are_told() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.write_agent(
        "prompts/review.md",
        "---\ndescription: Reviews\nargument-hint: <file>\n---\nReview $1.",
    );
    extension(&home, "test", &json!({"commands": {"ping": {}}}));
    let mut daemon = Daemon::start(&home, &["--ready"]);
    let listed = daemon.done(json!({"type": "get_available_commands"}))["commands"].clone();
    let review =
        json!({"name": "review", "description": "Reviews", "input": {"hint": "<file>"}, "source": "file"});
    assert!(listed.as_array().expect("a list").contains(&review), "{listed}");
    let ping = listed.as_array().expect("a list").iter().find(|command| command["name"] == "ping");
    assert_eq!(ping.expect("the extension's")["source"], "extension");
    extension(&home, "test", &json!({"commands": {"pong": {}}}));
    daemon.send(&json!({"id": "r", "type": "restart_extensions"}));
    let update = daemon.event("available_commands_update")["commands"].clone();
    let names: Vec<_> =
        update.as_array().expect("a list").iter().map(|command| command["name"].clone()).collect();
    assert!(names.contains(&json!("pong")) && !names.contains(&json!("ping")), "{names:?}");
}
