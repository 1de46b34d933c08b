//! Extensions of a project run once the project is trusted, and as long as they are what it was trusted with. Those of the user are asked
//! first.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::extensions::{HOST, events, extension, told};

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
    tools_of(&mut Daemon::start(home, flags))
}

fn tools_of(daemon: &mut Daemon) -> Vec<String> {
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

/// A home whose project has an extension, and whose user has one that answers `project_trust` so.
fn with_asked(model: &MockServer, answer: &Value) -> Home {
    let home = with_extension(model, "echo");
    extension(&home, "asked", &json!({"handlers": {"project_trust": answer}}));
    home
}

/// The folders of the extensions in the order in which they were loaded.
fn loaded(home: &Home) -> Vec<String> {
    let name = |load: Value| {
        let path = load["extensions"][0]["baseDir"].as_str().expect("a folder").to_owned();
        path.rsplit('/').next().expect("a name").to_owned()
    };
    told(home, "load").into_iter().map(name).collect()
}

/// The projects that extensions were asked about.
fn asked(home: &Home) -> Vec<Value> {
    events(home).into_iter().filter(|event| event["type"] == "project_trust").collect()
}

fn saved(home: &Home) -> Value {
    let text = fs::read_to_string(home.agent_dir().join("trust.json")).unwrap_or_else(|_| "{}".to_owned());
    let saved: Value = serde_json::from_str(&text).expect("JSON");
    saved[home.project().display().to_string()].clone()
}

#[test]
fn an_extension_of_the_user_trusts_the_project() {
    let model = MockServer::start([]);
    let home = with_asked(&model, &json!({"value": {"trusted": "yes"}}));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    assert_eq!(tools_of(&mut daemon), ["echo"]);
    assert_eq!(asked(&home), [json!({"type": "project_trust", "cwd": home.project()})]);
    assert_eq!(loaded(&home), ["asked", "test"], "that of the user is loaded first, and once");
    let trusted = |kind: &str| told(&home, kind).iter().map(|it| it["trusted"].clone()).collect::<Vec<_>>();
    assert_eq!(trusted("hello"), [json!(false), json!(true)]);
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    let binds: Vec<Value> = told(&home, "bind").iter().map(|bind| bind["core"]["trusted"].clone()).collect();
    assert_eq!(binds, [json!(true), json!(true)]);
    let list = daemon.done(json!({"type": "list_extensions"}));
    let listed = list["extensions"].as_array().expect("a list").iter();
    let scopes: Vec<&Value> = listed.map(|it| &it["sourceInfo"]["scope"]).collect();
    assert_eq!(scopes, ["project", "user"], "those of the project stand first");
    assert_eq!(saved(&home), json!(null), "nothing was to be remembered");
}

#[test]
fn an_extension_of_the_user_says_no_to_a_trusted_project() {
    let model = MockServer::start([]);
    let home = with_asked(&model, &json!({"value": {"trusted": "no"}}));
    trust(&home);
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    assert_eq!(tools_of(&mut daemon), [""; 0]);
    assert_eq!(loaded(&home), ["asked"]);
    assert_eq!(
        daemon.done(json!({"type": "list_extensions"}))["extensions"].as_array().map(Vec::len),
        Some(1)
    );
    daemon.done(json!({"type": "restart_extensions"}));
    assert_eq!(tools_of(&mut daemon), [""; 0], "the answer counts while the session is open");
    assert_eq!(saved(&home), json!(true));
}

#[test]
fn an_undecided_extension_leaves_the_decision_to_what_is_saved() {
    let model = MockServer::start([]);
    let home = with_asked(&model, &json!({"value": {"trusted": "undecided", "remember": true}}));
    assert_eq!(tools(&home, &["--stdio"]), [""; 0]);
    assert_eq!(saved(&home), json!(null));
    trust(&home);
    assert_eq!(tools(&home, &["--stdio"]), ["echo"]);
    assert_eq!(asked(&home).len(), 2);
}

#[test]
fn an_answer_is_remembered_for_the_files_as_they_are() {
    let model = MockServer::start([]);
    let home = with_asked(&model, &json!({"value": {"trusted": "yes", "remember": true}}));
    assert_eq!(tools(&home, &["--stdio"]), ["echo"]);
    assert_eq!(saved(&home), json!(true));
    fs::remove_dir_all(home.agent_dir().join("extensions")).expect("its folder");
    assert_eq!(tools(&home, &["--stdio"]), ["echo"]);
    write_script(&home, "other");
    assert_eq!(tools(&home, &["--stdio"]), [""; 0]);

    let home = with_asked(&model, &json!({"value": {"trusted": "no", "remember": true}}));
    assert_eq!(tools(&home, &["--stdio"]), [""; 0]);
    assert_eq!(saved(&home), json!(false));
}

#[test]
fn nobody_is_asked_where_a_flag_decides_or_nothing_needs_trust() {
    let model = MockServer::start([]);
    let home = with_asked(&model, &json!({"value": {"trusted": "yes"}}));
    assert_eq!(tools(&home, &["--stdio", "--no-approve"]), [""; 0]);
    assert_eq!(tools(&home, &["--stdio", "--approve"]), ["echo"]);
    fs::remove_dir_all(home.project().join(".pi")).expect("its folder");
    assert_eq!(tools(&home, &["--stdio"]), [""; 0]);
    assert_eq!(asked(&home), [json!(null); 0]);
}

#[test]
fn a_failing_extension_is_told_of_and_decides_nothing() {
    let model = MockServer::start([]);
    let home = with_asked(&model, &json!({"throw": "no idea"}));
    extension(&home, "later", &json!({"handlers": {"project_trust": {"value": {"trusted": "yes"}}}}));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    assert_eq!(tools_of(&mut daemon), ["echo"]);
    let told = daemon.done(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
    let text = format!("Extension \"{HOST}\" project_trust error: no idea");
    let messages: Vec<&str> =
        told.as_array().expect("a list").iter().filter_map(|it| it["message"].as_str()).collect();
    assert!(messages.contains(&text.as_str()), "{messages:?}");
}

#[test]
fn a_session_that_follows_in_the_same_folder_is_decided_alike() {
    let model = MockServer::start([]);
    let home = with_asked(&model, &json!({"once": {"trusted": "yes"}, "value": {"trusted": "no"}}));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    assert_eq!(tools_of(&mut daemon), ["echo"]);
    daemon.done(json!({"type": "new_session"}));
    assert_eq!(tools_of(&mut daemon), ["echo"]);
    daemon.done(json!({"type": "restart_extensions"}));
    assert_eq!(tools_of(&mut daemon), ["echo"]);
    assert_eq!(asked(&home).len(), 1);
    assert_eq!(loaded(&home)[..4], ["asked", "test", "test", "asked"], "in the processes of before");
    assert_eq!(told(&home, "hello").len(), 4, "two at the start, and two after the restart");
}
