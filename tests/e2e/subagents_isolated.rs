//! Subagents in copies of the project, and what becomes of their changes.

use agentd_e2e::{Daemon, Home, Reply, sse};
use serde_json::json;

use crate::{
    subagents::{all, hand_in, home, model, run},
    support::{assert_says, text},
};

/// Makes the project a repository with one commit.
pub(crate) fn repository(home: &Home) {
    let git = |args: &[&str]| {
        let output = home.command("git").current_dir(home.project()).args(args).output().expect("git");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    home.write("a.txt", "one\n");
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.email", "u@example.com"]);
    git(&["config", "user.name", "U"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "First"]);
}

#[test]
fn isolated_subagents_work_in_copies_and_their_changes_come_back() {
    let model = model(
        json!({"tasks": [{"name": "A", "task": "Change a.", "isolated": true}, {"name": "B", "task": "Add b.", "isolated": true}]}),
        |request| {
            let said = all(request);
            if request.messages().iter().any(|message| message["role"] == "tool") {
                return hand_in(json!("done"));
            }
            let command =
                if said.contains("Change a.") { "echo two > a.txt; pwd" } else { "echo b > b.txt; pwd" };
            Reply::stream(sse::calls(&[("b1", "bash", json!({ "command": command }))]))
        },
    );
    let home = home(&model, json!({"isolation": {"enabled": true}}));
    repository(&home);
    home.write("mine.txt", "not committed\n");
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "set_subagent_subscription", "subscription": "progress"}));
    let told = run(&mut daemon);
    assert_says(
        &text(&told),
        &[
            "## A (task) completed\n\ndone\n\nApplied patches: yes",
            "## B (task) completed\n\ndone\n\nApplied patches: yes",
        ],
    );
    assert_eq!((home.read("a.txt"), home.read("b.txt")), ("two\n".to_owned(), "b\n".to_owned()));
    assert_eq!(home.read("mine.txt"), "not committed\n");
    let merged = &told["details"]["results"][0]["isolation"];
    assert_eq!((&merged["applied"], &merged["mode"]), (&json!(true), &json!("patch")), "{merged}");
}

#[test]
fn a_model_writes_the_messages_of_commits() {
    let tasks = json!({"tasks": [
        {"name": "A", "task": "Change a.", "isolated": true}, {"name": "B", "task": "Add b.", "isolated": true},
    ]});
    let model = model(tasks, |request| {
        let said = all(request);
        if said.contains("<changes>") {
            assert_says(&said, &["a.txt\n\ndiff --git a/a.txt b/a.txt", "-one\n+two"]);
            return Reply::stream(sse::answer("Say two in a.txt\n\nOne was not enough."));
        }
        if request.messages().iter().any(|message| message["role"] == "tool") {
            return hand_in(json!("done"));
        }
        let own = "echo b > b.txt; git add b.txt; git commit -q -m 'Of the subagent'";
        let command = if said.contains("Change a.") { "echo two > a.txt" } else { own };
        Reply::stream(sse::calls(&[("b1", "bash", json!({ "command": command }))]))
    });
    let home = home(
        &model,
        json!({"maxConcurrency": 1, "isolation": {"enabled": true, "merge": "branch", "commits": "ai"}}),
    );
    repository(&home);
    let log = || {
        let log = home
            .command("git")
            .current_dir(home.project())
            .args(["log", "--format=%B%x00", "--reverse"])
            .output();
        String::from_utf8(log.expect("git").stdout).expect("UTF-8").replace('\0', "|")
    };
    let mut daemon = Daemon::start(&home, &[]);
    let told = run(&mut daemon);
    assert_says(&text(&told), &["Merged branch: agentd/task/A", "Merged branch: agentd/task/B"]);
    assert_eq!(log(), "First\n|\nSay two in a.txt\n\nOne was not enough.|\nOf the subagent\n|\n");
    let asked = model.requests().iter().filter(|request| all(request).contains("<changes>")).count();
    assert_eq!(asked, 1, "a commit of the subagent's own keeps its message");
    let results = told["details"]["results"].as_array().expect("results");
    let input = |index: usize| results[index]["usage"]["input"].as_u64().expect("tokens");
    assert!(input(0) > input(1), "what the message took counts: {told}");
}

#[test]
fn commits_have_plain_messages_where_the_model_gives_none() {
    let model = model(
        json!({"tasks": [{"name": "A", "task": "Change a.\nAll of it.", "isolated": true}]}),
        |request| {
            if all(request).contains("<changes>") {
                return Reply::status(400, "application/json", r#"{"error": {"message": "too tired"}}"#);
            }
            if request.messages().iter().any(|message| message["role"] == "tool") {
                return hand_in(json!("done"));
            }
            Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "echo two > a.txt"}))]))
        },
    );
    let home = home(&model, json!({"isolation": {"enabled": true, "merge": "branch", "commits": "ai"}}));
    repository(&home);
    let mut daemon = Daemon::start(&home, &[]);
    let told = run(&mut daemon);
    assert_says(
        &text(&told),
        &["Merged branch: agentd/task/A", "Note: the commit has a plain message, since ", "too tired"],
    );
    let log = home.command("git").current_dir(home.project()).args(["log", "-1", "--format=%s"]).output();
    assert_eq!(String::from_utf8_lossy(&log.expect("git").stdout), "A: Change a.\n");
}

#[test]
fn changes_wait_for_the_client_if_the_setting_says_so() {
    let model = model(json!({"tasks": [{"name": "A", "task": "Change a.", "isolated": true}]}), |request| {
        if request.messages().iter().any(|message| message["role"] == "tool") {
            return hand_in(json!("done"));
        }
        Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "echo two > a.txt"}))]))
    });
    let home = home(&model, json!({"isolation": {"enabled": true, "apply": false}}));
    repository(&home);
    let mut daemon = Daemon::start(&home, &[]);
    let told = run(&mut daemon);
    assert_says(&text(&told), &["Its changes were not applied: they are in the patch "]);
    assert_eq!(home.read("a.txt"), "one\n");
    let applied = daemon.done(json!({"type": "apply_patch", "subagentId": "A"}));
    assert_eq!(applied["applied"], true, "{applied}");
    assert_eq!(home.read("a.txt"), "two\n");
    let refused = daemon.refused(json!({"type": "discard_patch", "subagentId": "A"}));
    assert_says(refused["error"].as_str().expect("an error"), &["The subagent A has no changes that wait."]);
}

#[test]
fn isolation_is_refused_without_the_setting_and_without_a_repository() {
    let model = model(json!({"tasks": [{"name": "A", "task": "Change a.", "isolated": true}]}), |_| {
        hand_in(json!("done"))
    });
    let home_without = home(&model, json!({}));
    let mut daemon = Daemon::start(&home_without, &[]);
    assert_says(&text(&run(&mut daemon)), &["task.isolation.enabled"]);
    let home = home(&model, json!({"isolation": {"enabled": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    assert_says(&text(&run(&mut daemon)), &["Isolated task execution requires a git repository"]);
}
