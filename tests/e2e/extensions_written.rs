//! The examples of docs/writing-extensions.md in Rust and in shell, and `agentctl extensions new`, which copies them. Those that need an
//! interpreter are run by the suite `extensions` of `tests/outside`.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, binaries::workspace, ctl, sse};
use serde_json::{Value, json};

use crate::{
    extensions::{extension, says_to_the_session},
    mcp::call,
    support::{assert_says, ended, text},
};

/// The example in Rust, built with the tests.
const GUARD: &str = env!("CARGO_BIN_EXE_example_extension");

fn tools(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().expect("tools").iter();
    tools.filter(|tool| tool["source"] == "extension").filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn the_example_in_rust_guards_counts_and_shouts() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.write_agent(
        "extensions/guard/extension.json",
        &json!({"command": [GUARD], "protocol": 1}).to_string(),
    );
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    assert_eq!(tools(&daemon.done(json!({"type": "get_tools"}))), ["count_words"]);
    let result = call(&mut daemon, &model, "count_words", json!({"text": " one two\nthree "}));
    assert_eq!((text(&result), &result["details"]), ("3".to_owned(), &json!({"count": 3})));

    daemon.send(&json!({"id": "s", "type": "prompt", "message": "/shout quietly"}));
    assert_eq!(daemon.event("extension_ui_request")["message"], "QUIETLY");

    for (answer, said) in [(false, "The user said no."), (true, "(no output)")] {
        model.push(Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "rm -rf ./nothing"}))])));
        model.push(Reply::stream(sse::answer("Ok.")));
        daemon.send(&json!({"id": "p", "type": "prompt", "message": "Clean up."}));
        let question = daemon.until("a question", |line| line["method"] == "confirm");
        assert_eq!(
            (&question["title"], &question["message"]),
            (&json!("Delete?"), &json!("rm -rf ./nothing"))
        );
        daemon.send(&json!({"type": "extension_ui_response", "id": question["id"], "confirmed": answer}));
        let seen = daemon.settled();
        assert_says(&text(ended(&seen, "toolResult")[0]), &[said]);
    }
}

#[test]
fn a_command_of_an_extension_is_a_prompt_that_ends_with_it() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.write_agent(
        "extensions/guard/extension.json",
        &json!({"command": [GUARD], "protocol": 1}).to_string(),
    );
    for shared in [false, true] {
        let _service = shared.then(|| Service::start(&home, &[]));
        let done = ctl::run(&home, &["prompt", "/shout quietly"]);
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "", "QUIETLY\n"), "{done:?}");
        let done = ctl::run(&home, &["prompt", "--json", "/shout quietly"]);
        assert_eq!(done.code, 0, "{done:?}");
        let last: Value = serde_json::from_str(done.stdout.lines().last().expect("a record")).expect("JSON");
        let said = (&last["type"], &last["exitCode"], &last["turns"]);
        assert_eq!(said, (&json!("result"), &json!(0), &json!(0)), "{last}");
        assert!(done.stdout.contains("QUIETLY"), "{done:?}");
    }
    assert!(model.requests().is_empty(), "the model is not asked");
}

#[test]
fn a_prompt_ends_with_the_run_that_a_command_began() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    extension(&home, "test", &says_to_the_session("go", "Go on."));
    for shared in [false, true] {
        let _service = shared.then(|| Service::start(&home, &[]));
        model.push(Reply::stream(sse::answer("Gone on.")));
        let done = ctl::run(&home, &["prompt", "/go"]);
        assert_eq!(
            (done.code, done.stdout.as_str(), done.stderr.as_str()),
            (0, "Gone on.\n", ""),
            "{done:?}"
        );
        let done = ctl::run(&home, &["prompt", "/nothing"]);
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "", ""), "{done:?}");
    }
}

#[test]
fn the_example_in_shell_says_where_the_work_ended() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let made = ctl::run(&home, &["extensions", "new", "where", "--lang", "shell"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_says(&made.stdout, &["extensions/where", "agentctl extensions list"]);
    home.write(".git/HEAD", "ref: refs/heads/a\"quoted\n");
    home.write(".git/objects/.keep", "");
    home.write(".git/refs/.keep", "");
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    daemon.send(&json!({"id": "b", "type": "prompt", "message": "/branch"}));
    assert_eq!(daemon.event("extension_ui_request")["message"], "a\"quoted");
    model.push(Reply::stream(sse::answer("Done.")));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Work."}));
    assert_eq!(daemon.event("extension_ui_request")["message"], "Finished on a\"quoted");
}

#[test]
fn new_extensions_are_made_once_and_from_the_examples() {
    let home = Home::new();
    for (lang, file, example) in [
        ("typescript", "index.ts", "guard.ts"),
        ("python", "extension.py", "guard.py"),
        ("shell", "extension.sh", "branch.sh"),
        ("rust", "src/main.rs", "rust/src/main.rs"),
    ] {
        let folder = home.project().join("made");
        let folder = folder.to_str().expect("a path");
        let made = ctl::run(&home, &["extensions", "new", lang, "--lang", lang, "--dir", folder]);
        assert_eq!(made.code, 0, "{made:?}");
        assert_says(&made.stdout, &["--extension", lang]);
        let example = workspace().join("docs/examples/extensions").join(example);
        // Its tool has a name of its own.
        let example = fs::read_to_string(example).expect("an example");
        let expected = example.replace("count_words", &format!("{lang}_count_words"));
        assert_eq!(home.read(&format!("made/{lang}/{file}")), expected);
        let again = ctl::run(&home, &["extensions", "new", lang, "--dir", folder]);
        assert_eq!(again.code, 1);
        assert_says(&again.stderr, &["is there already"]);
    }
    let wrong = ctl::run(&home, &["extensions", "new", "../up"]);
    assert_eq!(wrong.code, 2);
    assert_says(&wrong.stderr, &["a name is a letter"]);
}

#[test]
fn extensions_are_listed_and_restarted() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let none = ctl::run(&home, &["extensions", "list"]);
    assert_eq!(none.code, 0, "{none:?}");
    assert_says(&none.stdout, &["No extensions", "agentctl extensions new"]);
    let manifest = json!({"command": [GUARD], "protocol": 1}).to_string();
    home.write_agent("extensions/guard/extension.json", &manifest);
    let listed = ctl::run(&home, &["extensions", "list"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert_says(&listed.stdout, &["running ", "example_extension", "count_words", "shout", "tool_call"]);
    let listed = ctl::run(&home, &["extensions", "list", "--json"]);
    let list: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(list["extensions"][0]["tools"], json!(["count_words"]));
    let alone = ctl::run(&home, &["extensions", "restart"]);
    assert_eq!(alone.code, 3, "{alone:?}");

    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "one"}, "capabilities": {"sessions": true},
    }));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    let pid = |list: &Value| list["extensions"][0]["hostPid"].as_i64().expect("a process id");
    let before = pid(&client.done(json!({"type": "list_extensions", "sessionId": id})));
    let id = id.as_str().expect("an id");
    let restarted = ctl::run(&home, &["extensions", "restart", id]);
    assert_eq!(restarted.code, 0, "{restarted:?}");
    let listed = ctl::run(&home, &["extensions", "list", id, "--json"]);
    let list: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_ne!(pid(&list), before);
    assert_says(&restarted.stdout, &[&format!("pid {}", pid(&list))]);
}

#[test]
fn what_extensions_say_is_in_a_log() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let none = ctl::run(&home, &["extensions", "logs"]);
    assert_eq!(none.code, 1);
    assert_says(&none.stderr, &["no extension has said anything yet"]);
    let script = "read -r line; echo 'a word of its own' >&2; echo 'printed'; exit 3";
    home.write_agent(
        "extensions/talks/extension.json",
        &json!({"command": ["sh", "-c", script], "protocol": 1}).to_string(),
    );
    let failed = ctl::run(&home, &["prompt", "--no-session", "--model", "demo/demo", "Hello"]);
    assert_says(&failed.stderr, &["talks", "a word of its own"]);
    let log = ctl::run(&home, &["extensions", "logs", "-n", "5"]);
    assert_says(&log.stdout, &["[talks] stderr: a word of its own", "[talks] stderr: printed"]);
}
