//! `agentctl tree` and `fork`, with a daemon and without one.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

use crate::{
    support::{assert_says, records},
    wire::Wire,
};

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

/// An outline without ids: marks, lines and words.
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
    // A daemon knows where the session went back to.
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
fn what_has_no_branches_is_said() {
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
    // Of what was asked of the daemon, nothing is left in its memory but sessions that have a file.
    let service = service.expect("it was started");
    let mut client = service.client();
    let list = client.done(json!({"type": "list_sessions"}))["sessions"].clone();
    assert!(list.as_array().unwrap().iter().all(|session| session["path"].is_string()), "{list}");
}
