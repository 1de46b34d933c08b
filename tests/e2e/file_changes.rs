//! Changes of several files at once, with a daemon that is killed in the middle: all of it happened, or nothing.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    lsp,
    support::{assert_says, prompt, records, text},
};

/// A home with two files that a rename changes.
fn home(model: &MockServer, undo: bool) -> Home {
    let home = lsp::home(model, &[], json!({}));
    home.settings(&json!({"lsp": {"enabled": true}, "undo": {"enabled": undo}}));
    home
}

fn files(home: &Home) -> [String; 2] {
    ["a.toy", "b.toy"].map(|name| home.read(name))
}

/// A daemon that dies at a point of the rename that its model asks for.
fn killed_at(point: &str, home: &Home, model: &MockServer) {
    let rename = json!({"action": "rename", "file": "b.toy", "line": 2, "symbol": "add", "new_name": "sum"});
    model.push(Reply::stream(sse::calls(&[("c1", "lsp", rename)])));
    let mut daemon = Daemon::start_with(home, &[], |command| {
        command.env("AGENTD_FAIL_POINTS", point);
    });
    hello(&mut daemon, "test");
    daemon.send(&prompt("Go."));
    daemon.wait();
}

/// What the session that is opened again tells of its last crash.
fn told(daemon: &mut Daemon) -> String {
    let found = daemon.done(json!({"type": "get_diagnostics"}));
    let all = found["diagnostics"].as_array().expect("a list").iter();
    let of_session = all.filter(|it| it["kind"] == "session" && it["level"] == "warning");
    of_session.map(|it| it["message"].as_str().expect("a message")).collect::<Vec<_>>().join("\n")
}

fn result(home: &Home) -> String {
    let records = records(&home.session_files()[0]);
    let result = records.iter().rfind(|record| record["message"]["role"] == "toolResult").expect("a result");
    text(&result["message"])
}

/// Whether nothing is left of journals.
fn is_clean(home: &Home) -> bool {
    fs::read_dir(home.agent_dir().join("run/changes")).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn a_rename_that_was_killed_is_taken_back_when_the_session_is_opened() {
    for (point, undo, changed) in
        [("change.step@1", true, 1), ("change.step@2", false, 2), ("change.done", true, 2)]
    {
        let model = MockServer::start([]);
        let home = home(&model, undo);
        let before = files(&home);
        killed_at(point, &home, &model);
        assert_ne!(files(&home), before, "{point}");
        let mut daemon = Daemon::start(&home, &["--continue"]);
        let said = told(&mut daemon);
        assert_says(
            &said,
            &[&format!(
                "a change by lsp was interrupted by a crash of the daemon: the {changed} files that it had changed are as before"
            )],
        );
        assert_eq!(files(&home), before, "{point}");
        assert_says(&result(&home), &["interrupted by a crash; no file is changed"]);
        assert!(is_clean(&home), "{point}");
        assert!(daemon.close().status.success());
        let mut daemon = Daemon::start(&home, &["--continue"]);
        assert_eq!(told(&mut daemon), "");
    }
}

#[test]
fn taking_back_that_is_killed_is_done_again() {
    let model = MockServer::start([]);
    let home = home(&model, false);
    let before = files(&home);
    killed_at("change.done", &home, &model);
    let killed = Daemon::start_with(&home, &["--continue"], |command| {
        command.env("AGENTD_FAIL_POINTS", "change.taken_back");
    });
    killed.wait();
    assert_ne!(files(&home), before);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_says(&told(&mut daemon), &["a change by lsp was interrupted"]);
    assert_eq!(files(&home), before);
    assert_says(&result(&home), &["no file is changed"]);
}

#[test]
fn a_file_that_somebody_has_changed_since_stays_and_is_told() {
    let model = MockServer::start([]);
    let home = home(&model, false);
    let before = files(&home);
    killed_at("change.done", &home, &model);
    home.write("a.toy", "def mine 1\n");
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let said = told(&mut daemon);
    assert_says(
        &said,
        &["1 files are as before again, these are not: ", "a.toy was changed since; its old content is "],
    );
    let kept =
        said.split("its old content is ").nth(1).expect("a path").split(['\n', ';']).next().expect("a path");
    assert_eq!(fs::read_to_string(kept).expect("the old content"), before[0]);
    assert_eq!(files(&home), ["def mine 1\n".to_owned(), before[1].clone()]);
    assert_says(&result(&home), &["what it had changed is as before, but for: ", "a.toy was changed since"]);
    let _: Value = daemon.done(json!({"type": "get_state"}));
}
