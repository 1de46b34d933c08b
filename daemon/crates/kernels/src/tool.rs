//! The tool `eval`: runs one cell from the call to its result.

mod client_run;
mod kernel_run;
mod options;
mod updates;

use std::sync::Arc;

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture, hooks::Requester};
use agentd_protocol::{
    eval::EVAL_TOOL,
    tool::{ToolResult, ToolSpec},
};
use agentd_tools::{CommandWatch, explain_gap};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub use self::options::EvalOptions;
use self::{client_run::run_by_client, kernel_run::KernelRun};
use crate::{
    arguments::{DEFAULT_TIMEOUT, EvalCall, prepared},
    environment::passed,
    executor::ExecutorCell,
    language::Language,
    start::KernelTerms,
};

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
            let outputs = self.options.outputs.clone();
            let done = run_by_client(&*executor, cell, &call, outputs, (&cancel, &progress)).await;
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
        let run = KernelRun {
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

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
