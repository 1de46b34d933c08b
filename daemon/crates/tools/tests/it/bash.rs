//! The `bash` tool with real commands.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use agentd_agent::{Invocation, Tool as _, ToolError, ToolProgress};
use agentd_process::{GuardCommand, Launcher, LocalShell, ProcessGroup};
use agentd_protocol::tool::ToolResult;
use agentd_tools::{BashFeatures, BashOptions, BashTool};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// No call in these tests takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    tool: BashTool,
    pub(crate) group: ProcessGroup,
    pub(crate) dir: tempfile::TempDir,
    updates: Arc<Mutex<Vec<ToolResult>>>,
    pub(crate) cancel: CancellationToken,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_, _| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut LocalShell, &mut BashOptions)) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let program = PathBuf::from(env!("CARGO_BIN_EXE_agentd-tools-test-guard"));
        let group = Launcher::new(GuardCommand { program, args: Vec::new() }).group();
        let path: (OsString, OsString) = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        let mut shell = LocalShell {
            group: group.clone(),
            path: None,
            env: [path, ("FROM_SESSION".into(), "base".into())].into(),
            sandbox: None,
            snapshot: None,
        };
        let mut options = BashOptions {
            undo: None,
            shell: Arc::new(shell.clone()),
            command_prefix: None,
            outputs: dir.path().into(),
            home: None,
            features: BashFeatures::default(),
        };
        change(&mut shell, &mut options);
        options.shell = Arc::new(shell);
        Self {
            tool: BashTool::new(options),
            group,
            dir,
            updates: Arc::default(),
            cancel: CancellationToken::new(),
        }
    }

    async fn call_in(&self, cwd: &Path, arguments: Value) -> Result<ToolResult, ToolError> {
        let updates = Arc::clone(&self.updates);
        let invocation = Invocation {
            call_id: "call_1".into(),
            arguments,
            cwd: cwd.into(),
            sees_images: false,
            images: agentd_images::Images::default(),
            session_env: vec![("PI_SESSION_ID".into(), "the-id".into())],
            environment: None,
            cancel: self.cancel.clone(),
            progress: ToolProgress::new(move |update| updates.lock().expect("no panic").push(update)),
        };
        timeout(TIME_LIMIT, self.tool.execute(invocation)).await.expect("a call that ends")
    }

    pub(crate) async fn call(&self, arguments: Value) -> Result<ToolResult, ToolError> {
        self.call_in(self.dir.path(), arguments).await
    }

    pub(crate) async fn run(&self, command: &str) -> Result<ToolResult, ToolError> {
        self.call(json!({ "command": command })).await
    }

    fn updates(&self) -> Vec<Value> {
        self.updates
            .lock()
            .expect("no panic")
            .iter()
            .map(|update| serde_json::to_value(update).unwrap())
            .collect()
    }
}

pub(crate) fn text(result: &ToolResult) -> &str {
    result.content[0].as_text().expect("text")
}

#[tokio::test]
async fn a_failing_command_looks_as_in_pi() {
    let bench = Bench::new();
    let mut result = serde_json::to_value(bench.run("echo hi; exit 3").await.unwrap()).unwrap();
    let time = result["structuredContent"]["wall_time_seconds"].take();
    assert!(time.as_f64().is_some_and(|time| (0.0..20.0).contains(&time)), "{time}");
    let expected = json!({
        "content": [{ "type": "text", "text": "hi\n\n\nCommand exited with code 3" }],
        "structuredContent": { "output": "hi\n", "truncated": false, "exit_code": 3, "wall_time_seconds": null },
        "isError": true,
    });
    assert_eq!(result, expected);
    let first = json!({ "content": [] });
    let second = json!({ "content": [{ "type": "text", "text": "hi\n" }], "details": {} });
    assert_eq!(bench.updates(), [first, second]);
}

#[tokio::test]
async fn a_command_gets_its_folder_its_variables_and_no_input() {
    let bench = Bench::new();
    let dir = bench.dir.path().canonicalize().unwrap();
    let result = bench.run("pwd -P; echo $FROM_SESSION $PI_SESSION_ID; cat; echo err >&2").await.unwrap();
    assert_eq!(text(&result), format!("{}\nbase the-id\nerr\n", dir.display()));
    assert_eq!(result.is_error, None);
}

#[tokio::test]
async fn settings_choose_the_shell_and_a_first_line() {
    let bench = Bench::with(|_, options| options.command_prefix = Some("greet() { echo hello $1; }".into()));
    assert_eq!(text(&bench.run("greet you").await.unwrap()), "hello you\n");

    let bench = Bench::with(|shell, _| shell.path = Some("/bin/sh".into()));
    assert_eq!(text(&bench.run("echo $0").await.unwrap()), "/bin/sh\n");

    let bench = Bench::with(|shell, _| shell.path = Some("/no/shell".into()));
    assert_eq!(bench.run("true").await.unwrap_err().0, "Custom shell path not found: /no/shell");
}

#[tokio::test]
async fn a_missing_folder_is_an_error() {
    let bench = Bench::new();
    let error = bench.call_in(Path::new("/no/folder"), json!({ "command": "true" })).await.unwrap_err();
    assert_eq!(error.0, "Working directory does not exist: /no/folder\nCannot execute bash commands.");
}

#[tokio::test]
async fn a_bad_timeout_is_an_error() {
    let bench = Bench::new();
    let error = bench.call(json!({ "command": "true", "timeout": 0 })).await.unwrap_err();
    assert_eq!(error.0, "Invalid timeout: must be a finite number of seconds");
}

#[tokio::test]
async fn a_timeout_kills_and_keeps_the_output() {
    let bench = Bench::new();
    let call = json!({ "command": "echo before; sleep 1000 & setsid sleep 1000", "timeout": 0.3 });
    assert_eq!(bench.call(call).await.unwrap_err().0, "before\n\n\nCommand timed out after 0.3 seconds");
    assert_eq!(bench.group.running(), 0);
}

#[tokio::test]
async fn an_abort_kills_and_keeps_the_output() {
    let bench = Bench::new();
    // The abort comes when the output has been shown.
    let abort_when_shown = async {
        while bench.updates().len() < 2 {
            tokio::task::yield_now().await;
        }
        bench.cancel.cancel();
    };
    let (result, ()) =
        tokio::join!(bench.run("echo before; sleep 1000 & setsid sleep 1000"), abort_when_shown);
    assert_eq!(result.unwrap_err().0, "before\n\n\nCommand aborted");
    assert_eq!(bench.group.running(), 0);
    assert_eq!(bench.run("echo never").await.unwrap_err().0, "Command aborted");
}

#[tokio::test]
async fn a_killed_shell_has_the_code_of_its_signal() {
    let bench = Bench::new();
    let result = bench.run("kill -9 $$").await.unwrap();
    assert_eq!(text(&result), "(no output)\n\nCommand exited with code 137");
    assert_eq!(result.structured_content.unwrap()["exit_code"], 137);
}

#[tokio::test]
async fn long_output_is_cut_and_kept() {
    let bench = Bench::new();
    let result = bench.run("seq 100000").await.unwrap();
    let details = result.details.as_ref().unwrap();
    let path = details["fullOutputPath"].as_str().unwrap();
    assert!(path.starts_with(bench.dir.path().to_str().unwrap()));
    let notice = format!("\n\n[Showing lines 98001-100000 of 100000. Full output: {path}]");
    assert!(text(&result).starts_with("98001\n") && text(&result).ends_with(&notice));
    let all: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(std::fs::read_to_string(path).unwrap(), all);
    assert_eq!(result.structured_content.as_ref().unwrap()["output"], all);
    let last = bench.updates().pop().unwrap();
    assert_eq!(&last["details"], details, "the last update shows the end");
}

#[tokio::test]
async fn updates_come_while_the_command_runs_and_not_too_often() {
    let bench = Bench::new();
    let start = tokio::time::Instant::now();
    bench.run("for i in $(seq 60); do echo $i; sleep 0.005; done").await.unwrap();
    let updates = bench.updates();
    let all: String = (1..=60).map(|number| format!("{number}\n")).collect();
    assert_eq!(updates.last().unwrap()["content"][0]["text"], all);
    // Sixty pieces over at least 0.3 s: an update every 0.1 s at most, besides an empty first and one at the end.
    let most = usize::try_from(start.elapsed().as_millis() / 100).unwrap() + 3;
    assert!((4..=most).contains(&updates.len()), "{} updates", updates.len());
}

#[tokio::test]
async fn calls_beside_each_other_do_not_mix() {
    let bench = Bench::new();
    let calls = (0..16).map(|number| {
        let bench = &bench;
        async move {
            bench
                .run(&format!("for i in 1 2 3; do echo {number}; sleep 0.01; done; exit {number}"))
                .await
                .unwrap()
        }
    });
    for (number, result) in futures::future::join_all(calls).await.into_iter().enumerate() {
        let lines = format!("{number}\n").repeat(3);
        let expected =
            if number == 0 { lines } else { format!("{lines}\n\nCommand exited with code {number}") };
        assert_eq!(text(&result), expected);
    }
}

#[tokio::test]
async fn a_background_server_goes_on_after_the_call() {
    let bench = Bench::new();
    let result = bench.run("sleep 1000 & echo started").await.unwrap();
    assert_eq!(text(&result), "started\n");
    assert_eq!(bench.group.running(), 1);
    timeout(TIME_LIMIT, bench.group.terminate(Duration::from_secs(10))).await.expect("an end");
    assert_eq!(bench.group.running(), 0);
}
