//! A tool that a file names, and its calls.

use std::{ffi::OsString, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture, hooks::Requester};
use agentd_checkpoints::SessionCheckpoints;
use agentd_process::{
    CommandStreams, InputPipe, OutputPipe, OutputStorage, OutputTail, ProcessGroup, ShellCommand,
    ShellOutcome, ShellRun, StopCause, resolve_shell,
};
use agentd_protocol::{
    command::{Work, WorkKind},
    tool::{ToolResult, ToolSpec},
};
use agentd_sandbox::SandboxPolicy;
use agentd_tools::{CommandWatch, explain_gap, tail_details, tail_text};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    select,
    time::timeout,
};

use super::{
    answer::answer,
    definition::{ToolApproval, ToolDefinition},
};

/// The longest answer in JSON; a longer output is text.
const MAX_ANSWER: usize = 4 << 20;

/// The end of an aborted call's error, as of `bash`.
const ABORTED: &str = "Command aborted";

/// The bytes of errors that a failed call shows.
const MAX_ERRORS: usize = 10 << 10;

/// How long errors may still come once the program and its output have ended.
const LAST_ERRORS: Duration = Duration::from_millis(100);

/// Bytes of errors that are read at once.
const CHUNK: usize = 8 << 10;

/// What all programs of a session's tools are run with.
#[derive(Clone)]
pub(crate) struct FileToolHost {
    pub(crate) processes: ProcessGroup,
    /// The setting `shellPath`.
    pub(crate) shell: Option<PathBuf>,
    /// The environment of commands.
    pub(crate) env: Arc<[(OsString, OsString)]>,
    pub(crate) sandbox: Option<Arc<SandboxPolicy>>,
    /// Where long outputs go.
    pub(crate) outputs: OutputStorage,
    /// Keeps what programs change; `None` while undo is off.
    pub(crate) undo: Option<Arc<SessionCheckpoints>>,
}

/// A tool that a file names.
pub(crate) struct FileTool {
    spec: Arc<ToolSpec>,
    label: Option<String>,
    command: Vec<String>,
    timeout: Option<Duration>,
    approval: ToolApproval,
    host: FileToolHost,
}

impl FileTool {
    pub(super) fn new(definition: ToolDefinition, host: FileToolHost) -> Self {
        let ToolDefinition { spec, label, command, timeout, approval } = definition;
        Self { spec: Arc::new(spec), label, command, timeout, approval, host }
    }

    /// The time for a call.
    pub(crate) const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let Invocation { call_id, arguments, cwd, session_env, environment, cancel, .. } = invocation;
        let base = environment.as_ref().unwrap_or(&self.host.env);
        let session_env = session_env.into_iter().map(|(name, value)| (name.into(), value.into()));
        let env: Vec<(OsString, OsString)> = base.iter().cloned().chain(session_env).collect();
        let shell = resolve_shell(self.host.shell.as_deref(), &env).await.map_err(failed)?;
        let work =
            Work { kind: WorkKind::Tool, id: Some(call_id.into()), name: Some(self.spec.name.clone()) };
        let command = ShellCommand {
            shell,
            command: line(&self.command),
            cwd,
            env,
            timeout: self.timeout,
            cancel,
            streams: CommandStreams::Separate,
            sandbox: self.host.sandbox.clone(),
        };
        let started = ShellRun::start(&self.host.processes.working_for(work), command).await;
        let mut run = started.map_err(failed)?;
        let (mut tail, mut whole) = (OutputTail::new(self.host.outputs.clone()), Some(Vec::new()));
        let mut errors = Vec::new();
        {
            let (input, stderr) = (run.take_input(), run.take_errors());
            let mut beside =
                pin!(async { tokio::join!(write(input, &arguments), read(stderr, &mut errors)) });
            let mut is_done = false;
            loop {
                select! {
                    biased;
                    chunk = run.next() => match chunk {
                        Some(chunk) => {
                            match &mut whole {
                                Some(bytes) if bytes.len() + chunk.len() <= MAX_ANSWER => {
                                    bytes.extend_from_slice(chunk);
                                }
                                _ => whole = None,
                            }
                            tail.push(chunk).await;
                        }
                        None => break,
                    },
                    _ = &mut beside, if !is_done => is_done = true,
                }
            }
            if !is_done {
                // What has come until then is enough.
                let _ = timeout(LAST_ERRORS, beside).await;
            }
        }
        tail.finish().await;
        let answered = whole.and_then(|bytes| answer(&String::from_utf8_lossy(&bytes)));
        self.result(&run.finish(), answered, &tail, &String::from_utf8_lossy(&errors))
    }

    fn result(
        &self,
        outcome: &ShellOutcome,
        answered: Option<ToolResult>,
        tail: &OutputTail,
        errors: &str,
    ) -> Result<ToolResult, ToolError> {
        let text = tail_text(tail);
        let ended = match outcome.stopped {
            Some(StopCause::Aborted) => Some(ABORTED.to_owned()),
            Some(StopCause::TimedOut) => {
                let seconds = self.timeout.unwrap_or_default().as_secs_f64();
                Some(format!("The tool did not end within {seconds} seconds and was killed."))
            }
            Some(StopCause::Limit(limit)) => Some(limit.to_string()),
            None => match outcome.exit.map_or(-1, |exit| exit.code) {
                0 => None,
                code => Some(format!("The program of the tool exited with code {code}.")),
            },
        };
        match (ended, answered) {
            (None, Some(result)) => Ok(result),
            (None, None) => {
                let text = if text.is_empty() { "(no output)".to_owned() } else { text };
                Ok(ToolResult { details: tail_details(tail), ..ToolResult::text(text) })
            }
            (Some(ended), answered) => {
                // An answer that says what went wrong comes before the bare fact.
                let said = answered.and_then(|result| Some(result.content.first()?.as_text()?.to_owned()));
                let parts = [said.unwrap_or(text), errors.trim().to_owned(), ended];
                let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                Err(ToolError(parts.join("\n\n")))
            }
        }
    }
}

impl Tool for FileTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    fn is_trusted_read(&self) -> bool {
        self.approval == ToolApproval::Read
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move {
            let call_id = invocation.call_id.clone();
            let by = Requester::Model { call_id: &call_id };
            let (undo, name) = (self.host.undo.as_ref(), &self.spec.name);
            let begin = CommandWatch::begin(undo, Some(&call_id), name, by);
            let Some(changes) = invocation.cancel.run_until_cancelled(begin).await else {
                return Err(ToolError(ABORTED.to_owned()));
            };
            let done = self.run(invocation).await;
            explain_gap(done, changes.end().await)
        })
    }
}

/// The words as a line for a shell, which becomes the program.
fn line(command: &[String]) -> String {
    let quoted = command.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    format!("exec {}", quoted.collect::<Vec<_>>().join(" "))
}

fn failed(error: impl std::fmt::Display) -> ToolError {
    ToolError(format!("The program of the tool could not be run: {error}"))
}

/// A program need not read its arguments.
async fn write(input: Option<InputPipe>, arguments: &Value) {
    if let Some(mut input) = input {
        let mut line = arguments.to_string();
        line.push('\n');
        let _ = input.write_all(line.as_bytes()).await;
    }
}

async fn read(errors: Option<OutputPipe>, into: &mut Vec<u8>) {
    let Some(mut errors) = errors else { return };
    let mut buffer = vec![0; CHUNK];
    // A pipe that cannot be read is at its end.
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let room = MAX_ERRORS - into.len();
        into.extend_from_slice(&buffer[..count.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        let words = ["a b", "it's", "$HOME", "*"].map(str::to_owned);
        assert_eq!(line(&words), "exec 'a b' 'it'\\''s' '$HOME' '*'");
    }
}
