//! The tool `eval`: runs one cell from the call to its result.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture, ToolProgress, hooks::Requester};
use agentd_checkpoints::SessionCheckpoints;
use agentd_process::OutputStorage;
use agentd_protocol::{
    eval::EVAL_TOOL,
    tool::{ToolResult, ToolSpec},
};
use agentd_sandbox::SandboxPolicy;
use agentd_tools::{CommandWatch, explain_gap};
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    arguments::{DEFAULT_TIMEOUT, EvalCall, prepared},
    cell::{Cell, CellEnd, CellNews, NEWS},
    environment::passed,
    executor::{CellExecutor, CellExecutors, ExecutorCell, ExecutorEnd},
    kernel::KernelHandle,
    language::Language,
    records::Request,
    report::{CallEnd, CellOutput, ClientEnd},
    session::{SessionKernels, Slot},
    start::KernelTerms,
    tool_calls::{CellToolCall, ToolCaller},
};

/// The least time between two partial results.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// How long an aborted call waits for the end of its cell: its loop waits no longer.
const ABORT_WAIT: Duration = Duration::from_millis(500);

/// The most calls of tools that a cell makes at a time.
const MAX_CALLS: usize = 64;

/// What the tool needs of its session.
#[derive(Clone)]
pub struct EvalOptions {
    /// The session's kernels.
    pub kernels: SessionKernels,
    /// The languages of its cells, with their interpreters.
    pub interpreters: Vec<(Language, PathBuf)>,
    /// The complete environment of the session's child processes.
    pub environment: Arc<[(OsString, OsString)]>,
    /// Patterns of variables that kernels get besides the usual ones.
    pub passed: Vec<String>,
    /// What kernels may touch; `None` confines nothing.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// The most memory of a kernel with all that it starts, in bytes; 0 is no limit.
    pub memory_bytes: u64,
    /// Idle time after which a kernel ends; `None`: never.
    pub idle: Option<Duration>,
    /// The most kernels of the daemon at a time.
    pub most: usize,
    /// Where long outputs are kept.
    pub outputs: OutputStorage,
    /// Knows who runs cells instead of a kernel.
    pub executors: Arc<dyn CellExecutors>,
    /// Runs the calls of tools that cells make.
    pub tools: Arc<dyn ToolCaller>,
    /// Keeps what cells change; `None` while undo is off.
    pub undo: Option<Arc<SessionCheckpoints>>,
}

/// Runs cells of code.
pub struct EvalTool {
    options: EvalOptions,
    spec: Arc<ToolSpec>,
}

impl EvalTool {
    /// The tool of one session. It needs at least one language.
    #[must_use]
    pub fn new(options: EvalOptions) -> Self {
        let languages: Vec<Language> =
            options.interpreters.iter().map(|(language, _)| language.clone()).collect();
        Self { spec: Arc::new(spec(&languages)), options }
    }

    /// With the description that `share` gives for an equal one: sessions with the same languages need only one in memory.
    #[must_use]
    pub fn with_shared_spec(mut self, share: impl FnOnce(Arc<ToolSpec>) -> Arc<ToolSpec>) -> Self {
        self.spec = share(self.spec);
        self
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let Invocation { call_id, arguments, cwd, session_env, environment, cancel, progress, .. } =
            invocation;
        let languages: Vec<Language> =
            self.options.interpreters.iter().map(|(language, _)| language.clone()).collect();
        let call = EvalCall::read(&arguments, &languages)?;
        if let Some(executor) = self.options.executors.executor(call.language.name()) {
            let cell = ExecutorCell {
                call_id: call_id.clone(),
                language: call.language.name().to_owned(),
                code: call.code.clone(),
                title: call.title.clone(),
                timeout: call.timeout,
                reset: call.reset,
                cwd,
            };
            let changes = self.begin_changes(&call_id, &cancel).await?;
            let done = self.run_elsewhere(&*executor, cell, &call, (&cancel, &progress)).await;
            return explain_gap(Ok(done), changes.end().await);
        }
        let interpreter = self.options.interpreters.iter().find(|(language, _)| *language == call.language);
        let interpreter = interpreter.map(|(_, path)| path.clone()).unwrap_or_default();
        let slot = self.options.kernels.slot(&call.language, &cwd, &interpreter);
        slot.check_nesting(&call_id)?;
        progress.report(ToolResult::default());
        let env = environment.as_deref().unwrap_or(&self.options.environment);
        let mut env = passed(env, &self.options.passed);
        env.extend(session_env.iter().map(|(name, value)| (name.into(), value.into())));
        let terms = KernelTerms {
            language: call.language.clone(),
            interpreter,
            cwd,
            env,
            sandbox: self.options.sandbox.clone(),
            memory_bytes: self.options.memory_bytes,
            idle: self.options.idle,
            most: self.options.most,
        };
        let changes = self.begin_changes(&call_id, &cancel).await?;
        let session_env: Map<String, Value> =
            session_env.into_iter().map(|(name, value)| (name, value.into())).collect();
        let run = CellRun {
            options: &self.options,
            call: &call,
            call_id: &call_id,
            env: &session_env,
            cancel: &cancel,
            progress: &progress,
        };
        let done = run.in_slot(&slot, &terms).await;
        explain_gap(done, changes.end().await)
    }

    /// Tells what keeps changes for undo that a cell begins.
    async fn begin_changes(
        &self,
        call_id: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandWatch, ToolError> {
        let by = Requester::Model { call_id };
        let begin = CommandWatch::begin(self.options.undo.as_ref(), Some(call_id), EVAL_TOOL, by);
        cancel.run_until_cancelled(begin).await.ok_or_else(|| ToolError("Cell aborted".to_owned()))
    }

    /// Has an executor run a cell.
    async fn run_elsewhere(
        &self,
        executor: &dyn CellExecutor,
        cell: ExecutorCell,
        call: &EvalCall,
        (cancel, progress): (&CancellationToken, &ToolProgress),
    ) -> ToolResult {
        progress.report(ToolResult::default());
        let since = Instant::now();
        let mut output = CellOutput::new(self.options.outputs.clone());
        let mut updates = Updates { progress, next: Instant::now(), is_due: false };
        let (printed, mut pieces) = mpsc::unbounded_channel::<String>();
        let mut running = executor.run(cell, printed, cancel);
        let end = loop {
            select! {
                biased;
                Some(piece) = pieces.recv() => {
                    output.tail.push(piece.as_bytes()).await;
                    updates.changed(&output, call);
                }
                end = &mut running => break end,
                () = sleep_until(updates.next), if updates.is_due => updates.send(&output, call),
            }
        };
        // What came before the end.
        while let Ok(piece) = pieces.try_recv() {
            output.tail.push(piece.as_bytes()).await;
        }
        let end = match end {
            ExecutorEnd::Done { text, images, error } => {
                output.tail.push(text.as_bytes()).await;
                images.into_iter().for_each(|image| output.image(image));
                CallEnd::OfClient(error.map_or(ClientEnd::Done, ClientEnd::Failed))
            }
            ExecutorEnd::TimedOut => CallEnd::OfClient(ClientEnd::TimedOut),
            ExecutorEnd::Aborted => CallEnd::Aborted,
            ExecutorEnd::Lost(why) => CallEnd::OfClient(ClientEnd::Lost(why)),
        };
        output.tail.finish().await;
        output.result(call, end, None, since.elapsed())
    }
}

/// Clears who runs in a slot.
struct Running<'a>(&'a Slot);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.runs(None);
    }
}

/// One call.
struct CellRun<'a> {
    options: &'a EvalOptions,
    call: &'a EvalCall,
    call_id: &'a str,
    env: &'a Map<String, Value>,
    cancel: &'a CancellationToken,
    progress: &'a ToolProgress,
}

/// How an attempt to run the cell ended.
enum Attempt {
    Over(CallEnd),
    /// The kernel was gone before the cell had begun: why.
    NotBegun(String),
}

impl CellRun<'_> {
    /// Runs the cell in the kernel of a slot.
    ///
    /// A kernel that is gone before the cell has begun is replaced, and the cell is sent once more: nothing of it can have happened. One that
    /// ends later is not: the cell may have had effects.
    async fn in_slot(&self, slot: &Slot, terms: &KernelTerms) -> Result<ToolResult, ToolError> {
        let aborted = || ToolError("Cell aborted".to_owned());
        let mut kernel = self.cancel.run_until_cancelled(slot.kernel.lock()).await.ok_or_else(aborted)?;
        slot.runs(Some(self.call_id));
        let _running = Running(slot);
        if self.call.reset {
            kernel.end().await;
        }
        let since = Instant::now();
        let mut output = CellOutput::new(self.options.outputs.clone());
        let mut notices: Option<String> = None;
        for is_last in [false, true] {
            let ready = self.options.kernels.ready(&mut kernel, terms);
            let ready = self.cancel.run_until_cancelled(ready).await.ok_or_else(aborted)??;
            notices = notices.or(ready.notice);
            match self.attempt(&ready.handle, &mut output).await {
                Attempt::Over(end) => {
                    output.tail.finish().await;
                    return Ok(output.result(self.call, end, notices, since.elapsed()));
                }
                Attempt::NotBegun(why) if is_last => {
                    return Err(ToolError(format!(
                        "The {} kernel ended twice before the cell had begun: {why}. The cell was not run.",
                        self.call.language.title()
                    )));
                }
                Attempt::NotBegun(_) => {}
            }
        }
        Err(ToolError("The cell was not run.".to_owned()))
    }

    async fn attempt(&self, handle: &KernelHandle, output: &mut CellOutput) -> Attempt {
        let (to_call, mut news) = mpsc::channel(NEWS);
        let stop = CancellationToken::new();
        let cell =
            Cell { code: self.call.code.clone(), env: self.env.clone(), news: to_call, stop: stop.clone() };
        if handle.cells.send(Box::new(cell)).await.is_err() {
            return Attempt::NotBegun(handle.end.why().unwrap_or_else(|| "it ended".to_owned()));
        }
        let mut has_begun = false;
        let mut limit = TimeLimit::new(self.call.timeout);
        let (mut is_aborted, mut is_late) = (false, false);
        let mut give_up = Instant::now();
        let mut updates = Updates { progress: self.progress, next: Instant::now(), is_due: false };
        let mut calls = FuturesUnordered::new();
        let end = loop {
            select! {
                biased;
                () = self.cancel.cancelled(), if !is_aborted => {
                    is_aborted = true;
                    stop.cancel();
                    give_up = Instant::now() + ABORT_WAIT;
                }
                () = sleep_until(give_up), if is_aborted => break None,
                () = limit.reached(), if !is_late && !is_aborted => {
                    is_late = true;
                    stop.cancel();
                }
                Some((number, (result, is_error))) = calls.next(), if !calls.is_empty() => {
                    limit.goes_on(calls.is_empty());
                    self.tell_result(handle, number, &result, is_error, &stop).await;
                }
                happened = news.recv() => match happened {
                    None => break Some(CellEnd::KernelGone(handle.end.why().unwrap_or_else(|| "it ended".to_owned()))),
                    Some(CellNews::Started) => {
                        has_begun = true;
                        limit.begin();
                    }
                    Some(CellNews::Text(bytes)) => {
                        output.tail.push(&bytes).await;
                        updates.changed(output, self.call);
                    }
                    Some(CellNews::Image(image)) => output.image(image),
                    Some(CellNews::Json(value)) => output.json(value),
                    Some(CellNews::Call { number, name, arguments }) => {
                        if calls.len() < MAX_CALLS {
                            limit.pause();
                            calls.push(self.tool_call(number, name, arguments, &stop));
                        } else {
                            let refusal = ToolResult::text(format!("A cell makes at most {MAX_CALLS} calls at a time: wait for some of them."));
                            self.tell_result(handle, number, &refusal, true, &stop).await;
                        }
                    }
                    Some(CellNews::Ended(end)) => break Some(end),
                },
                () = sleep_until(updates.next), if updates.is_due => updates.send(output, self.call),
            }
        };
        if !calls.is_empty() {
            // The cell has not waited for them: they are stopped, and end with their results. A thread of the cell may wait for one.
            stop.cancel();
            let lines = handle.lines.clone();
            self.options.kernels.pool().spawn(async move {
                while let Some((number, (result, is_error))) = calls.next().await {
                    if let Some(line) = result_line(number, &result, is_error) {
                        // A kernel that is gone needs no results.
                        let _ = lines.send(line).await;
                    }
                }
            });
        }
        match end {
            _ if is_aborted => Attempt::Over(CallEnd::Aborted),
            None => Attempt::Over(CallEnd::Aborted),
            Some(CellEnd::KernelGone(why)) if is_late => {
                Attempt::Over(CallEnd::TimedOut { kernel_gone: Some(why) })
            }
            Some(CellEnd::KernelGone(why)) if !has_begun => Attempt::NotBegun(why),
            Some(CellEnd::KernelGone(why)) => Attempt::Over(CallEnd::KernelGone(why)),
            Some(CellEnd::Done(done)) if is_late && done.was_cancelled => {
                Attempt::Over(CallEnd::TimedOut { kernel_gone: None })
            }
            Some(CellEnd::Done(done)) => Attempt::Over(CallEnd::Done(done)),
        }
    }

    fn tool_call(
        &self,
        number: u64,
        name: String,
        arguments: Map<String, Value>,
        stop: &CancellationToken,
    ) -> impl Future<Output = (u64, (ToolResult, bool))> + Send + use<> {
        let call =
            CellToolCall { parent: self.call_id.to_owned(), name, arguments, cancel: stop.child_token() };
        let running = self.options.tools.call(call);
        async move { (number, running.await) }
    }

    /// Gives a cell the result of its call. Waits while the interpreter does not read, unless the cell is stopped.
    async fn tell_result(
        &self,
        handle: &KernelHandle,
        number: u64,
        result: &ToolResult,
        is_error: bool,
        stop: &CancellationToken,
    ) {
        if let Some(line) = result_line(number, result, is_error) {
            // A kernel that is gone needs no results.
            drop(stop.run_until_cancelled(handle.lines.send(line)).await);
        }
    }
}

/// The record of a result.
fn result_line(number: u64, result: &ToolResult, is_error: bool) -> Option<Vec<u8>> {
    let content = json!(result.content);
    let record =
        Request::Result { call: number, content: &content, details: result.details.as_ref(), is_error };
    record
        .line()
        .inspect_err(|error| tracing::error!(%error, "the result of a cell's call cannot be written"))
        .ok()
}

/// The time of a cell, which stands still while its tools work: those have limits of their own, and may wait for the user.
struct TimeLimit {
    limit: Option<Duration>,
    /// The moment that the limit is reached at.
    at: Option<Instant>,
    /// Since when it stands still.
    paused: Option<Instant>,
}

impl TimeLimit {
    fn new(limit: Option<Duration>) -> Self {
        Self { limit, at: None, paused: None }
    }

    fn begin(&mut self) {
        self.at = self.limit.and_then(|limit| Instant::now().checked_add(limit));
    }

    fn pause(&mut self) {
        self.paused.get_or_insert_with(Instant::now);
    }

    fn goes_on(&mut self, is_last: bool) {
        if is_last && let Some(since) = self.paused.take() {
            self.at = self.at.and_then(|at| at.checked_add(since.elapsed()));
        }
    }

    /// Waits until the limit is reached. Cancel safe.
    async fn reached(&self) {
        match (self.at, self.paused) {
            (Some(at), None) => sleep_until(at).await,
            _ => std::future::pending().await,
        }
    }
}

/// Sends partial results, at most one per interval.
struct Updates<'a> {
    progress: &'a ToolProgress,
    next: Instant,
    is_due: bool,
}

impl Updates<'_> {
    fn changed(&mut self, output: &CellOutput, call: &EvalCall) {
        self.is_due = true;
        // While output flows, the timer's branch does not run.
        if Instant::now() >= self.next {
            self.send(output, call);
        }
    }

    fn send(&mut self, output: &CellOutput, call: &EvalCall) {
        self.progress.report(output.update(call));
        self.is_due = false;
        self.next = Instant::now() + UPDATE_INTERVAL;
    }
}

impl Tool for EvalTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Run code in an interpreter that keeps its variables from call to call")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "Use eval for calculations, data and plots, and to call several tools from one piece of code; use bash for commands.",
        ]
    }

    fn execution(&self) -> ExecutionMode {
        ExecutionMode::Sequential
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        prepared(arguments)
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

/// What models are told of the tool.
fn spec(languages: &[Language]) -> ToolSpec {
    let has = |language: &Language| languages.contains(language);
    let kinds: Vec<&str> = languages.iter().map(Language::title).collect();
    let mut description = format!(
        "Runs a cell of {} in an interpreter that stays: variables, imports and functions of earlier cells of the same language are there. \
         Returns what the cell prints and shows, and the value of its last expression; await works at the top. display(value) shows bytes \
         of an image, tables, JSON and Markdown.",
        kinds.join(" or ")
    );
    if has(&Language::Python) {
        description.push_str(
            " Python: figures of matplotlib are shown at the end of the cell; tool.NAME(argument=value) calls another tool of yours and \
             returns its text; lines such as %pip install NAME, %cd DIR and !COMMAND work.",
        );
    }
    if has(&Language::JavaScript) {
        description.push_str(
            " JavaScript (Node): const and let stay, and may be declared again; import and require work; await tool.NAME({argument: value}) \
             calls another tool of yours and returns its text.",
        );
    }
    if has(&Language::Python) || has(&Language::JavaScript) {
        description.push_str(" read(path), write(path, content) and env(name) are short forms.");
    }
    if languages.iter().any(|language| matches!(language, Language::Jupyter(_))) {
        description.push_str(" jupyter:NAME is the kernel NAME of Jupyter, as a notebook has it; tools cannot be called there.");
    }
    description.push_str(" There is no input.");
    let names: Vec<&str> = languages.iter().map(Language::name).collect();
    ToolSpec {
        name: EVAL_TOOL.into(),
        description,
        parameters: json!({
            "type": "object",
            "properties": {
                "language": { "type": "string", "enum": names, "description": "The language of the cell" },
                "code": { "type": "string", "description": "The code" },
                "title": { "type": "string", "description": "What it is for, in a few words (optional)" },
                "timeout": {
                    "type": "number",
                    "description": format!("Seconds after which the cell is interrupted (optional; default {DEFAULT_TIMEOUT}, 0 for none)"),
                },
                "reset": { "type": "boolean", "description": "Start a new interpreter first (optional; default false)" },
            },
            "required": ["language", "code"],
        }),
        constrained_sampling: None,
    }
}

impl EvalOptions {
    /// The languages of `wanted` that have an interpreter, with it. Looks at files; blocks briefly.
    #[must_use]
    pub fn available(
        wanted: &[Language],
        find: impl Fn(&Language) -> Option<PathBuf>,
    ) -> Vec<(Language, PathBuf)> {
        let found = |language: &Language| Some((language.clone(), find(language)?));
        let own = Language::ALL.iter().filter(|language| wanted.contains(language));
        let of_jupyter = wanted.iter().filter(|language| matches!(language, Language::Jupyter(_)));
        own.chain(of_jupyter).filter_map(found).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_what_is_there_is_declared() {
        let found = EvalOptions::available(&Language::ALL, |language| {
            (*language == Language::JavaScript).then(|| Path::new("/n").to_owned())
        });
        assert_eq!(found, [(Language::JavaScript, PathBuf::from("/n"))]);
        let spec = spec(&[Language::JavaScript]);
        assert_eq!(spec.parameters["properties"]["language"]["enum"], json!(["js"]));
        assert!(!spec.description.contains("Python") && spec.description.contains("JavaScript"));
        let wanted = [Language::of("jupyter:ir").unwrap(), Language::Python];
        let found = EvalOptions::available(&wanted, |_| Some("/p".into()));
        let names: Vec<&str> = found.iter().map(|(language, _)| language.name()).collect();
        assert_eq!(names, ["py", "jupyter:ir"]);
    }
}
