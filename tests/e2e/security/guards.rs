//! Commands that stop (SIGSTOP) what watches them: they end with their session all the same. And memory that hides.

use std::{
    env,
    fs::File,
    io::{Read as _, Write as _},
    time::Duration,
};

use agentd_e2e::{
    Conversation, Daemon, Home, Service,
    conversation::Wire,
    ctl,
    processes::{self, Watched},
};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;

use crate::support::assert_says;

/// How long what is killed may be seen. A supervisor that is stopped again and again is given a second.
const AFTERLIFE: Duration = Duration::from_secs(10);

/// The parent of process `$1`.
const PARENT: &str = "parent() { local stat; stat=$(cat /proc/$1/stat); set -- ${stat##*) }; echo $2; }; ";

/// What a command does to its supervisors, and how many processes it has then, but for children that come and go.
type Attack = (&'static str, usize);

/// Stops the command's own supervisor, once.
const ONCE: Attack = ("kill -STOP $PPID; ", 2);
/// The same, whenever somebody has it go on.
const ALWAYS: Attack = ("(trap '' TERM; while :; do kill -STOP $PPID; done) & echo pid $!; ", 3);
/// The supervisor and the guard.
const BOTH: Attack = ("g=$(parent $PPID); kill -STOP $PPID; kill -STOP $g; ", 2);
/// Both, always, from a process that has left the command's session.
const BOTH_ALWAYS: Attack = (
    "g=$(parent $PPID); s=$PPID; setsid bash -c \"trap '' TERM; echo pid \\$\\$; while :; do kill -STOP $s $g; done\" & ",
    3,
);
/// Kills the guard, and stops the supervisor.
const KILLED: Attack = ("g=$(parent $PPID); kill -KILL $g; kill -STOP $PPID; ", 2);

/// A command that does this to its supervisors, says which processes it has, and stays.
fn script((attack, _): Attack) -> String {
    format!(
        "{PARENT}{attack}setsid sleep 1000 > /dev/null 2>&1 & echo pid $!; trap '' TERM; echo pid $$; echo ready; \
         while :; do sleep 1000; done"
    )
}

fn said(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

/// Starts it, and waits until it has said which processes it has.
fn start(client: &mut Conversation<impl Wire>, attack: Attack) -> Watched {
    client.send(&json!({"id": "work", "type": "bash", "command": script(attack)}));
    let mut output = String::new();
    while !output.contains("ready") || said(&output).len() < attack.1 {
        output.push_str(client.event("bash_execution_update")["delta"].as_str().expect("output"));
    }
    processes::watch(&said(&output))
}

#[test]
fn a_stopped_supervisor_keeps_no_command_alive() {
    for attack in [ONCE, ALWAYS, BOTH, BOTH_ALWAYS, KILLED] {
        let home = Home::new();
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        let children = start(&mut daemon, attack);
        assert!(children.all_alive(), "{attack:?}");
        daemon.done(json!({"type": "abort_bash"}));
        children.assert_gone_within(AFTERLIFE);
        // What comes after it runs as ever.
        let done = daemon.done(json!({"type": "bash", "command": "echo well"}));
        assert_eq!(done["output"], "well\n", "{attack:?}");
    }
}

#[test]
fn nothing_outlives_a_daemon_whose_guard_is_stopped() {
    for attack in [ONCE, ALWAYS, BOTH, BOTH_ALWAYS] {
        let home = Home::new();
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
        let children = start(&mut client, attack);
        let guards = processes::watch(&processes::children(service.id()));
        let down = ctl::run(&home, &["down", "--abort"]);
        assert_eq!(down.code, 0, "{attack:?}: {down:?}");
        assert!(service.wait().status.success(), "{attack:?}");
        children.assert_gone_within(Duration::from_secs(1));
        guards.assert_gone_within(AFTERLIFE);
    }
}

/// Run by the next test as a command: holds memory in a file that only memory has, and that it does not map.
#[test]
fn holds_memory_when_it_is_told_to() {
    let Some(bytes) = env::var("AGENTD_TEST_HOLD").ok().and_then(|bytes| bytes.parse::<usize>().ok()) else {
        return;
    };
    let mut file = File::from(memfd_create("held", MemfdFlags::CLOEXEC).unwrap());
    let piece = vec![7; 1 << 20];
    for _ in 0..bytes >> 20 {
        file.write_all(&piece).unwrap();
    }
    // Until the other end is closed.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn memory_that_is_only_held_counts() {
    let home = Home::new();
    home.settings(&json!({"processes": {"maxMemoryBytes": 150_000_000}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let program = env::current_exe().unwrap();
    let hold = |bytes: u64| {
        let test = "security::guards::holds_memory_when_it_is_told_to";
        format!("sleep 1000 | AGENTD_TEST_HOLD={bytes} {} --exact {test} --nocapture", program.display())
    };
    let held = daemon.done(json!({"type": "bash", "command": hold(400 << 20)}));
    assert_says(held["output"].as_str().unwrap(), &["memory (setting processes.maxMemoryBytes)"]);
    // What several have counts once.
    let shared = "exec 3< <(sleep 1); for i in 1 2 3 4 5 6; do sleep 1 & done; wait; echo well";
    assert_eq!(daemon.done(json!({"type": "bash", "command": shared}))["output"], "well\n");
}
