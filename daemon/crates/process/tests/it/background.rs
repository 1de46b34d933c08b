//! Commands in the background.

use std::{path::PathBuf, time::Duration};

use agentd_process::{
    AdoptedOutput, BackgroundError, BackgroundJob, BackgroundLimits, BackgroundProcesses, BackgroundState,
    CommandStreams, EndedBy, JobFacts, JobTerms, LocalShell, LogFileFacts, ShellJob,
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
        let shell = LocalShell {
            group: group.clone(),
            path: None,
            env: [path].into(),
            sandbox: None,
            snapshot: None,
        };
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
        BackgroundJob {
            label: command.into(),
            job,
            outputs: self.dir.path().into(),
            terms: JobTerms::default(),
        }
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

fn service(bench: &Bench, command: &str, name: &str) -> BackgroundJob {
    let facts = JobFacts { name: Some(name.to_owned()), is_service: true, ..JobFacts::default() };
    BackgroundJob { terms: JobTerms { facts, ..JobTerms::default() }, ..bench.job(command) }
}

#[tokio::test]
async fn a_service_ends_the_one_of_its_name_and_no_other() {
    let bench = Bench::new();
    let limits = BackgroundLimits { running: 3, ..LIMITS };
    let start = |command, name| bench.list.start(&bench.shell, service(&bench, command, name), limits);
    let other = start("sleep 1000", "other").await.unwrap();
    let first = start("sleep 1000", "web").await.unwrap();
    let second = start("sleep 1000", "web").await.unwrap();
    assert_eq!(first.end().and_then(|end| end.by), Some(EndedBy::Restart));
    assert_eq!((second.end(), other.end()), (None, None));
    assert_eq!(bench.list.get("web").unwrap().id(), second.id());
    // Two at once: one of them takes the place of the other.
    let (third, fourth) = tokio::join!(start("sleep 1000", "web"), start("sleep 1000", "web"));
    let ends = [third.unwrap().end(), fourth.unwrap().end(), second.end()];
    assert_eq!(ends.iter().filter(|end| end.is_none()).count(), 1, "{ends:?}");
    bench.shell.group.terminate(TIME_LIMIT).await;
}

#[tokio::test]
async fn a_file_from_the_first_byte_on_goes_when_nothing_was_written() {
    let bench = Bench::new();
    let job = |command| BackgroundJob {
        terms: JobTerms { keeps_file: true, ..JobTerms::default() },
        ..bench.job(command)
    };
    let process = bench.list.start(&bench.shell, job("read -r; echo a"), LIMITS).await.unwrap();
    let path = process.file().path.expect("a file from the start");
    process.write(b"x\n").await.unwrap();
    process.ended(TIME_LIMIT).await.unwrap();
    assert_eq!((std::fs::read_to_string(path).unwrap().as_str(), process.file().bytes), ("a\n", 2));
    let silent = bench.list.start(&bench.shell, job("read -r"), LIMITS).await.unwrap();
    let path = silent.file().path.expect("a file from the start");
    silent.end_input().await.unwrap();
    silent.ended(TIME_LIMIT).await.unwrap();
    assert_eq!((path.exists(), silent.file().path), (false, None));
}

#[tokio::test]
async fn a_running_command_can_be_adopted_and_is_told_of_as_the_others() {
    let bench = Bench::new();
    let BackgroundJob { job, label, .. } = bench.job("echo a; exec sleep 1000");
    let mut run = bench.shell.start_run(job).await.unwrap();
    assert_eq!(run.next().await, Some(&b"a\n"[..]));
    let output = AdoptedOutput { text: "a\n", total_bytes: 2, line_feeds: 1, file: LogFileFacts::default() };
    let adopt = || bench.list.adopt(&run, label.clone(), JobTerms::default(), LIMITS, &output);
    // One that is given up leaves no trace.
    drop(adopt().unwrap());
    assert!(bench.list.list().is_empty() && bench.list.is_idle());
    let adopted = adopt().unwrap();
    let process = std::sync::Arc::clone(adopted.process());
    assert_eq!((process.id(), process.total_bytes(), process.since(0).text.as_str()), ("bg-6", 2, "a\n"));
    let (ended, ()) = tokio::join!(process.terminate(TIME_LIMIT, EndedBy::User), async {
        while let Some(chunk) = run.next().await {
            adopted.push(&String::from_utf8_lossy(chunk), chunk.len(), LogFileFacts::default());
        }
        adopted.finish(&run.finish());
    });
    let end = ended.unwrap();
    assert_eq!((end.by, end.exit.signal), (Some(EndedBy::User), Some(15)));
    assert_eq!(bench.list.next_end().await.id(), "bg-6");
}
