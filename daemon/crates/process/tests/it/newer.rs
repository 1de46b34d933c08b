//! Ending what a long-lived command started meanwhile, and not the command.

use agentd_process::CommandStreams;
use tokio::io::AsyncWriteExt as _;

use crate::fixture::{is_alive, launcher, read_pids, script, soon, until, until_dead};

/// A shell that runs the lines that it reads.
const READER: &str = "trap : INT; while read -r line; do eval \"$line\"; done";

#[tokio::test]
async fn only_what_is_newer_than_the_mark_is_killed() {
    let group = launcher().group();
    let spec = agentd_process::CommandSpec { streams: CommandStreams::InputOutput, ..script(READER) };
    let mut process = soon(group.spawn(spec)).await.expect("a process");
    let mut input = process.take_input().expect("its input");
    let base = soon(process.mark()).await;
    soon(input.write_all(b"sleep 1000 & echo $!; echo ready\n")).await.expect("a line");
    let older = read_pids(&mut process.output).await;
    let mark = soon(process.mark()).await;
    soon(input.write_all(b"(setsid sleep 1000 & echo $!); sleep 1000 & echo $!; echo ready\n"))
        .await
        .expect("a line");
    let newer = read_pids(&mut process.output).await;
    assert_eq!(newer.len(), 2);
    soon(process.kill_newer(&mark)).await;
    until_dead(&newer).await;
    assert!(older.iter().all(|pid| is_alive(*pid)), "it was there before");
    assert_eq!(process.exit(), None, "the command itself goes on");

    soon(process.interrupt(&base)).await;
    assert!(older.iter().all(|pid| is_alive(*pid)), "an interrupt is for the command alone");
    soon(process.kill_own()).await;
    soon(process.wait()).await;
    assert!(older.iter().all(|pid| is_alive(*pid)), "what it started before is left");
    process.leave_running();
    group.terminate(std::time::Duration::ZERO).await;
    until_dead(&older).await;
}

#[tokio::test]
async fn one_command_may_have_less_memory_than_the_group() {
    let group = launcher().group();
    let eater = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}; sleep 1000";
    let process = soon(group.with_memory_limit(60_000_000).spawn(script(eater))).await.expect("a process");
    soon(process.wait()).await;
    let reached = process.limit_reached().expect("a limit");
    assert_eq!(reached.limit, 60_000_000);
    until("nothing of it is left", || group.running() == 0).await;
}
