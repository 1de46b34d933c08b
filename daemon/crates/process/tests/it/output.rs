//! Much output.

use std::{fs, path::Path};

use agentd_process::{
    CleanedOutput, CleanedRun, CommandStreams, FullOutput, LocalShell, OutputTail, ProcessGroup, ShellJob,
    ShellRun,
};
use agentd_protocol::command::{Work, WorkKind};
use tokio_util::sync::CancellationToken;

use crate::fixture::{env, launcher, shell, soon};

/// Kilobytes of memory that this process has taken so far at most.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

#[tokio::test]
async fn a_flood_is_kept_whole_on_disk_and_small_in_memory() {
    const BYTES: u64 = 100_000_000;
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let before = peak_memory();
    let mut run = soon(ShellRun::start(&group, shell(&format!("yes 0123456789 | head -c {BYTES}"))))
        .await
        .expect("a run");
    let mut tail = OutputTail::new(dir.path().into());
    while let Some(chunk) = soon(run.next()).await {
        tail.push(chunk).await;
    }
    tail.finish().await;
    assert_eq!(run.finish().exit.map(|exit| exit.code), Some(0));
    let FullOutput::File(path) = tail.full_output() else { panic!("no file") };
    assert_eq!(fs::metadata(path).expect("the file").len(), BYTES);
    assert_eq!(tail.snapshot().total_bytes, BYTES);
    assert_eq!(tail.snapshot().output_lines, 2000);
    let grown = peak_memory() - before;
    assert!(grown < 40_000, "memory grew by {grown} KB");
}

/// Runs a client's command to its end; its text comes in `pieces`.
async fn cleaned(group: &ProcessGroup, script: &str, dir: &Path, pieces: &mut Vec<String>) -> CleanedOutput {
    let shell =
        LocalShell { group: group.clone(), path: None, env: env().into(), sandbox: None, snapshot: None };
    let job = ShellJob {
        command: script.into(),
        cwd: "/".into(),
        base: None,
        env: Vec::new(),
        timeout: None,
        cancel: CancellationToken::new(),
        streams: CommandStreams::Output,
        work: Work { kind: WorkKind::Bash, id: None, name: None },
        outside_sandbox: false,
    };
    let mut run = CleanedRun::start(&shell, job, dir.into()).await.expect("a run");
    while let Some(piece) = run.next().await {
        pieces.push(piece);
    }
    run.finish().expect("a known end")
}

#[tokio::test]
async fn output_of_a_client_command_is_cleaned_across_pieces() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let mut pieces = Vec::new();
    let script =
        r"printf 'a\033['; sleep 0.05; printf '31mb\r\n\xe6\xbc'; sleep 0.05; printf '\xa2\0c'; exit 4";
    let seen = soon(cleaned(&group, script, dir.path(), &mut pieces)).await;
    assert_eq!(seen.output.content, "ab\n漢c");
    assert_eq!(pieces.concat(), "ab\n漢c");
    assert!(pieces.iter().all(|piece| !piece.is_empty()));
    assert_eq!(seen.outcome.exit.map(|exit| exit.code), Some(4));
    assert_eq!(seen.full_output, None);
}

#[tokio::test]
async fn long_output_of_a_client_command_is_in_a_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let seen = soon(cleaned(&group, "seq 3000", dir.path(), &mut Vec::new())).await;
    assert!(seen.output.truncated && seen.output.content.starts_with("1001\n"));
    let all: String = (1..=3000).map(|number| format!("{number}\n")).collect();
    assert_eq!(fs::read_to_string(seen.full_output.expect("a file")).expect("the file"), all);
}
