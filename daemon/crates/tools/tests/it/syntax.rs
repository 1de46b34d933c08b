//! The life of the program that parses, with stand-ins for it: what it does when it is missing, ends, hangs, floods or is idle. The real
//! program is tested with the real daemon, in `tests/e2e`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agentd_agent::{Invocation, Tool as _, ToolProgress};
use agentd_process::{GuardCommand, Launcher};
use agentd_tools::{AstGrepTool, SyntaxLimits, SyntaxProgram, operations::LocalHost};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// No call in these tests takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Answers every request of a check with "can be used", and of texts by the rest of the script, which has the id in `$id`.
const BEGINNING: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=${line#*:}
  id=${id%%,*}
  case $line in
  *'"texts":[]'*) printf '{"id":%s,"answer":{"found":{"literals":[],"texts":[]}}}\n' "$id"; continue ;;
  esac
"#;

/// One match: the first three bytes of a single text.
const ANSWER: &str =
    r#"printf '{"id":%s,"answer":{"found":{"literals":[],"texts":[{"Ok":[{"start":0,"end":3}]}]}}}\n' "$id""#;

struct Bench {
    dir: tempfile::TempDir,
    program: SyntaxProgram,
    cancel: CancellationToken,
}

impl Bench {
    fn new(script: &str, idle: Duration) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let program = dir.path().join("program");
        fs::write(&program, format!("{BEGINNING}{script}\ndone\n")).expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        fs::create_dir(dir.path().join("code")).expect("a folder");
        Self::of(dir, &program, idle)
    }

    fn of(dir: tempfile::TempDir, program: &Path, idle: Duration) -> Self {
        let guard = PathBuf::from(env!("CARGO_BIN_EXE_agentd-tools-test-guard"));
        let launcher = Launcher::new(GuardCommand { program: guard, args: Vec::new() });
        let program =
            SyntaxProgram::new(launcher, program.to_owned(), SyntaxLimits { idle, memory_bytes: 200 << 20 });
        Self { dir, program, cancel: CancellationToken::new() }
    }

    fn file(&self, name: &str) {
        fs::write(self.dir.path().join("code").join(name), format!("fn {}() {{}}\n", name.replace('.', "_")))
            .expect("a file");
    }

    async fn grep(&self, time: Duration) -> Result<String, String> {
        let tool = AstGrepTool::new(self.program.clone(), "/", Arc::new(LocalHost), time);
        let invocation = Invocation {
            call_id: "call".into(),
            arguments: json!({"pattern": "x", "language": "rust"}),
            cwd: self.dir.path().join("code"),
            sees_images: false,
            images: agentd_images::Images::default(),
            session_env: Vec::new(),
            environment: None,
            cancel: self.cancel.clone(),
            progress: ToolProgress::new(|_| ()),
        };
        let done = timeout(TIME_LIMIT, tool.execute(invocation)).await.expect("a call that ends");
        done.map(|result| result.content[0].as_text().expect("text").to_owned()).map_err(|error| error.0)
    }

    /// Waits until the program runs no more.
    async fn is_gone(&self) {
        let gone = async {
            while self.program.pid().await.is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TIME_LIMIT, gone).await.expect("the program ends");
    }
}

const LONG: Duration = Duration::from_secs(50);

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_started_once_and_ended_when_it_was_idle() {
    let bench = Bench::new(ANSWER, Duration::from_millis(300));
    bench.file("a.rs");
    assert_eq!(bench.program.pid().await, None, "nothing runs before it is needed");
    assert_eq!(bench.grep(LONG).await.as_deref(), Ok("a.rs:1: fn a_rs() {}"));
    bench.is_gone().await;
    assert!(bench.grep(LONG).await.is_ok(), "it is started again");
    let first = bench.program.pid().await;
    assert!(bench.grep(LONG).await.is_ok() && first.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_named() {
    let bench = Bench::of(tempfile::tempdir().expect("a folder"), Path::new("/nowhere/agentd-syntax"), LONG);
    fs::create_dir(bench.dir.path().join("code")).expect("a folder");
    assert!(!bench.program.is_installed());
    let error = bench.grep(LONG).await.expect_err("an error");
    assert!(error.contains("missing (/nowhere/agentd-syntax): install it beside agentd"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_on_which_the_program_ends_is_named_and_the_others_are_searched() {
    let bench = Bench::new(&format!("case $line in *bad_rs*) kill -SEGV $$ ;; esac\n{ANSWER}"), LONG);
    bench.file("a.rs");
    bench.file("bad.rs");
    bench.file("c.rs");
    let said = bench.grep(LONG).await.expect("a result");
    assert_eq!(
        said,
        "a.rs:1: fn a_rs() {}\nc.rs:1: fn c_rs() {}\n\n[Not searched: bad.rs (the parser failed: it was ended by signal 11)]"
    );
    for number in 0..20 {
        bench.file(&format!("{number}bad.rs"));
    }
    let error = bench.grep(LONG).await.expect_err("an error");
    assert!(
        error.starts_with("The search ended, since too many files could not be parsed. Not searched: "),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_ended_and_what_it_hung_on_is_named() {
    let bench = Bench::new(&format!("case $line in *bad_rs*) sleep 1000 ;; esac\n{ANSWER}"), LONG);
    bench.file("a.rs");
    bench.file("bad.rs");
    let said = bench.grep(Duration::from_secs(2)).await.expect("a result");
    assert_eq!(
        said,
        "a.rs:1: fn a_rs() {}\n\n[Not searched: bad.rs (the parser failed: it did not answer within 2 seconds)]"
    );
    bench.is_gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_swells_or_talks_nonsense_is_ended() {
    for (script, why) in [
        // A shell that holds more than its limit.
        ("x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 1000", "it used more memory than it may"),
        ("echo nonsense", "its answer is not understood"),
        ("exit 3", "it ended"),
        ("echo 'so it is' >&2; exit 3", "it ended: so it is"),
    ] {
        let bench = Bench::new(script, LONG);
        bench.file("a.rs");
        let said = bench.grep(LONG).await.expect("a result");
        assert!(said.contains(&format!("Not searched: a.rs (the parser failed: {why}")), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_waits_for_nothing() {
    let bench = Bench::new("touch \"${0%program}asked\"; sleep 1000", LONG);
    bench.file("a.rs");
    let asked = bench.dir.path().join("asked");
    let aborting = async {
        while !asked.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bench.cancel.cancel();
    };
    let (said, ()) = tokio::join!(bench.grep(LONG), aborting);
    assert_eq!(said.expect_err("an error"), "Operation aborted");
}
