//! The user's own shell commands.

use agentd_e2e::{Daemon, Home, MockServer, Reply, processes, sse};
use serde_json::{Value, json};

use crate::support::text;

#[test]
fn output_exit_code_and_environment() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let result = daemon.done(json!({"type": "bash", "command": "pwd; echo err >&2; exit 7"}));
    let output = format!("{}\nerr\n", home.project().display());
    assert_eq!(result, json!({"output": output, "exitCode": 7, "cancelled": false, "truncated": false}));
    let result = daemon.done(json!({"type": "bash", "command": "kill -TERM $$"}));
    assert_eq!(result["exitCode"], 143);
    // Nothing to read from, and not our terminal or our pipes.
    assert_eq!(daemon.done(json!({"type": "bash", "command": "cat; echo end"}))["output"], "end\n");
}

#[test]
fn the_model_sees_commands_unless_excluded() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "bash", "command": "echo seen"}));
    daemon.done(json!({"type": "bash", "command": "echo hidden", "excludeFromContext": true}));
    daemon.prompt("What did I run?");
    let requests = server.requests();
    let all: Vec<String> = requests[0].messages().iter().map(text).collect();
    let all = all.join("\n");
    assert!(all.contains("Ran `echo seen`\n```\nseen\n\n```"), "{all}");
    assert!(!all.contains("hidden"), "{all}");
}

#[test]
fn abort_bash_kills_what_was_started() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait";
    daemon.send(&json!({"id": "b", "type": "bash", "command": script}));
    let mut output = String::new();
    while output.lines().count() < 2 {
        let update = daemon.event("bash_execution_update");
        assert_eq!(update["id"], "b");
        output.push_str(update["delta"].as_str().expect("a delta"));
    }
    let ids: Vec<i32> = output.lines().map(|line| line.parse().expect("a process id")).collect();
    let children = processes::watch(&ids);
    // `abort` is about runs, and leaves it alone.
    daemon.done(json!({"type": "abort"}));
    assert!(children.all_alive());
    daemon.done(json!({"type": "abort_bash"}));
    children.assert_gone_within(std::time::Duration::from_secs(1));
    let response = daemon.until("the response", |line| line["id"] == "b" && line["type"] == "response");
    assert_eq!(response["data"]["cancelled"], true);
    assert_eq!(response["data"].get("exitCode"), None);
    assert_eq!(response["data"]["output"], json!(output));
}

#[test]
fn long_output_is_cut_at_the_front_and_kept_in_a_file() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let result = daemon.done(json!({"type": "bash", "command": "seq 1 5000"}));
    assert_eq!(result["truncated"], true);
    let output = result["output"].as_str().unwrap();
    assert!(output.ends_with("\n5000") || output.ends_with("\n5000\n"), "{}", &output[output.len() - 20..]);
    assert!(output.lines().count() <= 2000);
    let path = result["fullOutputPath"].as_str().expect("a path");
    assert!(path.starts_with(&home.root().join("tmp").display().to_string()), "{path}");
    let whole = std::fs::read_to_string(path).unwrap();
    assert_eq!(whole.lines().count(), 5000);
}

#[test]
fn commands_run_at_the_same_time() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "bash", "command": "mkfifo pipe"}));
    daemon.send(&json!({"id": "r", "type": "bash", "command": "cat pipe"}));
    daemon.send(&json!({"id": "w", "type": "bash", "command": "echo through > pipe"}));
    let answered = |id: &'static str| move |line: &Value| line["type"] == "response" && line["id"] == id;
    let lines = daemon.all_until("the writer's end", answered("w"));
    let reader = match lines.into_iter().find(answered("r")) {
        Some(line) => line,
        None => daemon.until("the reader's end", answered("r")),
    };
    assert_eq!(reader["data"]["output"], "through\n");
}
