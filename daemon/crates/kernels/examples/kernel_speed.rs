//! What a cell costs: `cargo run --release -p agentd-kernels --example kernel_speed`. The start of a kernel, a cell in one that runs, a call of
//! a tool by a cell, and the memory of an idle kernel.

#![expect(clippy::print_stdout, reason = "a measurement for the terminal")]
#![allow(clippy::expect_used, reason = "a measurement that fails is to end there")]

use std::{
    ffi::OsString,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use agentd_agent::{Invocation, Tool as _, ToolProgress};
use agentd_kernels::{
    CellToolCall, EvalOptions, EvalTool, InterpreterSources, KernelPool, Language, SessionKernels,
    ToolCallFuture, ToolCaller,
};
use agentd_process::{GuardCommand, Launcher};
use agentd_protocol::tool::ToolResult;
use serde_json::json;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

struct Echo;

impl ToolCaller for Echo {
    fn call(&self, _: CellToolCall) -> ToolCallFuture {
        Box::pin(async { (ToolResult::text("ok"), false) })
    }
}

fn main() -> ExitCode {
    // The guard is this program again.
    if std::env::args().any(|argument| argument == "guard") {
        return agentd_process::run_guard();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
    ExitCode::SUCCESS
}

async fn measure() {
    let program = std::env::current_exe().expect("this program");
    let launcher = Launcher::new(GuardCommand { program, args: vec!["guard".into()] });
    let dir = tempfile::tempdir().expect("a folder");
    let environment: Vec<(OsString, OsString)> = ["PATH", "HOME"]
        .into_iter()
        .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
        .collect();
    for language in Language::ALL {
        let sources =
            InterpreterSources { environment: &environment, project: None, python: None, javascript: None };
        let interpreters =
            EvalOptions::available(std::slice::from_ref(&language), |language| sources.find(language));
        if interpreters.is_empty() {
            println!("{}: no interpreter", language.name());
            continue;
        }
        let group = launcher.group();
        let tool = EvalTool::new(EvalOptions {
            kernels: SessionKernels::new(KernelPool::new(TaskTracker::new()), group.clone()),
            interpreters,
            environment: environment.clone().into(),
            passed: Vec::new(),
            sandbox: None,
            memory_bytes: 4 << 30,
            idle: None,
            most: 8,
            outputs: dir.path().into(),
            executors: Arc::new(()),
            tools: Arc::new(Echo),
            undo: None,
        });
        let run = async |code: &str, reset: bool| {
            let invocation = Invocation {
                call_id: "c".into(),
                arguments: json!({"language": language.name(), "code": code, "reset": reset}),
                cwd: dir.path().into(),
                sees_images: false,
                images: agentd_images::Images::default(),
                session_env: Vec::new(),
                environment: None,
                cancel: CancellationToken::new(),
                progress: ToolProgress::new(|_| {}),
            };
            let begun = Instant::now();
            let result = tool.execute(invocation).await.expect("a result");
            assert_eq!(result.is_error, None, "{result:?}");
            begun.elapsed()
        };
        // The first one starts the guard, too.
        run("1", false).await;
        let starts = times(5, || run("1", true)).await;
        println!("{}: start and first cell {}", language.name(), shown(starts));
        run("var n = 1".trim_start_matches(if language == Language::Python { "var " } else { "" }), false)
            .await;
        println!("{}: a cell {}", language.name(), shown(times(500, || run("n + 1", false)).await));
        let call = match language {
            Language::Python | Language::Jupyter(_) => "tool.read(path='x')",
            Language::JavaScript => "await tool.read({path: 'x'})",
        };
        println!(
            "{}: a cell with a call of a tool {}",
            language.name(),
            shown(times(200, || run(call, false)).await)
        );
        let pid = group.view().list(&agentd_process::ProcessTable::read().expect("processes")).into_iter();
        for process in pid {
            let private = private_bytes(process.pid);
            println!(
                "{}: memory of process {}: {:.1} MB of its own",
                language.name(),
                process.pid,
                private / 1e6
            );
        }
        group.terminate(Duration::from_secs(1)).await;
    }
}

async fn times<F: Future<Output = Duration>>(count: usize, mut run: impl FnMut() -> F) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..count {
        times.push(run().await);
    }
    times.sort();
    times
}

fn shown(sorted: Vec<Duration>) -> String {
    let ms = |at: usize| sorted.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3;
    format!(
        "{:.2} ms (median of {}; p99 {:.2} ms)",
        ms(sorted.len() / 2),
        sorted.len(),
        ms(sorted.len() * 99 / 100)
    )
}

/// The memory of a process that no other one shares.
fn private_bytes(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let fields = text.lines().filter(|line| line.starts_with("Private_"));
    let kib = fields.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.sum::<f64>() * 1024.0
}
