//! Slash commands whose texts have shell commands: which of them run, and running them, while the message waits.

use std::time::Duration;

use agentd_agent::hooks::{Action, GateDecision, Requester};
use agentd_config::resources::{ExpandError, TemplateCommands};
use agentd_process::{CleanedOutput, CleanedRun, CommandStreams, ShellJob, StopCause};
use agentd_protocol::{
    command::{Work, WorkKind},
    error::{ErrorCode, Failure},
};
use agentd_tools::CommandWatch;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    child_environment::ChildEnvironment, context::SessionContext, requests::PendingRequest,
    server_prompts::MessageCommand, user_bash::shell_failure,
};

/// The tool whose calls the commands are judged as, and without which none runs.
pub(crate) const COMMAND_TOOL: &str = "bash";

/// The time that all commands of a message may run together. Questions about them do not count.
const TIME: Duration = Duration::from_secs(60);

/// A message whose commands have run, or not.
pub(crate) struct FilledTemplate {
    pub(crate) command: MessageCommand,
    pub(crate) request: PendingRequest,
    /// The text of the message, with the outputs in their places.
    pub(crate) outcome: Result<String, Failure>,
}

/// How the commands of a message run.
pub(crate) struct TemplateRun<'a> {
    pub(crate) context: &'a SessionContext,
    /// Whether the model could call the tool.
    pub(crate) has_tool: bool,
    /// The id of the message's command, for lists of processes.
    pub(crate) id: Option<Value>,
    /// Another environment than the session's.
    pub(crate) base: Option<ChildEnvironment>,
    /// Gives up.
    pub(crate) cancel: &'a CancellationToken,
}

/// The failure for a message that cannot be expanded.
pub(crate) fn expand_failure(error: &ExpandError) -> Failure {
    let code = match error {
        ExpandError::Unreadable { .. } => ErrorCode::Io,
        ExpandError::LongArguments { .. }
        | ExpandError::LongResult { .. }
        | ExpandError::ManyCommands { .. }
        | ExpandError::LongCommand { .. }
        | ExpandError::UnsafeArgument { .. } => ErrorCode::InvalidField,
    };
    Failure::new(code, error.to_string())
}

impl SessionContext {
    /// Why the shell commands of a slash command are text, if they are: those of a project need its trust, for the file as it is. Reads the
    /// file; blocks.
    pub(crate) fn keeps_as_text(&self, commands: &TemplateCommands) -> Option<&'static str> {
        if !commands.is_of_project {
            return None;
        }
        let trusted = self.prompt.trusted_as.as_ref().filter(|_| self.prompt.is_of_cwd);
        match trusted {
            None => Some("the project is not trusted"),
            Some(trusted) if trusted.covers_commands(&self.cwd, &commands.file) => None,
            Some(_) => Some(
                "the project was not trusted with the file as it is now; open the session anew, and you are asked",
            ),
        }
    }
}

impl TemplateRun<'_> {
    /// Runs the commands one after the other, as the permissions say, and puts their outputs into the text.
    ///
    /// Cancel safety: dropped early, the command that runs is killed with all that it started.
    ///
    /// # Errors
    /// The failure that answers the message: one of them is not permitted, cannot be started, or takes too long.
    pub(crate) async fn fill(&self, commands: &TemplateCommands) -> Result<String, Failure> {
        let lines = commands.lines().map_err(|error| expand_failure(&error))?;
        if !self.has_tool {
            let text = format!(
                "The slash command runs shell commands, and the tool {COMMAND_TOOL} is not active in this session."
            );
            return Err(Failure::new(ErrorCode::Forbidden, text));
        }
        let mut left = TIME;
        let mut outputs = Vec::with_capacity(lines.len());
        for (number, line) in lines.into_iter().enumerate() {
            let permitted = self.permitted(&line, number).await?;
            let begun = Instant::now();
            outputs.push(self.output(&permitted, left).await?);
            left = left.saturating_sub(begun.elapsed());
        }
        commands.text(&outputs).map_err(|error| expand_failure(&error))
    }

    /// The command as the hooks and the permissions let it run.
    async fn permitted(&self, line: &str, number: usize) -> Result<String, Failure> {
        let call_id = format!("slash-command-{number}");
        let arguments = json!({"command": line});
        let action = Action {
            // The text of a file, not the user's own words.
            by: Requester::Model { call_id: &call_id },
            tool: COMMAND_TOOL,
            arguments: &arguments,
            cwd: &self.context.cwd,
            is_trusted_read: false,
            declares_reading: false,
            schema: None,
            must_ask: None,
        };
        match self.context.gate.before(&action, self.cancel).await {
            GateDecision::Free { arguments: None } => Ok(line.to_owned()),
            GateDecision::Free { arguments: Some(changed) } => match changed["command"].as_str() {
                Some(changed) => Ok(changed.to_owned()),
                None => Err(Failure::new(
                    ErrorCode::Forbidden,
                    format!("A hook has left no command of `{line}`."),
                )),
            },
            GateDecision::Blocked { reason, .. } => {
                Err(Failure::new(ErrorCode::Forbidden, format!("`{line}` was not run. {reason}")))
            }
            GateDecision::Stopped => Err(aborted()),
        }
    }

    /// Runs a command: its output, as the text has it.
    async fn output(&self, line: &str, time: Duration) -> Result<String, Failure> {
        let context = self.context;
        let cwd = self.cancel.run_until_cancelled(context.directory()).await.ok_or_else(aborted)??;
        let job = ShellJob {
            command: context.prefixed_command(line),
            cwd,
            base: self.base.clone(),
            env: Vec::new(),
            timeout: Some(time),
            cancel: self.cancel.child_token(),
            streams: CommandStreams::Output,
            work: Work { kind: WorkKind::Bash, id: self.id.clone(), name: Some(line.to_owned()) },
            outside_sandbox: false,
        };
        // What it changes is the user's own, as with commands of `bash`.
        let changes = CommandWatch::begin(context.undo.as_ref(), None, COMMAND_TOOL, Requester::User).await;
        let run = async {
            let mut run = CleanedRun::start(&*context.shell, job, context.outputs.clone()).await?;
            while run.next().await.is_some() {}
            run.finish()
        };
        let finished = run.await;
        let _ = changes.end().await;
        shown(line, finished.map_err(|error| shell_failure(&error))?)
    }
}

/// An output as the text has it.
fn shown(line: &str, finished: CleanedOutput) -> Result<String, Failure> {
    let CleanedOutput { output, full_output, outcome } = finished;
    let failed = |text: String| Failure::new(ErrorCode::LimitReached, text);
    match outcome.stopped {
        Some(StopCause::Aborted) => return Err(aborted()),
        Some(StopCause::TimedOut) => {
            let seconds = TIME.as_secs();
            return Err(failed(format!(
                "`{line}` was killed: the shell commands of a slash command have {seconds} seconds together."
            )));
        }
        Some(StopCause::Limit(limit)) => {
            return Err(Failure::new(ErrorCode::LimitReached, format!("`{line}` was killed. {limit}")));
        }
        None => {}
    }
    let mut text = output.content.trim_end().to_owned();
    if output.truncated {
        let whole = full_output.map_or(String::new(), |file| format!(" All of it is in {}.", file.display()));
        let (kept, all) = (output.output_lines, output.total_lines);
        text = format!("[The last {kept} of {all} lines.{whole}]\n{text}");
    }
    match outcome.exit.map(|exit| exit.code) {
        None | Some(0) => Ok(text),
        Some(code) if text.is_empty() => Ok(format!("Command exited with code {code}")),
        Some(code) => Ok(format!("{text}\n\nCommand exited with code {code}")),
    }
}

fn aborted() -> Failure {
    Failure::new(
        ErrorCode::Aborted,
        "The message was aborted while the shell commands of its slash command ran.",
    )
}
