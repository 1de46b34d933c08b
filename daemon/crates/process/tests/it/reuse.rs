//! Supervisors that take one command after the other.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, time::Duration};

use agentd_process::{CommandSpec, CommandStreams, ExitStatus, ProcessGroup, ProcessLimits};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;

use crate::fixture::{
    freeze, is_alive, kill_9, launcher, parent_of, read_all, script, soon, until, until_dead,
};

/// Runs a command to its end, and returns what it wrote.
async fn output(group: &ProcessGroup, text: &str) -> String {
    let mut process = soon(group.spawn(script(text))).await.expect("a process");
    let output = read_all(&mut process.output).await;
    soon(process.gone()).await;
    output
}

/// The supervisor of a command that leaves nothing behind.
async fn supervisor(group: &ProcessGroup) -> i32 {
    output(group, "echo $PPID").await.trim().parse().expect("a process id")
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("an id"), signal).expect("a signal");
}

#[tokio::test]
async fn the_next_command_of_any_group_gets_the_same_one() {
    let launcher = launcher();
    let (one, other) = (launcher.group(), launcher.group());
    let first = supervisor(&one).await;
    assert_eq!(supervisor(&one).await, first);
    assert_eq!(supervisor(&other).await, first);
    assert_eq!((one.running(), other.running()), (0, 0));
}

#[tokio::test]
async fn one_whose_command_left_something_is_not_given_another() {
    let launcher = launcher();
    let group = launcher.group();
    let mut process =
        soon(group.spawn(script("sleep 1000 > /dev/null 2>&1 & echo $PPID $!"))).await.expect("a process");
    let said = read_all(&mut process.output).await;
    soon(process.wait()).await;
    let [busy, left] = said.split_whitespace().collect::<Vec<_>>()[..] else { panic!("two ids: {said}") };
    assert_ne!(supervisor(&group).await.to_string(), busy);
    soon(process.kill()).await;
    until_dead(&BTreeSet::from([left.parse().expect("an id")])).await;
}

#[tokio::test]
async fn a_killed_command_does_not_cost_its_supervisor() {
    let group = launcher().group();
    let first = supervisor(&group).await;
    let process = soon(group.spawn(script("sleep 1000"))).await.expect("a process");
    soon(process.kill()).await;
    assert_eq!(process.exit(), Some(ExitStatus::signaled(9)));
    assert_eq!(supervisor(&group).await, first);
}

#[tokio::test]
async fn an_order_that_comes_too_late_does_not_meet_the_next_command() {
    let group = launcher().group();
    let first = soon(group.spawn(script("echo $PPID"))).await.expect("a process");
    soon(first.gone()).await;
    let mut next = soon(group.spawn(script("read line; echo well"))).await.expect("a process");
    first.start_kill();
    first.terminate_all();
    drop(first);
    assert_eq!(read_all(&mut next.output).await, "well\n");
}

#[tokio::test]
async fn a_killed_one_is_replaced() {
    let group = launcher().group();
    for _ in 0..3 {
        let idle = supervisor(&group).await;
        kill_9(idle.unsigned_abs());
        assert_ne!(supervisor(&group).await, idle);
    }
}

#[tokio::test]
async fn a_stopped_one_is_told_to_go_on() {
    let group = launcher().group();
    let idle = supervisor(&group).await;
    signal(idle, Signal::STOP);
    assert_eq!(supervisor(&group).await, idle);
}

#[tokio::test]
async fn a_program_that_cannot_start_does_not_cost_it() {
    let group = launcher().group();
    let first = supervisor(&group).await;
    let mut missing = script("");
    missing.program = "/no/such/program".into();
    soon(group.spawn(missing)).await.expect_err("no program");
    until("the group forgets it", || group.running() == 0).await;
    assert_eq!(supervisor(&group).await, first);
}

#[tokio::test]
async fn it_ends_when_nothing_needs_it_for_a_while() {
    let launcher = launcher();
    let group = launcher.group();
    let idle = supervisor(&group).await;
    let frozen = freeze();
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(is_alive(idle));
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(frozen);
    tokio::time::resume();
    until_dead(&BTreeSet::from([idle])).await;
    assert_ne!(supervisor(&group).await, idle);
}

#[tokio::test]
async fn it_ends_with_its_launcher() {
    let launcher = launcher();
    let group = launcher.group();
    let idle = supervisor(&group).await;
    drop((launcher, group));
    until_dead(&BTreeSet::from([idle])).await;
}

#[tokio::test]
async fn one_without_its_guard_takes_no_other_command() {
    let launcher = launcher();
    let group = launcher.group();
    let command = CommandSpec { streams: CommandStreams::InputOutput, ..script("echo $PPID; read line") };
    let mut process = soon(group.spawn(command)).await.expect("a process");
    let mut supervisor_id = String::new();
    while !supervisor_id.ends_with('\n') {
        supervisor_id.push(soon(process.output.read_u8()).await.expect("its output").into());
    }
    let first: u32 = supervisor_id.trim().parse().expect("an id");
    kill_9(launcher.guard_pid().await.expect("a guard"));
    until("this process gets the supervisor", || parent_of(first) == Some(std::process::id())).await;
    drop(process.take_input());
    soon(process.gone()).await;
    until("it is reaped", || parent_of(first).is_none()).await;
    assert_ne!(supervisor(&group).await.unsigned_abs(), first);
}

#[tokio::test]
async fn processor_time_of_one_command_is_not_that_of_the_next() {
    let group = launcher().group();
    group.set_limits(ProcessLimits { cpu_seconds: Some(1), ..ProcessLimits::default() });
    // 0.7 seconds each.
    let burn = "echo $PPID; while read -r line < /proc/$$/stat; set -- ${line##*) }; [ $((${12} + ${13})) -lt 70 ]; do :; done";
    let mut supervisors = BTreeSet::new();
    for _ in 0..3 {
        let mut process = soon(group.spawn(script(burn))).await.expect("a process");
        supervisors.insert(read_all(&mut process.output).await);
        assert_eq!(soon(process.wait()).await, ExitStatus::exited(0));
        assert_eq!(process.limit_reached(), None);
        soon(process.gone()).await;
    }
    assert_eq!(supervisors.len(), 1, "{supervisors:?}");
}

#[tokio::test]
async fn every_command_has_the_precedence_of_the_daemon() {
    let group = launcher().group();
    // With limits, supervisors take precedence where they may.
    group.set_limits(ProcessLimits { processes: Some(1000), ..ProcessLimits::default() });
    let own = rustix::process::getpriority_process(None).expect("its own");
    for _ in 0..3 {
        assert_eq!(output(&group, "nice").await, format!("{own}\n"));
    }
    group.set_limits(ProcessLimits::default());
    assert_eq!(output(&group, "nice").await, format!("{own}\n"));
}

#[tokio::test]
async fn a_script_that_does_not_name_its_interpreter_is_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("script");
    fs::write(&path, "echo run\n").expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("making it executable");
    let mut command = script("");
    (command.program, command.args) = (path.into(), Vec::new());
    let mut process = soon(launcher().group().spawn(command)).await.expect("a process");
    assert_eq!(read_all(&mut process.output).await, "run\n");
}
