//! The tree of a session: branches, navigation, labels; `agentctl tree` and `agentctl fork`.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

use crate::support::{TestClient, assert_says, both, records, roles};

fn answers(texts: &[&str]) -> Vec<Reply> {
    texts.iter().map(|text| Reply::stream(sse::answer(text))).collect()
}

/// The messages of a tree as `user(assistant(user user))`, without other kinds of entries; labels in brackets.
fn shape(nodes: &Value) -> String {
    let one = |node: &Value| {
        let below = shape(&node["children"]);
        let role = node["entry"]["message"]["role"].as_str().filter(|role| *role != "system");
        let Some(role) = role else { return below };
        let label =
            node.get("label").map(|label| format!("[{}]", label.as_str().unwrap())).unwrap_or_default();
        if below.is_empty() { format!("{role}{label}") } else { format!("{role}{label}({below})") }
    };
    let parts = nodes.as_array().expect("a list").iter().map(one).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

fn navigate(client: &mut dyn TestClient, entry: &str) -> Value {
    client.done(json!({"type": "navigate_tree", "entryId": entry}))
}

#[test]
fn going_back_to_a_message_opens_another_branch() {
    both(&answers(&["One.", "Two.", "Other."]), &[], |home, server, client| {
        client.say("first");
        client.say("second");
        let messages = client.fork_messages();
        let leaf = client.done(json!({"type": "get_tree"}))["leafId"].clone();
        let went = navigate(client, &messages[1].0);
        assert_eq!((&went["cancelled"], &went["editorText"]), (&json!(false), &json!("second")));
        assert_eq!(client.context(), ["user: first", "assistant: One."]);
        assert_eq!(client.done(json!({"type": "get_tree"}))["leafId"], went["leafId"]);
        client.say("other");
        assert_eq!(client.context().last().unwrap(), "assistant: Other.");
        let sent = server.requests()[2].messages().iter().map(ToString::to_string).collect::<String>();
        assert!(sent.contains("first") && !sent.contains("second"), "{sent}");
        let tree = client.done(json!({"type": "get_tree"}));
        assert_eq!(shape(&tree["tree"]), "user(assistant(user(assistant) user(assistant)))");

        // Navigating to the end of the abandoned branch continues after it, with no text to edit.
        let went = navigate(client, leaf.as_str().unwrap());
        assert_eq!(went, json!({"cancelled": false, "leafId": leaf}));
        assert_eq!(client.context().last().unwrap(), "assistant: Two.");
        assert_eq!(client.state()["messageCount"], json!(5));
        // Navigation writes nothing: the file holds only the messages.
        let file = &home.session_files()[0];
        assert_eq!(roles(file).iter().filter(|role| *role == "user").count(), 3);
        assert!(
            !records(file)
                .iter()
                .any(|record| record["type"] == "model_change" && record["parentId"] == leaf)
        );
    });
}

#[test]
fn before_the_first_message_a_branch_is_another_root_of_what_was_said() {
    both(&answers(&["One.", "Two."]), &[], |_, _, client| {
        client.say("first");
        let messages = client.fork_messages();
        assert_eq!(navigate(client, &messages[0].0)["editorText"], "first");
        client.say("again");
        let tree = client.done(json!({"type": "get_tree"}));
        assert_eq!(shape(&tree["tree"]), "user(assistant) user(assistant)");
        assert_eq!(client.context(), ["user: again", "assistant: Two."]);
    });
}

#[test]
fn a_session_at_work_goes_nowhere_and_what_is_not_there_is_said() {
    let busy = [Reply::stream(sse::text("half")).hang()];
    both(&busy, &[], |_, _, client| {
        let leaf = client.done(json!({"type": "get_entries"}))["leafId"].clone();
        client.done(json!({"type": "prompt", "message": "first"}));
        let refused = client.refused(json!({"type": "navigate_tree", "entryId": leaf}));
        assert_eq!(refused["code"], "busy", "{refused}");
        // Read-only commands and labels are allowed at any time.
        client.done(json!({"type": "get_tree"}));
        client.done(json!({"type": "set_label", "entryId": leaf, "label": "here"}));
        client.done(json!({"type": "abort"}));
        for command in [
            json!({"type": "navigate_tree", "entryId": "nope"}),
            json!({"type": "set_label", "entryId": "nope", "label": "x"}),
        ] {
            let refused = client.refused(command);
            assert_eq!(
                (&refused["error"], &refused["code"]),
                (&json!("Entry nope not found"), &json!("not_found"))
            );
        }
        client.done(json!({"type": "navigate_tree", "entryId": leaf}));
        assert_eq!(client.context(), Vec::<String>::new());
    });
}

#[test]
fn labels_are_set_and_cleared() {
    both(&answers(&["One."]), &[], |home, _, client| {
        client.say("first");
        let entry = client.fork_messages()[0].0.clone();
        let tree = |client: &mut dyn TestClient| shape(&client.done(json!({"type": "get_tree"}))["tree"]);
        client.done(json!({"type": "set_label", "entryId": entry, "label": "  start "}));
        assert_eq!(tree(client), "user[start](assistant)");
        client.done(json!({"type": "set_label", "entryId": entry, "label": "begin"}));
        assert_eq!(tree(client), "user[begin](assistant)");
        client.done(json!({"type": "set_label", "entryId": entry, "label": " "}));
        assert_eq!(tree(client), "user(assistant)");
        client.done(json!({"type": "set_label", "entryId": entry}));
        let records = records(&home.session_files()[0]);
        let labels: Vec<&Value> = records.iter().filter(|record| record["type"] == "label").collect();
        let said: Vec<Option<&str>> =
            labels.iter().map(|label| label.get("label").map(|text| text.as_str().unwrap())).collect();
        assert_eq!(said, [Some("start"), Some("begin"), None, None]);
        // Labels have the form that pi writes, as an entry like any other.
        let sample = include_str!("../data/sessions/v3-1.5.jsonl")
            .lines()
            .find(|line| line.contains("\"label\""))
            .unwrap();
        let keys = |text: &str| -> Vec<String> {
            serde_json::from_str::<serde_json::Map<String, Value>>(text).unwrap().keys().cloned().collect()
        };
        let file = std::fs::read_to_string(&home.session_files()[0]).unwrap();
        let ours = file.lines().find(|line| line.contains("\"label\":\"start\"")).unwrap();
        assert_eq!(keys(ours), keys(sample));
        assert_eq!(labels[1]["parentId"], labels[0]["id"]);
    });
}

#[test]
fn a_branch_gets_the_model_and_level_that_it_goes_on_with() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::new();
    let mut models = agentd_e2e::home::models(&server.base_url());
    let list = models["providers"]["fake"]["models"].as_array_mut().unwrap();
    let mut other = list[0].clone();
    other["id"] = json!("other");
    other["reasoning"] = json!(true);
    list.push(other);
    home.configure(&models);
    let mut daemon = Daemon::start(&home, &["--model", "fake/fake"]);
    daemon.prompt("first");
    daemon.done(json!({"type": "set_model", "provider": "fake", "modelId": "other"}));
    daemon.done(json!({"type": "set_thinking_level", "level": "high"}));
    let entry = daemon.fork_messages()[0].0.clone();
    daemon.done(json!({"type": "navigate_tree", "entryId": entry}));
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(
        (&state["model"]["id"], &state["thinkingLevel"]),
        (&json!("other"), &json!("high")),
        "it stays"
    );
    daemon.prompt("again");
    let records = records(&home.session_files()[0]);
    let changes: Vec<&str> = records
        .iter()
        .rev()
        .skip_while(|record| record["message"]["role"] != "user")
        .skip(1)
        .take_while(|record| record["message"]["role"] != "assistant")
        .filter_map(|record| record["type"].as_str())
        .collect();
    // The values of the branch, then those of the commands, from the end.
    assert_eq!(
        changes,
        ["thinking_level_change", "model_change", "thinking_level_change", "model_change"]
            .into_iter()
            .collect::<Vec<_>>(),
        "{records:?}"
    );
}

#[test]
fn the_model_after_navigation_survives_unloading() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::new();
    let mut models = agentd_e2e::home::models(&server.base_url());
    let list = models["providers"]["fake"]["models"].as_array_mut().unwrap();
    let mut other = list[0].clone();
    other["id"] = json!("other");
    list.push(other);
    home.configure(&models);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    let mut client = service.client();
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "model": "fake/fake"}));
    let mut gone = || {
        watcher.until("a session that left memory", |line| {
            line["type"] == "session_changed"
                && line["session"]["id"] == opened["sessionId"]
                && line["session"]["live"] == false
        })
    };
    client.say("first");
    gone();
    let entry = client.fork_messages()[0].0.clone();
    // Sent at once, so that the session is unloaded only afterwards.
    client.send_bytes(
        format!(
            "{}\n{}\n",
            json!({"type": "set_model", "provider": "fake", "modelId": "other"}),
            json!({"id": "went", "type": "navigate_tree", "entryId": entry})
        )
        .as_bytes(),
    );
    client.until("the way back", |line| line["id"] == "went");
    gone();
    assert_eq!(client.state()["model"]["id"], "other", "the branch says fake");
    gone();
    client.say("again");
    let records = records(&home.session_files()[0]);
    let changes =
        records.iter().filter(|record| record["type"] == "model_change" && record["modelId"] == "other");
    assert_eq!(changes.count(), 2, "once for the command, once for the branch");
}

#[test]
fn the_leaf_after_navigation_survives_unloading() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    let mut client = service.client();
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    let mut gone = || {
        watcher.until("a session that left memory", |line| {
            line["type"] == "session_changed"
                && line["session"]["id"] == id
                && line["session"]["live"] == false
        })
    };
    client.say("first");
    gone();
    let entries = client.done(json!({"type": "get_entries"}))["entries"].clone();
    let root = entries[0]["id"].as_str().unwrap().to_owned();
    gone();
    navigate(&mut client, &root);
    gone();
    assert_eq!(client.done(json!({"type": "get_tree"}))["leafId"], json!(root));
    gone();
    assert_eq!(client.context(), Vec::<String>::new());
}

/// A session file with two branches: its id, the prompts' entries, and the path.
fn talk(home: &Home) -> (String, Vec<(String, String)>, String) {
    let mut daemon = Daemon::start(home, &[]);
    daemon.say("first");
    daemon.say("second");
    let messages = daemon.fork_messages();
    daemon.done(json!({"type": "navigate_tree", "entryId": messages[1].0}));
    daemon.say("other");
    daemon.done(json!({"type": "set_label", "entryId": messages[0].0, "label": "start"}));
    let state = daemon.state();
    let text = |name: &str| state[name].as_str().expect("a text").to_owned();
    (text("sessionId"), daemon.fork_messages(), text("sessionFile"))
}

fn server() -> MockServer {
    MockServer::start(["One.", "Two.", "Three."].map(|text| Reply::stream(sse::answer(text))))
}

/// An outline without ids.
fn without_ids(text: &str) -> Vec<String> {
    let is_id = |word: &str| word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words =
        |line: &str| line.split_whitespace().filter(|word| !is_id(word)).collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

#[test]
fn branches_are_shown_from_a_file_and_from_the_daemon() {
    let server = server();
    let home = Home::with_model(&server);
    let (id, messages, path) = talk(&home);
    let outline = [
        "user first [start]",
        "assistant One.",
        "├─ user second",
        "│ assistant Two.",
        "└─ user other",
        "> assistant Three.",
    ];
    for which in [&id, &path] {
        let said = ctl::run(&home, &["tree", which]);
        assert_eq!(
            (said.code, without_ids(&said.stdout)),
            (0, outline.map(str::to_owned).to_vec()),
            "{said:?}"
        );
        assert!(said.stdout.contains(&messages[2].0), "{said:?}");
    }
    // A daemon knows the current leaf of the session.
    let service = Service::start(&home, &[]);
    let said = ctl::run(&home, &["tree", &id]);
    assert_eq!(without_ids(&said.stdout), outline, "no daemon has it yet: {said:?}");
    let mut client: SocketClient = service.client();
    client.done(json!({"type": "attach_session", "sessionId": id}));
    client.done(json!({"type": "navigate_tree", "entryId": messages[1].0}));
    let said = ctl::run(&home, &["tree", &id]);
    assert_eq!(without_ids(&said.stdout)[1], "> assistant One.", "{said:?}");
    client.done(json!({"type": "navigate_tree", "entryId": messages[0].0}));
    let said = ctl::run(&home, &["tree", &id]);
    assert!(!said.stdout.contains('>'), "before all: {said:?}");
}

#[test]
fn a_session_without_branches_is_reported() {
    let home = Home::new();
    home.write("notes.jsonl", "no session\n");
    let said = ctl::run(&home, &["tree", "./notes.jsonl"]);
    assert_eq!(said.code, 1);
    assert_says(&said.stderr, &["notes.jsonl", "no session file"]);
    let said = ctl::run(&home, &["tree", "0198"]);
    assert_eq!(said.code, 1);
    assert_says(&said.stderr, &["no session has an id that begins with \"0198\""]);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    let said = ctl::run(&home, &["tree", opened["sessionId"].as_str().unwrap()]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""));
    assert_says(&said.stderr, &["Nothing was said"]);
}

fn file_of(home: &Home, id: &str) -> Vec<Value> {
    let files = home.session_files();
    let file = files.iter().find(|file| file.to_string_lossy().contains(id)).expect("the fork's file");
    records(file)
}

#[test]
fn forks_are_made_with_a_daemon_and_without_one() {
    let server = server();
    let home = Home::with_model(&server);
    let (id, messages, path) = talk(&home);
    let mut service = None;
    for _ in 0..2 {
        let said = ctl::run(&home, &["fork", &id]);
        assert_eq!(said.code, 0, "{said:?}");
        let copy = file_of(&home, said.stdout.trim());
        assert_eq!(copy[0]["parentSession"], json!(path));
        assert_eq!(copy.iter().filter(|record| record["message"]["role"] == "user").count(), 2);

        let said = ctl::run(&home, &["fork", &id, &messages[1].0]);
        assert_eq!(said.code, 0, "{said:?}");
        assert_says(&said.stderr, &["It ends before: second"]);
        let copy = file_of(&home, said.stdout.trim());
        assert_eq!(copy.iter().filter(|record| record["message"]["role"] == "user").count(), 1);

        let files = home.session_files().len();
        let said = ctl::run(&home, &["fork", &id, &messages[0].0]);
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{said:?}");
        assert_says(&said.stderr, &["nothing to copy"]);
        let said = ctl::run(&home, &["fork", &id, "nope"]);
        assert_eq!(said.code, 1);
        assert_says(&said.stderr, &["nope is the id of no prompt", "agentctl tree"]);
        assert_eq!(home.session_files().len(), files);
        service.get_or_insert_with(|| Service::start(&home, &[]));
    }
    // The daemon keeps only sessions that have a file.
    let service = service.expect("it was started");
    let mut client = service.client();
    let list = client.done(json!({"type": "list_sessions"}))["sessions"].clone();
    assert!(list.as_array().unwrap().iter().all(|session| session["path"].is_string()), "{list}");
}
