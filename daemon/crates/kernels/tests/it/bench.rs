//! A session's tool `eval`, with real processes under a guard.

use std::{
    ffi::OsString,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use agentd_agent::{Invocation, Tool as _, ToolError, ToolProgress};
use agentd_kernels::{
    CellToolCall, EvalOptions, EvalTool, InterpreterSources, KernelPool, Language, SessionKernels,
    ToolCallFuture, ToolCaller,
};
use agentd_process::{GuardCommand, Launcher, ProcessGroup};
use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// No call in these tests takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What the tools of a session do here.
pub(crate) type Answering = Arc<dyn Fn(CellToolCall) -> ToolCallFuture + Send + Sync>;

struct Answers(Answering);

impl ToolCaller for Answers {
    fn call(&self, call: CellToolCall) -> ToolCallFuture {
        (self.0)(call)
    }
}

pub(crate) struct Bench {
    pub(crate) tool: EvalTool,
    pub(crate) group: ProcessGroup,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) updates: Arc<Mutex<Vec<ToolResult>>>,
    language: Language,
}

fn launcher() -> Launcher {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_agentd-kernels-test-guard"));
    Launcher::new(GuardCommand { program, args: Vec::new() })
}

fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    vec![("PATH".into(), path), ("HOME".into(), home.into()), ("SOME_API_KEY".into(), "secret".into())]
}

impl Bench {
    /// `None`, with a message, where the language has no interpreter on this machine.
    pub(crate) fn new(language: Language) -> Option<Self> {
        Self::with(language, |_| {})
    }

    pub(crate) fn with(language: Language, change: impl FnOnce(&mut EvalOptions)) -> Option<Self> {
        Self::in_pool(language, KernelPool::new(TaskTracker::new()), change)
    }

    pub(crate) fn in_pool(
        language: Language,
        pool: KernelPool,
        change: impl FnOnce(&mut EvalOptions),
    ) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let environment = environment(dir.path());
        let sources =
            InterpreterSources { environment: &environment, project: None, python: None, javascript: None };
        let interpreters =
            EvalOptions::available(std::slice::from_ref(&language), |language| sources.find(language));
        if interpreters.is_empty() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no interpreter of {}", language.name());
            return None;
        }
        let group = launcher().group();
        let mut options = EvalOptions {
            kernels: SessionKernels::new(pool, group.clone()),
            interpreters,
            environment: environment.into(),
            passed: Vec::new(),
            sandbox: None,
            memory_bytes: 4 << 30,
            idle: None,
            most: 8,
            outputs: dir.path().into(),
            executors: Arc::new(()),
            tools: Arc::new(Answers(Arc::new(|call| {
                Box::pin(async move { (ToolResult::text(format!("{} has no tools", call.parent)), true) })
            }))),
            undo: None,
        };
        change(&mut options);
        Some(Self { tool: EvalTool::new(options), group, dir, updates: Arc::default(), language })
    }

    pub(crate) async fn call(
        &self,
        arguments: Value,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, ToolError> {
        let updates = Arc::clone(&self.updates);
        let invocation = Invocation {
            call_id: "call_1".into(),
            arguments,
            cwd: self.dir.path().into(),
            sees_images: true,
            images: agentd_images::Images::default(),
            session_env: vec![("PI_SESSION_ID".into(), "the-id".into())],
            environment: None,
            cancel: cancel.clone(),
            progress: ToolProgress::new(move |update| updates.lock().expect("no panic").push(update)),
        };
        timeout(TIME_LIMIT, self.tool.execute(invocation)).await.expect("a call that ends")
    }

    pub(crate) async fn run_with(&self, code: &str, more: Value) -> ToolResult {
        let mut arguments = json!({ "language": self.language.name(), "code": code });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call(arguments, &CancellationToken::new()).await.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) async fn run(&self, code: &str) -> ToolResult {
        self.run_with(code, json!({})).await
    }

    /// The text of a cell that succeeds.
    pub(crate) async fn text(&self, code: &str) -> String {
        let result = self.run(code).await;
        assert_eq!(result.is_error, None, "{}", text(&result));
        text(&result).trim_end().to_owned()
    }

    /// The id that a cell prints.
    pub(crate) async fn pid(&self, code: &str) -> i32 {
        self.text(code).await.parse().expect("a process id")
    }
}

pub(crate) fn answering(
    answer: impl Fn(CellToolCall) -> ToolCallFuture + Send + Sync + 'static,
) -> Arc<dyn ToolCaller> {
    Arc::new(Answers(Arc::new(answer)))
}

pub(crate) fn text(result: &ToolResult) -> &str {
    result.content[0].as_text().expect("text")
}

/// Whether a process runs (one that has ended and waits to be reaped does not).
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z") && !rest.starts_with(" X"))
}

/// Waits until `condition` holds: for changes that nothing announces, such as the end of a stranger's process.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = tokio::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIME_LIMIT, "not within {TIME_LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
