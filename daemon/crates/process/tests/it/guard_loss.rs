//! Deaths of the daemon, of the guard, and of the process that watches a command.

use std::process::Stdio;

use agentd_process::ExitStatus;

use crate::fixture::{
    HELPER, escape_artists, is_alive, kill_9, launcher, parent_of, read_all, read_pids, script, soon, until,
    until_dead,
};

/// The parent of a process.
fn parent(pid: i32) -> u32 {
    parent_of(u32::try_from(pid).expect("an id")).expect("a process")
}

#[tokio::test]
async fn nothing_outlives_a_daemon_that_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut daemon = std::process::Command::new(HELPER)
        .arg("daemon")
        .arg(escape_artists(dir.path()) + "wait")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a daemon");
    let stdout = daemon.stdout.take().expect("its output");
    let mut stdout = tokio::net::unix::pipe::Receiver::from_owned_fd(stdout.into()).expect("a pipe");
    let mut pids = read_pids(&mut stdout).await;
    let shell = *pids.last().expect("the shell");
    let supervisor = parent(shell);
    pids.extend(
        [supervisor, parent(i32::try_from(supervisor).expect("an id"))]
            .map(|pid| i32::try_from(pid).expect("an id")),
    );
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    daemon.kill().expect("killing it");
    daemon.wait().expect("its end");
    until_dead(&pids).await;
}

#[tokio::test]
async fn commands_outlive_the_guard_and_the_next_gets_a_new_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let launcher = launcher();
    let group = launcher.group();
    let mut process =
        soon(group.spawn(script(&(escape_artists(dir.path()) + "cat; wait")))).await.expect("a process");
    let pids = read_pids(&mut process.output).await;
    let guard = launcher.guard_pid().await.expect("a guard");
    kill_9(guard);

    let mut next = soon(group.spawn(script("echo next"))).await.expect("a process of the next guard");
    assert_eq!(read_all(&mut next.output).await, "next\n");
    assert_ne!(launcher.guard_pid().await, Some(guard));
    assert!(pids.iter().all(|pid| is_alive(*pid)), "the command goes on");
    soon(process.kill()).await;
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "and can be killed as ever");
}

#[tokio::test]
async fn a_command_whose_watcher_is_killed_is_killed_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let mut process =
        soon(group.spawn(script(&(escape_artists(dir.path()) + "wait")))).await.expect("a process");
    let pids = read_pids(&mut process.output).await;
    kill_9(parent(process.pid().expect("its id")));
    assert_eq!(soon(process.wait()).await, ExitStatus::signaled(9));
    until_dead(&pids).await;
    until("the group forgets it", || group.running() == 0).await;
}

#[tokio::test]
async fn nothing_outlives_the_guard_and_the_watcher_together() {
    let dir = tempfile::tempdir().expect("a folder");
    let launcher = launcher();
    let group = launcher.group();
    let mut process =
        soon(group.spawn(script(&(escape_artists(dir.path()) + "wait")))).await.expect("a process");
    let pids = read_pids(&mut process.output).await;
    let watcher = parent(process.pid().expect("its id"));
    kill_9(launcher.guard_pid().await.expect("a guard"));
    kill_9(watcher);
    assert_eq!(soon(process.wait()).await, ExitStatus::signaled(9));
    until_dead(&pids).await;
    let next = soon(group.spawn(script("exit 8"))).await.expect("a process");
    assert_eq!(soon(next.wait()).await.code, 8);
}

#[tokio::test]
async fn no_zombie_is_left_of_a_supervisor_without_a_guard() {
    let launcher = launcher();
    let group = launcher.group();
    let process = soon(group.spawn(script("sleep 1000"))).await.expect("a process");
    let watcher = parent(process.pid().expect("its id"));
    let guard = launcher.guard_pid().await.expect("a guard");
    kill_9(guard);
    until("this process gets the supervisor", || parent_of(watcher) == Some(std::process::id())).await;
    soon(process.kill()).await;
    until("it is reaped", || parent_of(watcher).is_none()).await;
}

#[tokio::test]
async fn the_guard_ends_with_its_launcher() {
    let launcher = launcher();
    assert_eq!(launcher.guard_pid().await, None, "not before it is needed");
    let group = launcher.group();
    let process = soon(group.spawn(script("true"))).await.expect("a process");
    soon(process.wait()).await;
    let guard = i32::try_from(launcher.guard_pid().await.expect("a guard")).expect("an id");
    assert!(is_alive(guard));
    drop((process, group, launcher));
    until_dead(&[guard].into()).await;
}

#[tokio::test]
async fn signals_of_a_terminal_do_not_end_the_guard() {
    let launcher = launcher();
    let group = launcher.group();
    let process = soon(group.spawn(script("sleep 1000"))).await.expect("a process");
    let guard = launcher.guard_pid().await.expect("a guard");
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::HUP, rustix::process::Signal::TERM]
    {
        for pid in [guard, parent(process.pid().expect("its id"))] {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("an id")).expect("an id");
            rustix::process::kill_process(pid, signal).expect("a signal");
        }
    }
    let next = soon(group.spawn(script("exit 7"))).await.expect("a process");
    assert_eq!(soon(next.wait()).await.code, 7);
    assert_eq!(launcher.guard_pid().await, Some(guard), "the same guard");
    assert!(process.exit().is_none());
}

#[tokio::test]
async fn the_guard_run_by_hand_says_so() {
    let output =
        std::process::Command::new(HELPER).arg("guard").stdin(Stdio::null()).output().expect("its output");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no need to run it by hand"));
}
