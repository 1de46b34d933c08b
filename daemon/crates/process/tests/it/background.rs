//! Commands in the background.

use std::{path::PathBuf, time::Duration};

use agentd_process::{
    BackgroundError, BackgroundJob, BackgroundLimits, BackgroundProcesses, BackgroundState, CommandStreams,
    EndedBy, LocalShell, ShellJob,
};
use agentd_protocol::command::{Work, WorkKind};
use tokio_util::sync::CancellationToken;

use crate::fixture::launcher;

/// Nothing in these tests takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

const LIMITS: BackgroundLimits = BackgroundLimits { running: 2, keep_bytes: 1000, file_bytes: 5000 };

struct Bench {
    list: BackgroundProcesses,
    shell: LocalShell,
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let group = launcher().group();
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        let shell = LocalShell { group: group.clone(), path: None, env: [path].into(), sandbox: None };
        Self { list: BackgroundProcesses::new(group, 4), shell, dir: tempfile::tempdir().unwrap() }
    }

    fn job(&self, command: &str) -> BackgroundJob {
        let job = ShellJob {
            command: command.into(),
            cwd: PathBuf::from("/"),
            base: None,
            env: Vec::new(),
            timeout: None,
            cancel: CancellationToken::new(),
            streams: CommandStreams::Output,
            work: Work { kind: WorkKind::Tool, id: None, name: None },
            outside_sandbox: false,
        };
        BackgroundJob { label: command.into(), job, outputs: self.dir.path().into() }
    }
}

#[tokio::test]
async fn names_count_on_and_ends_are_told_once() {
    let bench = Bench::new();
    let process = bench.list.start(&bench.shell, bench.job("echo a; exit 3"), LIMITS).await.unwrap();
    assert_eq!((process.id(), process.label()), ("bg-5", "echo a; exit 3"));
    let end = process.ended(TIME_LIMIT).await.unwrap();
    assert_eq!((end.exit.code, end.by), (3, None));
    assert_eq!(process.since(0).text, "a\n");
    assert!(!bench.list.is_idle(), "nobody was told yet");
    assert_eq!(bench.list.next_end().await.id(), "bg-5");
    assert!(bench.list.take_end().is_none());
    assert!(bench.list.is_idle());
    assert_eq!(bench.list.get("bg-5").unwrap().state(), BackgroundState::Ended(end));
}

#[tokio::test]
async fn it_lasts_as_long_as_anything_that_it_started() {
    let bench = Bench::new();
    let job = bench.job("(read -r line; echo \"late $line\") <&0 & exit 2");
    let process = bench.list.start(&bench.shell, job, LIMITS).await.unwrap();
    while process.state() == BackgroundState::Running {
        tokio::task::yield_now().await;
    }
    assert!(matches!(process.state(), BackgroundState::ShellEnded(exit) if exit.code == 2));
    process.write(b"word\n").await.unwrap();
    let end = process.ended(TIME_LIMIT).await.unwrap();
    assert_eq!(end.exit.code, 2);
    assert_eq!(process.since(0).text, "late word\n");
    assert!(process.write(b"more").await.is_err());
}

#[tokio::test]
async fn only_so_many_run() {
    let bench = Bench::new();
    let start = || bench.list.start(&bench.shell, bench.job("sleep 1000"), LIMITS);
    let first = start().await.unwrap();
    start().await.unwrap();
    let refused = start().await.unwrap_err();
    assert!(matches!(&refused, BackgroundError::TooMany(ids) if ids == &["bg-5", "bg-6"]), "{refused}");
    let end = first.terminate(TIME_LIMIT, EndedBy::Request).await.unwrap();
    assert_eq!((end.exit.signal, end.by), (Some(15), Some(EndedBy::Request)));
    assert_eq!(start().await.unwrap().id(), "bg-7");
    bench.shell.group.terminate(TIME_LIMIT).await;
    bench.list.settled(TIME_LIMIT).await;
    assert!(bench.list.list().iter().all(|process| process.end().is_some()));
}

#[tokio::test]
async fn the_end_of_the_output_stays_and_its_beginning_is_in_a_file() {
    let bench = Bench::new();
    let process = bench.list.start(&bench.shell, bench.job("seq 10000"), LIMITS).await.unwrap();
    process.ended(TIME_LIMIT).await.unwrap();
    let whole: String = (1..=10_000).map(|number| format!("{number}\n")).collect();
    assert_eq!((process.total_bytes(), process.total_lines()), (whole.len() as u64, 10_000));
    let kept = process.since(0);
    assert!(whole.ends_with(&kept.text) && (1000..=2003).contains(&kept.text.len()), "{}", kept.text.len());
    assert_eq!(kept.to(), whole.len() as u64);
    let file = process.file();
    assert_eq!(file.bytes, 5000);
    assert_eq!(std::fs::read_to_string(file.path.unwrap()).unwrap(), whole[..5000]);
}

#[tokio::test]
async fn waiting_ends_with_output_or_the_end() {
    let bench = Bench::new();
    let process = bench.list.start(&bench.shell, bench.job("cat; echo over"), LIMITS).await.unwrap();
    let mark = process.mark();
    let (written, ()) = tokio::join!(process.write(b"x\n"), process.written_since(mark, TIME_LIMIT));
    written.unwrap();
    assert_eq!(process.since(0).text, "x\n");
    process.end_input().await.unwrap();
    process.ended(TIME_LIMIT).await.unwrap();
    // What has ended is not waited for.
    process.written_since(process.mark(), TIME_LIMIT).await;
    assert_eq!(process.since(2).text, "over\n");
}
