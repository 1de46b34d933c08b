//! `agentctl` beside a daemon that is missing, dies, or does not listen: a copy of it stands next to a script.

use std::{path::PathBuf, process::Stdio};

use agentd_e2e::{Ctl, Home, binaries, ctl::Finished};
use rustix::process::Signal;

use crate::support::assert_says;

/// A folder with a copy of `agentctl`, and this script as `agentd`.
///
/// Another process writes both: a descriptor that is open for writing here could be inherited by the child of a test
/// that runs at the same time, and the system does not start what is open for writing.
fn install(home: &Home, script: Option<&str>) -> PathBuf {
    let mut command = home.command("/bin/sh");
    command.current_dir(home.root()).env("AGENTCTL", binaries::agentctl());
    if let Some(script) = script {
        command.env("SCRIPT", format!("#!/bin/bash\n{script}"));
    }
    let copy = r#"mkdir bin; cp "$AGENTCTL" bin/agentctl"#;
    let write = r#"test -z "$SCRIPT" || { printf '%s\n' "$SCRIPT" > bin/agentd; chmod +x bin/agentd; }"#;
    command.args(["-e", "-c", &format!("{copy}; {write}")]);
    assert!(command.status().expect("a shell runs").success());
    home.root().join("bin/agentctl")
}

fn start(home: &Home, script: Option<&str>) -> Ctl {
    let mut command = home.command(install(home, script));
    command.args(["prompt", "Hi"]);
    if script.is_none() {
        command.env("PATH", home.root().join("nothing"));
    }
    Ctl::start_with(command, Stdio::null())
}

fn run(script: Option<&str>) -> Finished {
    start(&Home::new(), script).finish()
}

/// A daemon with a model, as far as `agentctl` asks.
const MODEL: &str = r#"
read -r line
echo '{"id":"1","type":"response","command":"hello","success":true,"data":{"protocol":1,"daemon":{"name":"agentd","version":"0.1.0","pid":1,"epoch":"e"},"capabilities":[],"limits":{"maxLineBytes":67108864}}}'
read -r line
echo '{"id":"2","type":"response","command":"get_state","success":true,"data":{"model":{"id":"m","name":"m","api":"a","provider":"p"},"thinkingLevel":"off","isStreaming":false,"isCompacting":false,"steeringMode":"all","followUpMode":"all","sessionId":"s","autoCompactionEnabled":true,"messageCount":0,"pendingMessageCount":0}}'
read -r line
echo '{"id":"3","type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}'
echo '{"type":"agent_start"}'
"#;

#[test]
fn a_missing_daemon_is_explained() {
    let done = run(None);
    assert_eq!(done.code, 3, "{done:?}");
    assert_says(&done.stderr, &["agentd", "cargo build", "PATH"]);
}

#[test]
fn a_daemon_that_refuses_to_start_is_quoted() {
    let done = run(Some("echo 'Error: the moon is in the wrong place' >&2; exit 1"));
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &["the moon is in the wrong place", "refused to start"]);
}

#[test]
fn a_daemon_that_breaks_down_at_the_start_is_another_matter() {
    for (script, how) in
        [("exit 101", "exit status: 101"), ("kill -SEGV $$", "signal: 11"), ("exit 0", "exit status: 0")]
    {
        let done = run(Some(script));
        assert_eq!(done.code, 3, "{done:?}");
        assert_says(&done.stderr, &["/bin/agentd could not start", how]);
    }
}

#[test]
fn a_daemon_that_dies_in_the_middle_is_reported() {
    let done = run(Some(&format!("{MODEL}\nkill -KILL $$")));
    assert_eq!(done.code, 3, "{done:?}");
    assert_says(&done.stderr, &["ended before the answer was complete", "signal: 9", "--continue"]);
}

#[test]
fn warnings_of_the_daemon_are_passed_on_to_stderr_alone() {
    let settled = r#"echo '{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"stop"}}'
        echo '{"type":"agent_settled","aborted":false}'; read -r line"#;
    let done = run(Some(&format!("echo 'Warning: odd settings' >&2\n{MODEL}\n{settled}")));
    assert_eq!((done.code, done.stdout.as_str()), (0, ""), "{done:?}");
    assert_eq!(done.stderr, "Warning: odd settings\n");
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let home = Home::new();
    // It takes no notice of anything, the end of its input included.
    let deaf =
        format!("{MODEL}\necho up >&2\nread -r line\necho told >&2\ntrap '' INT TERM HUP\nexec sleep 1000");
    let mut running = start(&home, Some(&deaf));
    running.wait_for_stderr("up");
    running.signal(Signal::INT);
    running.wait_for_stderr("told");
    running.signal(Signal::INT);
    let done = running.finish();
    assert_eq!(done.code, 130, "{done:?}");
}

#[test]
fn a_refused_prompt_keeps_its_advice() {
    let refusal = MODEL.replace(
        r#""success":true,"data":{"disposition":"started"}"#,
        r#""success":false,"error":"No API key found for p.","code":"no_credentials","hint":"Set P_KEY.""#,
    );
    let done = run(Some(&format!("{refusal}\nread -r line")));
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert_eq!(done.stderr, "Error: No API key found for p.\nSet P_KEY.\n");
}
