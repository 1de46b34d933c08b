//! Starts things, and finds out what is left of them.

use std::{collections::BTreeSet, ffi::OsString, fs, path::Path, time::Duration};

use agentd_process::{CommandSpec, CommandStreams, GuardCommand, Launcher, OutputPipe, ShellCommand};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

pub(crate) const HELPER: &str = env!("CARGO_BIN_EXE_agentd-process-test-helper");

/// No test waits longer than this for anything.
const TIME_LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn launcher() -> Launcher {
    Launcher::new(GuardCommand { program: HELPER.into(), args: vec!["guard".into()] })
}

pub(crate) fn env() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

/// `script`, run by the system's shell.
pub(crate) fn script(script: &str) -> CommandSpec {
    CommandSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: env(),
        streams: CommandStreams::Output,
        sandbox: None,
    }
}

/// `script` for [`agentd_process::ShellRun`].
pub(crate) fn shell(script: &str) -> ShellCommand {
    ShellCommand {
        shell: "/bin/bash".into(),
        command: script.into(),
        cwd: "/".into(),
        env: env(),
        timeout: None,
        cancel: CancellationToken::new(),
        streams: CommandStreams::Output,
        sandbox: None,
    }
}

/// Waits for `future`, but not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(TIME_LIMIT, future).await.expect("this should not take so long")
}

/// Everything that a command writes until its output is closed.
pub(crate) async fn read_all(output: &mut OutputPipe) -> String {
    let mut bytes = Vec::new();
    soon(output.read_to_end(&mut bytes)).await.expect("reading a pipe");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Reads up to and including the line `ready`, and returns the numbers that came before.
pub(crate) async fn read_pids(output: &mut (impl AsyncRead + Unpin)) -> BTreeSet<i32> {
    let mut text = String::new();
    while !text.ends_with("ready\n") {
        let byte = soon(output.read_u8()).await.expect("the line `ready`");
        text.push(char::from(byte));
    }
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Whether a process runs (one that has ended and waits to be reaped does not).
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z") && !rest.starts_with(" X"))
}

/// The parent of a process, also of one that waits to be reaped; `None` when there is no such process.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until `condition` holds: for changes that nothing announces, such as the end of a stranger's process.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIME_LIMIT, "not within {TIME_LIMIT:?}: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn until_dead(pids: &BTreeSet<i32>) {
    assert!(!pids.is_empty(), "nothing was started");
    let alive = || pids.iter().filter(|pid| is_alive(**pid)).collect::<Vec<_>>();
    until("all processes are gone", || alive().is_empty()).await;
}

/// A script that leaves a process in each of the ways in which processes get away, and prints all their ids.
///
/// The pids go through files, since what daemonises itself cannot tell its parent.
pub(crate) fn escape_artists(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "sleep 1000 & echo $!
        setsid sh -c 'echo $$ > {dir}/a.tmp; mv {dir}/a.tmp {dir}/a; exec sleep 1000' &
        (setsid sh -c 'sh -c \"echo \\$\\$ > {dir}/b.tmp; mv {dir}/b.tmp {dir}/b; exec sleep 1000\" &' &)
        sh -c 'trap \"\" TERM HUP INT; echo $$ > {dir}/c.tmp; mv {dir}/c.tmp {dir}/c; while :; do sleep 1000; done' \
            > /dev/null 2>&1 < /dev/null &
        while [ ! -e {dir}/a ] || [ ! -e {dir}/b ] || [ ! -e {dir}/c ]; do sleep 0.01; done
        cat {dir}/a {dir}/b {dir}/c; echo $$
        echo ready
        "
    )
}

pub(crate) fn kill_9(pid: u32) {
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killing a process");
}

/// A clock that stands still, but for `tokio::time::advance`, until this is dropped. However busy the machine is, no
/// timer fires before its time then.
pub(crate) struct Frozen(
    #[expect(dead_code, reason = "what counts is when it is dropped")] std::sync::mpsc::Sender<()>,
);

pub(crate) fn freeze() -> Frozen {
    tokio::time::pause();
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    // A paused clock jumps to the next timer when there is nothing to do; blocking work in progress prevents that.
    tokio::task::spawn_blocking(move || receiver.recv());
    Frozen(sender)
}
