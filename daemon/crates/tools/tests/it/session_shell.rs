//! Commands of `bash` in one shell that stays.

use std::{sync::Arc, time::Duration};

use agentd_process::{SessionShell, ShellSession};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::bash::{Bench, text};

fn bench() -> Bench {
    Bench::with(|shell, options| {
        options.features.session =
            Some(SessionShell { local: shell.clone(), session: ShellSession::default() });
        options.features.cwd = true;
        options.features.env = true;
    })
}

/// The text of a command that succeeds.
async fn said(bench: &Bench, command: &str) -> String {
    let result = bench.run(command).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.is_error, None, "{}", text(&result));
    text(&result).to_owned()
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z") && !rest.starts_with(" X"))
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_command_finds_what_those_before_have_left() {
    let bench = bench();
    std::fs::create_dir(bench.dir.path().join("below")).unwrap();
    let commands = "cd below; mine=5; export other=6; double() { echo $((2 * $1)); }; alias say='echo said'";
    assert_eq!(said(&bench, commands).await, "(no output)");
    let expected = format!("{}/below\n5 6\n14\nsaid it\n", bench.dir.path().display());
    assert_eq!(said(&bench, "pwd; echo $mine $other; double 7\nsay it").await, expected);
    assert_eq!(said(&bench, "bash -c 'echo $mine $other $PI_SESSION_ID'").await, "6 the-id\n");
    // What is said for one command is for that alone.
    let call = bench
        .call(json!({"command": "pwd; echo $mine $only", "cwd": ".", "env": {"only": "x"}}))
        .await
        .unwrap();
    assert_eq!(text(&call), format!("{}\nx\n", bench.dir.path().display()));
    assert_eq!(said(&bench, "echo $mine $only").await, "5\n");
}

#[tokio::test]
async fn codes_and_output_are_exact() {
    let bench = bench();
    for (command, code, output) in [
        ("(exit 3)", 3, "(no output)"),
        ("echo out; echo err >&2; false", 1, "out\nerr\n"),
        ("printf no-newline; (exit 9)", 9, "no-newline"),
        ("cat; echo \"$(cat)\"", 0, "\n"),
        ("echo 3 >&3", 1, ""),
        ("seq 1 2000 | tail -1", 0, "2000\n"),
    ] {
        let result = bench.run(command).await.unwrap();
        let seen = text(&result);
        match code {
            0 => assert_eq!((seen, result.is_error), (output, None), "{command}"),
            _ => assert!(
                seen.starts_with(output) && seen.ends_with(&format!("Command exited with code {code}")),
                "{command}: {seen}"
            ),
        }
    }
    // A command is inside of no loop or function.
    for command in ["break; echo after", "continue; echo after", "return; echo after"] {
        let result = bench.run(command).await.unwrap();
        let seen = text(&result);
        assert!(seen.contains(": line ") && seen.ends_with("after\n"), "{seen:?}");
        let is_told = seen.contains("only meaningful in a") || seen.contains("can only `return'");
        assert!(is_told, "{seen:?}");
    }
    let broken = bench.run("if then").await.unwrap();
    assert!(text(&broken).contains("syntax error") && text(&broken).ends_with("code 2"), "{}", text(&broken));
    let long = said(&bench, "seq 1 100000").await;
    assert!(long.contains("100000\n\n[Showing lines "), "{}", &long[long.len() - 200..]);
}

#[tokio::test]
async fn a_shell_that_ends_is_replaced_where_it_was() {
    let bench = bench();
    std::fs::create_dir(bench.dir.path().join("below")).unwrap();
    said(&bench, "cd below; mine=5").await;
    let ended = bench.run("echo bye; exit 4").await.unwrap();
    assert_eq!(text(&ended), "bye\n\n\nCommand exited with code 4");
    let next = said(&bench, "echo \"[$mine]\"; pwd").await;
    let below = format!("{}/below", bench.dir.path().display());
    assert_eq!(
        next,
        format!(
            "[The shell of earlier commands is gone: it exited with code 4. A new one was started in {below}; variables and functions of \
             before are not there.]\n\n[]\n{below}\n"
        )
    );
    assert_eq!(said(&bench, "echo once").await, "once\n");
}

#[tokio::test]
async fn a_timeout_ends_the_command_and_spares_what_earlier_ones_left() {
    let bench = bench();
    let server = said(&bench, "sleep 1000 & echo $!").await;
    let command = "setsid sleep 1001 & echo $! > pid; echo begun; sleep 1002; touch after";
    let late = bench.call(json!({"command": command, "timeout": 1})).await.unwrap_err();
    assert_eq!(late.0, "begun\n\n\nCommand timed out after 1 seconds");
    let newer = std::fs::read_to_string(bench.dir.path().join("pid")).unwrap();
    until("nothing of the command is left", || !is_alive(&newer)).await;
    assert!(!bench.dir.path().join("after").exists(), "the rest of the command did not run");
    assert!(is_alive(&server), "an earlier command started it");
    let next = said(&bench, "echo on").await;
    assert!(next.starts_with("[The shell of earlier commands is gone: its command timed out."), "{next}");
    bench.group.terminate(Duration::ZERO).await;
    until("nothing outlives the session", || !is_alive(&server) && bench.group.running() == 0).await;
}

#[tokio::test]
async fn an_abort_kills_the_tree_at_once() {
    let bench = Arc::new(bench());
    said(&bench, "true").await;
    let running = tokio::spawn({
        let bench = Arc::clone(&bench);
        async move { bench.run("(trap '' TERM INT; echo $BASHPID > pid; sleep 1000) & wait").await }
    });
    let pid = bench.dir.path().join("pid");
    until("it runs", || std::fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'))).await;
    let since = Instant::now();
    bench.cancel.cancel();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.0, "Command aborted");
    assert!(since.elapsed() < Duration::from_millis(750), "{:?}", since.elapsed());
    assert!(!is_alive(&std::fs::read_to_string(&pid).unwrap()));
}

#[tokio::test]
async fn a_command_beside_another_has_a_shell_of_its_own() {
    let bench = bench();
    said(&bench, "mine=5; mkfifo go").await;
    let (first, second) = tokio::join!(bench.run("cat go; echo first $mine"), async {
        bench.run("echo \"second [$mine]\"; echo > go").await
    });
    assert_eq!(text(&second.unwrap()), "second []\n");
    assert_eq!(text(&first.unwrap()), "\nfirst 5\n");
}
