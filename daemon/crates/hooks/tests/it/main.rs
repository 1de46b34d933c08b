//! Hooks as real processes.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on is to fail there")]

use std::{ffi::OsString, fs, path::PathBuf, sync::Arc, time::Duration};

use agentd_config::{AgentDir, ProjectFolders};
use agentd_hooks::{
    HookFacts, HookInput, HookOptions, HookOutcome, HookRunner, HookSet, HookSources, ToolCallFacts, load,
};
use agentd_process::{GuardCommand, Launcher, ProcessGroup};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

struct Bench {
    dir: tempfile::TempDir,
    group: ProcessGroup,
    runner: HookRunner,
    set: HookSet,
}

impl Bench {
    fn new(hooks: &Value) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let cwd = dir.path().join("p");
        fs::create_dir_all(cwd.join(".claude")).unwrap();
        fs::write(cwd.join(".claude/settings.json"), json!({ "hooks": hooks }).to_string()).unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_agentd-hooks-test-guard"));
        let group = Launcher::new(GuardCommand { program, args: Vec::new() }).group();
        let path: (OsString, OsString) = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        let facts = HookFacts { session_id: "s".into(), transcript_path: None, cwd: cwd.clone() };
        let runner =
            HookRunner { processes: group.clone(), shell: None, env: Arc::new([path]), sandbox: None, facts };
        let agent_dir = AgentDir::at(dir.path().join("agent"));
        let folders = ProjectFolders::of(&cwd, &agent_dir);
        let sources = HookSources {
            agent_dir: &agent_dir,
            cwd: &cwd,
            project: Some(&folders),
            home: None,
            is_in_settings: false,
            options: HookOptions::of(&agentd_protocol::settings::Settings::default()),
        };
        let mut found = Vec::new();
        let set = load(&sources, &mut found);
        assert_eq!(found, []);
        Self { dir, group, runner, set }
    }

    async fn ask(&self, arguments: &Value, cancel: &CancellationToken) -> Option<HookOutcome> {
        let call = ToolCallFacts { tool: "bash", call_id: "1", arguments };
        let variables = [("FROM_SESSION".to_owned(), "yes".to_owned())];
        self.runner.run(&self.set, &HookInput::PreToolUse(call), &variables, None, cancel).await
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("p")
    }
}

fn command(command: &str, timeout: f64) -> Value {
    json!({"type": "command", "command": command, "timeout": timeout})
}

fn on_bash(hooks: &[Value]) -> Value {
    json!({"PreToolUse": [{"matcher": "Bash", "hooks": hooks}]})
}

#[tokio::test]
async fn a_hook_has_its_input_its_folder_and_its_variables() {
    let script = "cat > told; echo $PWD $CLAUDE_PROJECT_DIR $AGENTD_HOOK_EVENT $FROM_SESSION >&2; exit 2";
    let bench = Bench::new(&on_bash(&[command(script, 20.0)]));
    let outcome =
        bench.ask(&json!({"command": "ls", "timeout": 2}), &CancellationToken::new()).await.unwrap();
    let cwd = bench.cwd().display().to_string();
    assert_eq!(outcome.block, Some(format!("{cwd} {cwd} PreToolUse yes")));
    let told: Value = serde_json::from_str(&fs::read_to_string(bench.cwd().join("told")).unwrap()).unwrap();
    assert_eq!((&told["tool_name"], &told["tool_input"]["timeout"]), (&json!("Bash"), &json!(2000)));
}

#[tokio::test]
async fn one_that_reads_nothing_and_prints_much_comes_to_its_end() {
    let bench =
        Bench::new(&on_bash(&[command("yes | head -c 3000000; yes | head -c 3000000 >&2; exit 0", 20.0)]));
    let long = json!({"command": "x".repeat(1 << 20)});
    let outcome = bench.ask(&long, &CancellationToken::new()).await.unwrap();
    assert_eq!(outcome.block, None);
}

#[tokio::test]
async fn one_that_leaves_something_running_does_not_hold_up_the_call() {
    let bench = Bench::new(&on_bash(&[command("sleep 1000 & echo no >&2; exit 2", 20.0)]));
    let outcome = bench.ask(&json!({}), &CancellationToken::new()).await.unwrap();
    assert_eq!(outcome.block.as_deref(), Some("no"));
}

#[tokio::test]
async fn a_timeout_and_a_stop_kill_the_whole_tree() {
    let bench = Bench::new(&on_bash(&[
        command("setsid sleep 1000 & sleep 1000", 0.2),
        command("echo late >&2; exit 2", 20.0),
    ]));
    let outcome = bench.ask(&json!({}), &CancellationToken::new()).await.unwrap();
    let said = outcome.block.unwrap();
    assert!(said.contains("did not end within 0.2 seconds and was killed.\nlate"), "{said}");
    assert_eq!(bench.group.running(), 0);

    let bench = Bench::new(&on_bash(&[command("setsid sleep 1000 & echo > started; sleep 1000", 600.0)]));
    let (cancel, arguments, started) = (CancellationToken::new(), json!({}), pipe(&bench));
    let (outcome, ()) = tokio::join!(bench.ask(&arguments, &cancel), async {
        until_written(started).await;
        cancel.cancel();
    });
    assert!(outcome.unwrap().block.unwrap().ends_with("was stopped."));
    assert_eq!(bench.group.running(), 0);

    // So does dropping the question.
    let bench = Bench::new(&on_bash(&[command("setsid sleep 1000 & echo > started; sleep 1000", 600.0)]));
    let (never, started) = (CancellationToken::new(), pipe(&bench));
    tokio::select! {
        _ = bench.ask(&arguments, &never) => panic!("it hangs"),
        () = until_written(started) => {}
    }
    bench.group.terminate(Duration::ZERO).await;
    assert_eq!(bench.group.running(), 0);
}

/// A named pipe; its path.
fn pipe(bench: &Bench) -> PathBuf {
    let path = bench.cwd().join("started");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Waits until a hook has written to a named pipe.
async fn until_written(path: PathBuf) {
    tokio::task::spawn_blocking(move || fs::read(path).unwrap()).await.unwrap();
}
