//! Functions and aliases of the user's shell in commands (`bash.snapshot`), on the real binaries.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use agentd_e2e::{Daemon, Home, MockServer};
use serde_json::{Value, json};

use crate::{
    async_jobs::{calls, results},
    client_tools::hello,
};

const RC: &str = "echo Welcome\necho noise >&2\nalias hi='echo hello'\nalias if='echo no keyword'\ngreet() { hi \"$1\"; }\n\
                  _completion() { :; }\n__kept() { echo kept; }\nshopt -s nocaseglob\necho x >> \"$HOME/started\"\n";

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

/// Files of snapshots in the folder for temporary files.
fn snapshots(home: &Home) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(home.root().join("tmp")).expect("a folder").flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agentd-shell-"))
    };
    entries.filter(is_one).collect()
}

fn problems(daemon: &mut Daemon) -> Vec<String> {
    let found = daemon.done(json!({"type": "get_diagnostics"}));
    let all = found["diagnostics"].as_array().expect("a list").iter();
    let texts = all.filter_map(|it| it["message"].as_str());
    texts.filter(|text| text.contains("bash.snapshot")).map(str::to_owned).collect()
}

/// What commands print in a session with these settings, and that session.
fn session(rc: &str, settings: &Value, commands: &[&str]) -> (Vec<String>, Daemon, Home, MockServer) {
    let model = calls(commands.iter().map(|command| bash(command)).collect());
    let home = Home::with_model(&model);
    home.write_home(".bashrc", rc);
    home.settings(settings);
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    let seen = results(&daemon.prompt("Go."));
    (seen, daemon, home, model)
}

const COMMANDS: [&str; 4] = [
    "hi there\ngreet you\n__kept",
    "type _completion || echo no completion",
    "shopt -q nocaseglob && echo set",
    "hi again",
];

#[test]
fn functions_aliases_and_options_are_there() {
    for of_session in [false, true] {
        let settings = json!({"bash": {"snapshot": true, "session": of_session}});
        let (seen, mut daemon, home, _model) = session(RC, &settings, &COMMANDS);
        assert_eq!(seen[0], "hello there\nhello you\nkept\n", "{of_session}");
        assert!(seen[1].ends_with("no completion\n"), "{}", seen[1]);
        assert_eq!((seen[2].as_str(), seen[3].as_str()), ("set\n", "hello again\n"));
        let started = fs::read_to_string(home.root().join("home/started")).expect("the shell was started");
        assert_eq!(started.lines().count(), 1, "once in a session");
        let found = snapshots(&home);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(fs::metadata(&found[0]).expect("the file").permissions().mode() & 0o777, 0o600);
        assert_eq!(problems(&mut daemon), Vec::<String>::new());
        assert!(daemon.close().status.success());
        assert!(!found[0].exists(), "it goes with the session");
    }
}

#[test]
fn without_the_setting_and_by_a_project_nothing_is_there() {
    let (seen, ..) = session(RC, &json!({}), &["hi there"]);
    assert!(seen[0].contains("hi: command not found"), "{}", seen[0]);
    let model = calls(vec![bash("hi there")]);
    let home = Home::with_model(&model);
    home.write_home(".bashrc", RC);
    home.settings(&json!({}));
    home.write(".agentd/settings.json", r#"{"bash": {"snapshot": true}}"#);
    let seen = results(&Daemon::start(&home, &["--approve"]).prompt("Go."));
    assert!(seen[0].contains("hi: command not found"), "{}", seen[0]);
}

#[test]
fn a_shell_that_cannot_be_asked_fails_no_command_and_is_told() {
    let on = json!({"bash": {"snapshot": true}});
    let (seen, mut daemon, ..) = session("exit 3\n", &on, &["echo one", "echo two"]);
    assert_eq!(seen, ["one\n", "two\n"]);
    let told = problems(&mut daemon);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("the shell ended before its functions were known"), "{told:?}");
    let other = json!({"bash": {"snapshot": true}, "shellPath": "/bin/sh"});
    let (seen, mut daemon, ..) = session(RC, &other, &["echo one"]);
    assert_eq!(seen, ["one\n"]);
    assert!(problems(&mut daemon)[0].contains("the shell is /bin/sh, and only bash"), "sh is no bash");
}
