//! Commands in one shell that stays (`bash.session`), on the real binaries.

use std::fs;

use agentd_e2e::{DEADLINE, Daemon, Home, processes};
use serde_json::{Value, json};

use crate::{
    async_jobs::{calls, results},
    support::{assert_says, ended},
};

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

#[test]
fn the_directory_and_variables_stay_and_nothing_outlives_the_session() {
    let commands =
        ["mkdir -p sub; cd sub; mine=5; sleep 1000 & echo $!", "pwd; echo $mine; echo $$", "exit 3", "pwd"];
    let model = calls(commands.into_iter().map(bash).collect());
    let home = Home::with_model(&model);
    home.settings(&json!({"bash": {"session": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    let seen = results(&events);
    let sub = home.project().join("sub").display().to_string();
    let lines: Vec<&str> = seen[1].lines().collect();
    assert_eq!(lines[..2], [sub.as_str(), "5"]);
    assert!(seen[2].ends_with("Command exited with code 3"), "{}", seen[2]);
    assert_says(
        &seen[3],
        &["[The shell of earlier commands is gone: it exited with code 3.", &format!("\n\n{sub}\n")],
    );
    let server: i32 = seen[0].trim().parse().expect("a process id");
    let watched = processes::watch(&[server]);
    daemon.close();
    watched.assert_gone_within(DEADLINE);
}

#[test]
fn without_the_setting_every_command_begins_anew() {
    let model = calls(vec![bash("cd /; mine=5"), bash("pwd; echo [$mine]")]);
    let home = Home::with_model(&model);
    let seen = results(&Daemon::start(&home, &[]).prompt("Go."));
    assert_eq!(seen[1], format!("{}\n[]\n", home.project().display()));
}

#[test]
fn paths_are_judged_where_the_shell_is() {
    let commands = ["cd sub", "echo y > x/file", "cd ..", "echo y > x/file"];
    let model = calls(commands.into_iter().map(bash).collect());
    let home = Home::with_model(&model);
    fs::create_dir_all(home.project().join("sub/x")).unwrap();
    fs::create_dir(home.project().join("x")).unwrap();
    let rules = json!([{ "tool": "write", "path": "./sub/x/**", "action": "deny", "reason": "not there" }]);
    home.settings(&json!({"bash": {"session": true}, "permissions": {"rules": rules}}));
    let events = Daemon::start(&home, &[]).prompt("Go.");
    let results = ended(&events, "toolResult");
    let errors: Vec<bool> = results.iter().map(|result| result["isError"] == true).collect();
    assert_eq!(errors, [false, true, false, false], "{results:?}");
    assert!(!home.project().join("sub/x/file").exists() && home.project().join("x/file").exists());
}
