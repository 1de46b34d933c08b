//! The `bash` tool: starts a call.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture, hooks::Requester};
use agentd_checkpoints::SessionCheckpoints;
use agentd_process::{BackgroundJob, CommandStreams, JobTerms, OutputStorage, Shell, ShellJob};
use agentd_protocol::{
    command::{Work, WorkKind},
    tool::{ToolResult, ToolSpec},
};

use super::{
    arguments::{BashCall, has_own_shell},
    background, call,
    features::BashFeatures,
    jobs::{self, JobCommand},
    movable,
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

/// Variables that keep programs from asking and paging. A terminal's own come after them.
const NON_INTERACTIVE: [(&str, &str); 7] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("CI", "true"),
];

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
        let has_own_shell = has_own_shell(&arguments);
        let call = BashCall::read(arguments, features, base)?;
        let BashCall {
            command: written,
            timeout,
            terminal,
            background,
            cwd,
            env: own,
            outside_sandbox,
            job: of_job,
        } = call;
        if let Some(refusal) = features.interception.as_ref().and_then(|rules| rules.refusal(&written)) {
            return Err(ToolError(refusal));
        }
        let quiet = if features.non_interactive { &NON_INTERACTIVE[..] } else { &[] };
        let of_terminal = if terminal.is_some() { &OF_TERMINALS[..] } else { &[] };
        let mut env: Vec<(OsString, OsString)> =
            session_env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        env.extend(quiet.iter().map(|(name, value)| (name.into(), value.into())));
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
        let jobs = features.jobs.as_ref();
        let on_terminal = matches!(job.streams, CommandStreams::Terminal(_));
        // What is asked for one command alone is not for the shell that stays, whose commands cannot become jobs either.
        let of_session = features.session.as_ref().filter(|_| !has_own_shell);
        let of_plain_call = jobs
            .filter(|_| of_session.is_none())
            .and_then(|feature| Some((feature, feature.auto_after.filter(|_| !on_terminal)?)));
        let in_background = features.background.as_ref().filter(|_| background);
        let command = |job| JobCommand {
            written: written.clone(),
            job,
            outputs: outputs.clone(),
            call_id: call_id.clone(),
        };
        let mut done = match (jobs.zip(of_job), in_background, of_plain_call) {
            (Some((feature, of_job)), ..) => jobs::start(feature, command(job), of_job, changes).await,
            (None, Some(feature), _) => {
                let terms = JobTerms::default();
                let job = BackgroundJob { label: written, job, outputs: outputs.clone(), terms };
                background::start(feature, job, changes).await
            }
            (None, None, Some((feature, after))) => {
                movable::run(feature, command(job), after, timeout, changes, &progress).await
            }
            (None, None, None) => {
                let shell: &dyn Shell = match of_session {
                    Some(session) => session,
                    None => &**shell,
                };
                let done = call::run(shell, job, timeout, outputs.clone(), &progress).await;
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
        let of_jobs = self.options.features.jobs.as_ref().map(|jobs| {
            if jobs.wakes {
                "Start long commands with async in bash, and servers with name and ready, and go on with other work; you are told when one ends. Look at jobs with read proc://, wait for them with wait, and end what is no longer needed (write to proc://ID/kill)."
            } else {
                "Start long commands with async in bash, and servers with name and ready, and go on with other work; wait for the jobs whose results you need before you end your turn, since you hear of later ones only with the user's next message. Look at jobs with read proc://, and end what is no longer needed (write to proc://ID/kill)."
            }
        });
        let own = vec![
            "The PI_* environment variables of a bash command tell about this session (its id, file, provider and model); inspect them when that helps.",
        ];
        own.into_iter().chain(of_jobs).collect()
    }

    fn execution(&self) -> ExecutionMode {
        // The directory that a command was judged in is that of the one before it.
        match self.options.features.session {
            Some(_) => ExecutionMode::Sequential,
            None => ExecutionMode::Parallel,
        }
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}
