//! Commands that use more than they may.

use agentd_process::{
    LimitReached, LimitedResource, Process, ProcessGroup, ProcessLimits, ShellCommand, ShellOutcome,
    ShellRun, StopCause,
};

use crate::fixture::{is_alive, launcher, read_all, read_pids, script, shell, soon, until, until_dead};

fn group(limits: ProcessLimits) -> ProcessGroup {
    let group = launcher().group();
    group.set_limits(limits);
    group
}

async fn spawn(group: &ProcessGroup, text: &str) -> Process {
    soon(group.spawn(script(text))).await.expect("a process")
}

/// Runs a shell command to its end; returns what it wrote as well.
async fn run(group: &ProcessGroup, command: ShellCommand) -> (Vec<u8>, ShellOutcome) {
    let mut run = ShellRun::start(group, command).await.expect("a shell");
    let mut output = Vec::new();
    while let Some(chunk) = soon(run.next()).await {
        output.extend_from_slice(chunk);
    }
    (output, run.finish())
}

fn reached(resource: LimitedResource, limit: u64) -> Option<StopCause> {
    Some(StopCause::Limit(LimitReached { resource, limit, together: false }))
}

/// What bombs are made of here, so that one which nothing stops does no harm: it doubles this often, and then waits.
const DOUBLINGS: u32 = 10;

#[tokio::test]
async fn a_fork_bomb_ends() {
    let group = group(ProcessLimits { processes: Some(200), ..ProcessLimits::default() });
    let bomb =
        "bomb() { if [ $1 = 0 ]; then exec sleep 1000; fi; bomb $(($1 - 1)) | bomb $(($1 - 1)) & wait; }";
    let (_, outcome) = run(&group, shell(&format!("{bomb}; bomb {DOUBLINGS}; sleep 1000"))).await;
    assert_eq!(outcome.stopped, reached(LimitedResource::Processes, 200));
    until("nothing is left", || group.running() == 0).await;
}

#[tokio::test]
async fn a_fork_bomb_whose_processes_all_leave_the_session_ends() {
    let group = group(ProcessLimits { processes: Some(200), ..ProcessLimits::default() });
    let dir = tempfile::tempdir().expect("a folder");
    let bomb = dir.path().join("bomb");
    let script =
        "[ $1 = 0 ] && exec sleep 1000; setsid sh \"$0\" $(($1 - 1)) & setsid sh \"$0\" $(($1 - 1)) & wait";
    std::fs::write(&bomb, script).expect("a script");
    let (_, outcome) = run(&group, shell(&format!("sh {} {DOUBLINGS}; sleep 1000", bomb.display()))).await;
    assert_eq!(outcome.stopped, reached(LimitedResource::Processes, 200));
    until("nothing is left", || group.running() == 0).await;
}

#[tokio::test]
async fn a_command_within_its_limits_is_left_alone() {
    let limits = ProcessLimits {
        processes: Some(50),
        memory_bytes: Some(1 << 30),
        cpu_seconds: Some(60),
        output_bytes: Some(2_000_000),
    };
    let group = group(limits);
    let text = "for i in 1 2 3 4 5; do sleep 0.3 & done; head -c 2000000 /dev/zero; wait; exit 4";
    let (output, outcome) = run(&group, shell(text)).await;
    assert_eq!(
        (output.len(), outcome.stopped, outcome.exit.map(|exit| exit.code)),
        (2_000_000, None, Some(4))
    );
}

#[tokio::test]
async fn too_much_memory_ends_a_command() {
    let group = group(ProcessLimits { memory_bytes: Some(50 << 20), ..ProcessLimits::default() });
    let hog = "x=$(head -c 1000000 /dev/zero | tr '\\0' x); while :; do y=$y$x; done";
    let (_, outcome) = run(&group, shell(hog)).await;
    assert_eq!(outcome.stopped, reached(LimitedResource::Memory, 50 << 20));
    assert_eq!(outcome.exit.and_then(|exit| exit.signal), Some(9));
}

#[tokio::test]
async fn processor_time_counts_for_all_that_a_command_started() {
    let group = group(ProcessLimits { cpu_seconds: Some(1), ..ProcessLimits::default() });
    // None of them uses a second by itself.
    let text = "while :; do timeout 0.2 sh -c 'while :; do :; done'; done";
    let (_, outcome) = run(&group, shell(text)).await;
    assert_eq!(outcome.stopped, reached(LimitedResource::Cpu, 1));
}

#[tokio::test]
async fn output_over_its_limit_is_not_given() {
    let group = group(ProcessLimits { output_bytes: Some(100_000), ..ProcessLimits::default() });
    let (output, outcome) = run(&group, shell("head -c 100000 /dev/zero; yes")).await;
    assert_eq!(output, vec![0; 100_000]);
    assert_eq!(outcome.stopped, reached(LimitedResource::Output, 100_000));
}

#[tokio::test]
async fn output_in_the_background_counts_too() {
    let group = group(ProcessLimits { output_bytes: Some(100_000), ..ProcessLimits::default() });
    let mut process = spawn(&group, "setsid yes & echo $! ; echo ready").await;
    let pids = read_pids(&mut process.output).await;
    soon(process.wait()).await;
    read_all(&mut process.output).await;
    let limit = LimitReached { resource: LimitedResource::Output, limit: 100_000, together: false };
    assert_eq!(process.limit_reached(), Some(limit));
    until_dead(&pids).await;
}

#[tokio::test]
async fn commands_of_a_session_count_together() {
    let group = group(ProcessLimits { processes: Some(30), ..ProcessLimits::default() });
    let many =
        |count: u32| format!("echo $$; for i in $(seq {count}); do sleep 1000 & done; echo ready; wait");
    let mut small = spawn(&group, &many(5)).await;
    let mut large = spawn(&group, &many(20)).await;
    let spared = read_pids(&mut small.output).await;
    let ended = read_pids(&mut large.output).await;
    assert_eq!(large.limit_reached(), None, "27 are not too many");
    let mut third = spawn(&group, &many(10)).await;
    let rest = read_pids(&mut third.output).await;
    assert_eq!(soon(large.wait()).await.signal, Some(9));
    let limit = LimitReached { resource: LimitedResource::Processes, limit: 30, together: true };
    assert_eq!(large.limit_reached(), Some(limit), "the largest goes");
    until_dead(&ended).await;
    assert!(spared.union(&rest).all(|pid| is_alive(*pid)), "and no other");
    assert_eq!((small.limit_reached(), third.limit_reached()), (None, None));
}

#[tokio::test]
async fn what_a_command_starts_has_the_usual_precedence() {
    let group = group(ProcessLimits { processes: Some(1000), ..ProcessLimits::default() });
    let own = std::process::Command::new("nice").output().expect("its output").stdout;
    let mut process = spawn(&group, "nice").await;
    assert_eq!(read_all(&mut process.output).await.as_bytes(), own);
}
