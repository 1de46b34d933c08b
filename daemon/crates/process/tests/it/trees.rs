//! Ending everything that a command started.

use std::time::Duration;

use agentd_process::{ExitStatus, SpawnError};

use crate::fixture::{
    escape_artists, is_alive, launcher, read_all, read_pids, script, soon, until, until_dead,
};

#[tokio::test]
async fn killing_a_command_ends_whatever_got_away_from_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let command = script(&(escape_artists(dir.path()) + "wait"));
    let mut process = soon(group.spawn(command)).await.expect("a process");
    let pids = read_pids(&mut process.output).await;
    assert_eq!(pids.len(), 5);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    soon(process.kill()).await;
    let alive: Vec<_> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(alive.is_empty(), "still there when `kill` returns: {alive:?}");
    assert_eq!(process.exit(), Some(ExitStatus::signaled(9)));
    until("the group forgets it", || group.running() == 0).await;
}

#[tokio::test]
async fn a_process_that_forks_without_end_is_killed() {
    let group = launcher().group();
    // Each one starts its successor in a new session and ends: there is never a process to hold on to for long.
    let chain = "f() { setsid sh -c \"$1\" sh \"$1\" & }; echo ready; \
        hop='setsid sh -c \"$1\" sh \"$1\" & exit'; f \"$hop\"; wait; while :; do sh -c : & sh -c : & wait; done";
    let mut process = soon(group.spawn(script(chain))).await.expect("a process");
    read_pids(&mut process.output).await;
    soon(process.kill()).await;
    soon(process.gone()).await;
    // The pipe is closed: nobody is left who could write to it.
    read_all(&mut process.output).await;
}

#[tokio::test]
async fn dropping_a_running_process_kills_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let command = script(&(escape_artists(dir.path()) + "wait"));
    let mut process = soon(group.spawn(command)).await.expect("a process");
    let pids = read_pids(&mut process.output).await;
    drop(process);
    until_dead(&pids).await;
}

#[tokio::test]
async fn what_a_finished_command_left_runs_until_its_group_is_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let mut process = soon(group.spawn(script(&escape_artists(dir.path())))).await.expect("a process");
    let shell = process.pid().expect("its id");
    let mut pids = read_pids(&mut process.output).await;
    assert_eq!(soon(process.wait()).await, ExitStatus::exited(0));
    assert!(pids.remove(&shell));
    drop(process);
    assert_eq!(group.running(), 1);
    assert!(pids.iter().all(|pid| is_alive(*pid)), "still there after the command");

    // One of them ignores the request to end, and is killed when the grace is over.
    soon(group.terminate(Duration::from_millis(200))).await;
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "gone when `terminate` returns");
    let error = soon(group.spawn(script("true"))).await.expect_err("the group is closed");
    assert!(matches!(error, SpawnError::Closed), "{error}");
}

#[tokio::test]
async fn ending_a_group_lets_processes_clean_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("cleaned");
    let group = launcher().group();
    let polite = format!(
        "trap 'echo yes > {}; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
        file.display()
    );
    let command = script(&format!("setsid sh -c \"{polite}\" & wait"));
    let mut process = soon(group.spawn(command)).await.expect("a process");
    read_pids(&mut process.output).await;
    soon(group.terminate(Duration::from_secs(15))).await;
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "yes\n");
    assert!(process.exit().is_some());
}

#[tokio::test]
async fn stopped_processes_end_with_their_group() {
    let group = launcher().group();
    let mut process =
        soon(group.spawn(script("echo ready; kill -STOP $$; sleep 1000"))).await.expect("a process");
    read_pids(&mut process.output).await;
    soon(group.terminate(Duration::from_secs(15))).await;
    assert_eq!(process.exit(), Some(ExitStatus::signaled(15)));
}

#[tokio::test]
async fn the_last_handle_of_a_group_takes_everything_with_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let launcher = launcher();
    let group = launcher.group();
    let mut process = soon(group.spawn(script(&escape_artists(dir.path())))).await.expect("a process");
    let pids = read_pids(&mut process.output).await;
    soon(process.wait()).await;
    drop(process);
    drop(group);
    until_dead(&pids).await;
}

#[tokio::test]
async fn groups_are_independent() {
    let launcher = launcher();
    let (one, other) = (launcher.group(), launcher.group());
    let mut process = soon(other.spawn(script("echo ready; sleep 0.2; echo done"))).await.expect("a process");
    read_pids(&mut process.output).await;
    soon(one.terminate(Duration::ZERO)).await;
    assert_eq!(read_all(&mut process.output).await, "done\n");
    assert_eq!(soon(process.wait()).await, ExitStatus::exited(0));
}
