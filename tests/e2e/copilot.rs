//! The models that an account of GitHub Copilot may use.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, ctl, sse};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, complaint, text};

/// A home with a login whose account has the models `ids`; `None` where it is not known which.
fn home(server: &MockServer, ids: Option<&[&str]>) -> Home {
    let home = Home::new();
    let model = |id: &str| json!({"id": id, "api": "openai-completions"});
    home.configure(&json!({"providers": {"github-copilot": {"baseUrl": server.base_url(),
        "models": [model("test-one"), model("test-two")]}}}));
    let mut login =
        json!({"type": "oauth", "access": "tid=1", "refresh": "ghu_1", "expires": 9_000_000_000_000_u64});
    if let Some(ids) = ids {
        login["availableModelIds"] = json!(ids);
    }
    home.write_agent("auth.json", &json!({"github-copilot": login}).to_string());
    home
}

fn ids(models: &Value) -> Vec<&str> {
    models.as_array().unwrap().iter().filter_map(|model| model["id"].as_str()).collect()
}

#[test]
fn only_those_of_the_plan_are_on_offer() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = home(&server, Some(&["test-one", "of-tomorrow"]));
    let mut daemon = Daemon::start(&home, &[]);
    let offered = daemon.done(json!({"type": "get_available_models"}));
    assert_eq!(ids(&offered["models"]), ["test-one"]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["model"]["id"], "test-one");
    let refused =
        daemon.refused(json!({"type": "set_model", "provider": "github-copilot", "modelId": "test-two"}));
    assert_eq!(refused["code"], "no_model");
    let why = "Model \"github-copilot/test-two\" is not in the plan of the github-copilot account, which has test-one, of-tomorrow.";
    assert_says(&complaint(&refused), &[why, "agentctl login github-copilot --force"]);
    assert_eq!(text(answers(&daemon.prompt("Hi"))[0]), "Hello.");

    let listed = ctl::run(&home, &["models"]);
    assert!(listed.stdout.contains("test-one") && !listed.stdout.contains("test-two"), "{listed:?}");
    let listed = ctl::run(&home, &["models", "github-copilot/*"]);
    assert!(listed.stdout.contains("test-one") && !listed.stdout.contains("test-two"), "{listed:?}");
    let done = ctl::run(&home, &["prompt", "--private", "--model", "github-copilot/test-two", "Hi"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &[why]);
    let done = ctl::run(&home, &["prompt", "--private", "--model", "github-copilot/of-tomorrow", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Hello.\n"), "the provider knows it: {done:?}");
}

#[test]
fn a_plan_that_changes_counts_at_once_and_an_unknown_one_is_no_limit() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = home(&server, None);
    let mut daemon = Daemon::start(&home, &[]);
    let offered = daemon.done(json!({"type": "get_available_models"}));
    let all = ids(&offered["models"]);
    assert!(all.contains(&"test-one") && all.contains(&"test-two"), "{all:?}");
    let file = home.agent_dir().join("auth.json");
    let mut auth: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    auth["github-copilot"]["availableModelIds"] = json!(["test-two"]);
    fs::write(&file, auth.to_string()).unwrap();
    let offered = daemon.done(json!({"type": "get_available_models"}));
    assert_eq!(ids(&offered["models"]), ["test-two"]);
}
