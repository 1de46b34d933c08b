//! Files that are replaced as a whole: a kill at any step leaves the old one or the new one, and holds nobody up.

use std::{fs, time::Instant};

use agentd_e2e::{Daemon, Home};
use serde_json::{Value, json};

/// How long the next writer may take, on a machine that does much else. A lock that nobody takes off holds for 30 seconds.
const AT_ONCE: u64 = 15;

/// The home's file as JSON.
fn read(home: &Home, name: &str) -> Value {
    let text = fs::read_to_string(home.agent_dir().join(name)).expect("the file is there");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

/// Files in the agent directory that belong to nobody.
fn left_over(home: &Home) -> Vec<String> {
    let names = fs::read_dir(home.agent_dir()).expect("the agent directory").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".tmp") || name.ends_with(".json.lock")).collect()
}

/// Sends a command that the daemon may die of.
fn die_of(home: &Home, armed: &str, command: &Value) {
    let mut daemon = Daemon::start_with(home, &["--no-session"], |start| {
        start.env("AGENTD_FAIL_POINTS", armed);
    });
    daemon.send(command);
    let ended = daemon.wait();
    assert_eq!(ended.status.code(), None, "{armed}: {ended:?}");
    assert!(ended.rest.iter().all(|line| line["type"] != "response"), "{armed}: {ended:?}");
}

#[test]
fn a_kill_at_any_step_leaves_the_old_or_the_new() {
    let steps = ["write", "write:torn", "rename"];
    let cases = [
        (
            "settings",
            json!({"type": "set_auto_retry", "enabled": false}),
            json!({"retry": {"enabled": true}}),
            json!({"retry": {"enabled": false}}),
        ),
        (
            "auth",
            json!({"type": "login", "provider": "openai", "key": "new-key"}),
            json!({"openai": {"type": "api_key", "key": "old-key"}}),
            json!({"openai": {"type": "api_key", "key": "new-key"}}),
        ),
    ];
    for (file, command, old, new) in cases {
        let home = Home::new();
        let name = format!("{file}.json");
        home.write_agent(&name, &old.to_string());
        for step in steps {
            let (place, action) = step.split_once(':').unwrap_or((step, "kill"));
            die_of(&home, &format!("{file}.{place}:{action}"), &command);
            assert_eq!(read(&home, &name), old, "{file}.{step}");
        }
        // Three died; the next one is not held up, and clears away what they left.
        let begun = Instant::now();
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        daemon.done(command);
        assert!(begun.elapsed().as_secs() < AT_ONCE, "{file}: {:?}", begun.elapsed());
        assert_eq!(read(&home, &name), new);
        assert_eq!(left_over(&home), [""; 0], "{file}");
    }
}
