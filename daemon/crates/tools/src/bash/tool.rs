//! The `bash` tool: starts a call.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture, hooks::Requester};
use agentd_checkpoints::SessionCheckpoints;
use agentd_process::{BackgroundJob, CommandStreams, OutputStorage, Shell, ShellJob};
use agentd_protocol::{
    command::{Work, WorkKind},
    tool::{ToolResult, ToolSpec},
};

use super::{
    arguments::BashCall,
    background, call,
    features::BashFeatures,
    report::ABORTED,
    sandbox_note,
    spec::{NAME, spec},
};
use crate::{
    path::Base,
    undo::{CommandWatch, explain_gap},
};

/// The options that all `bash` calls of a session share.
#[derive(Clone)]
pub struct BashOptions {
    /// The shell that runs the commands.
    pub shell: Arc<dyn Shell>,
    /// The setting `shellCommandPrefix`: a line before every command.
    pub command_prefix: Option<String>,
    /// Where output that is too long to show is kept.
    pub outputs: OutputStorage,
    /// The folder that `~` means in a command's `cwd`; `None` leaves `~` as it is.
    pub home: Option<PathBuf>,
    /// The enabled features.
    pub features: BashFeatures,
    /// Keeps what commands change; `None` while undo is off.
    pub undo: Option<Arc<SessionCheckpoints>>,
}

/// Variables of commands on a terminal: its type, and pagers that do not wait for a user.
const OF_TERMINALS: [(&str, &str); 3] = [("TERM", "xterm-256color"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// Runs shell commands.
pub struct BashTool {
    options: BashOptions,
    spec: Arc<ToolSpec>,
}

impl BashTool {
    /// The tool of one session.
    #[must_use]
    pub fn new(options: BashOptions) -> Self {
        Self { spec: Arc::new(spec(&options.features)), options }
    }

    /// With the description that `share` gives for an equal one: sessions with the same features need only one in memory.
    #[must_use]
    pub fn with_shared_spec(mut self, share: impl FnOnce(Arc<ToolSpec>) -> Arc<ToolSpec>) -> Self {
        self.spec = share(self.spec);
        self
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let Invocation { call_id, arguments, cwd, session_env, environment, cancel, progress, .. } =
            invocation;
        let BashOptions { shell, command_prefix, outputs, home, features, undo } = &self.options;
        let base = Base { cwd: &cwd, home: home.as_deref() };
        let BashCall { command: written, timeout, terminal, background, cwd, env: own, outside_sandbox } =
            BashCall::read(arguments, features, base)?;
        if let Some(refusal) = features.interception.as_ref().and_then(|rules| rules.refusal(&written)) {
            return Err(ToolError(refusal));
        }
        let of_terminal = if terminal.is_some() { &OF_TERMINALS[..] } else { &[] };
        let mut env: Vec<(OsString, OsString)> =
            session_env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        env.extend(of_terminal.iter().map(|(name, value)| (name.into(), value.into())));
        env.extend(own);
        let job = ShellJob {
            command: match command_prefix {
                Some(prefix) => format!("{prefix}\n{written}"),
                None => written.clone(),
            },
            cwd,
            base: environment,
            env,
            timeout: timeout.as_ref().map(|timeout| timeout.time),
            cancel,
            streams: terminal.map_or(CommandStreams::Output, CommandStreams::Terminal),
            work: Work { kind: WorkKind::Tool, id: Some(call_id.as_str().into()), name: Some(NAME.into()) },
            outside_sandbox,
        };
        let by = Requester::Model { call_id: &call_id };
        let begin = CommandWatch::begin(undo.as_ref(), Some(&call_id), NAME, by);
        // An abort does not wait for the index.
        let Some(changes) = job.cancel.run_until_cancelled(begin).await else {
            return Err(ToolError(ABORTED.into()));
        };
        let mut done = match features.background.as_ref().filter(|_| background) {
            Some(feature) => {
                let job = BackgroundJob { label: written, job, outputs: outputs.clone() };
                background::start(feature, job, changes).await
            }
            None => {
                let done = call::run(&**shell, job, timeout, outputs.clone(), &progress).await;
                explain_gap(done, changes.end().await)
            }
        };
        if let (Ok(result), Some(policy), false) = (&mut done, &features.sandbox, outside_sandbox) {
            sandbox_note::explain(result, policy);
        }
        done
    }
}

impl Tool for BashTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Run bash commands: list files, search, build, test, use git")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "The PI_* environment variables of a bash command tell about this session (its id, file, provider and model); inspect them when that helps.",
        ]
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}
