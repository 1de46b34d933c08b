//! The tool `ssh` on the real programs, with a stand-in for the program `ssh` that works on this machine. Real connections are tested by
//! `tests/outside/ssh`.

use std::{fs, os::unix::fs::PermissionsExt};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    support::{assert_says, ended, text},
};

/// Answers `-G` and `-N` at once, and else runs the command line.
const STAND_IN: &str =
    "#!/bin/sh\nfor last; do case $last in -G | -N) exit 0 ;; esac; done\nexec /bin/sh -c \"$last\"\n";

fn home(model: &MockServer, settings: &Value) -> Home {
    let home = Home::with_model(model);
    home.settings(settings);
    home.write_home("bin/ssh", STAND_IN);
    let program = home.root().join("home/bin/ssh");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("a program");
    home
}

fn start(home: &Home, args: &[&str]) -> Daemon {
    let bin = home.root().join("home/bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    let mut daemon = Daemon::start_with(home, args, |command| {
        command.env("PATH", path);
    });
    hello(&mut daemon, "test");
    daemon
}

/// The tools that a new session offers, and what it says of `ssh`.
fn tools(home: &Home, model: &MockServer, args: &[&str]) -> (Vec<String>, String) {
    let mut daemon = start(home, &[&["--no-session"], args].concat());
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    let last = model.requests().len() - 1;
    let body = model.requests()[last].body.to_string();
    (offered(model, last), body)
}

#[test]
fn the_tool_is_there_only_where_it_is_on_and_hosts_are_configured() {
    let model = MockServer::start([]);
    let home = home(&model, &json!({}));
    let hosts = r#"{"hosts": {"box": {"host": "10.0.0.1", "description": "the build machine"}}}"#;
    home.write_agent("ssh.json", hosts);
    let has_ssh = |args: &[&str]| tools(&home, &model, args).0.contains(&"ssh".to_owned());
    assert!(!has_ssh(&[]), "off by default");
    home.settings(&json!({"ssh": {"enabled": true}}));
    let (names, body) = tools(&home, &model, &[]);
    assert_eq!(names, ["read", "bash", "edit", "write", "ssh"]);
    assert_says(&body, &["- box: the build machine"]);
    home.settings(
        &json!({"ssh": {"enabled": true}, "sandbox": {"mode": "workspace-write", "network": "off"}}),
    );
    assert!(!has_ssh(&[]), "a sandbox without a network");
    home.settings(&json!({"ssh": {"enabled": true}}));
    // A project names hosts once it is trusted, and none of the user's.
    home.write(
        ".agentd/ssh.json",
        r#"{"hosts": {"mine": {"host": "m"}, "box": {"host": "evil", "description": "other"}}}"#,
    );
    assert!(!tools(&home, &model, &["--no-approve"]).1.contains("- mine"));
    let (_, body) = tools(&home, &model, &["--approve"]);
    assert!(body.contains("- mine") && body.contains("- box: the build machine"), "{body}");
    home.write_agent("ssh.json", "{}");
    assert!(!has_ssh(&["--no-approve"]), "no hosts");
}

#[test]
fn a_command_on_a_host_is_judged_by_rules_of_its_own() {
    let rules = json!([
        {"tool": "bash", "command": "touch *", "action": "allow"},
        {"tool": "ssh", "command": "box echo *", "action": "allow"},
    ]);
    let model = MockServer::start([]);
    let permissions = json!({"preset": "workspace", "rules": rules});
    let home = home(&model, &json!({"ssh": {"enabled": true}, "permissions": permissions}));
    home.write_agent("ssh.json", r#"{"hosts": {"box": {"host": "box"}, "prod": {"host": "prod"}}}"#);
    let mut daemon = start(&home, &["--no-session"]);
    let mut call = |tool: &str, arguments: Value| {
        model.push(Reply::stream(sse::calls(&[("c1", tool, arguments)])));
        model.push(Reply::stream(sse::answer("Ok.")));
        let events = daemon.prompt("Go.");
        let result = ended(&events, "toolResult")[0].clone();
        (text(&result), result["isError"] == true)
    };
    let (said, failed) = call("ssh", json!({"host": "box", "command": "echo \"$PI_SESSION_ID\" there"}));
    assert_eq!((said.trim(), failed), ("there", false));
    for (tool, arguments, why) in [
        ("ssh", json!({"host": "prod", "command": "echo there"}), "asks about running echo on another host"),
        ("ssh", json!({"host": "box", "command": "touch made"}), "asks about running touch on another host"),
        ("read", json!({"path": "ssh://box/etc/hostname"}), "asks about the tool ssh"),
    ] {
        let (said, failed) = call(tool, arguments.clone());
        assert!(failed && said.contains(why), "{arguments}: {said}");
    }
    assert!(!home.project().join("made").exists() && !home.root().join("home/made").exists());
}
