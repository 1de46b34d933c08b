//! Commands in the terminal of an editor: the user sees them run there, and can look at all of their output.

use std::{ffi::OsString, future::pending, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use agentd_process::{
    CommandStreams, ExitStatus, LocalShell, RunningCommand, Shell, ShellError, ShellFuture, ShellJob,
    ShellOutcome, StopCause, resolve_shell,
};
use rustix::process::Signal;
use tokio::{
    select,
    time::{Instant, sleep_until, timeout},
};

use crate::truncate::format_size;

/// The most bytes of output that the editor keeps and gives: they come in one message.
const MAX_OUTPUT: u64 = 1 << 20;

/// The longest time to kill a command and to get its output, once it is stopped: less than a call has that was aborted.
const STOP_WAIT: Duration = Duration::from_millis(500);

/// The answer of an editor, or its reason against it.
pub type EditorAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// An editor's terminals.
///
/// Requests but [`Self::exit`] end with an error after some seconds when the editor does not answer. Errors are the editor's reasons, or
/// say that it has left. Cancel safe.
pub trait EditorTerminals: Send + Sync {
    /// Whether the editor offers terminals.
    fn offers_terminals(&self) -> bool;

    /// Starts a command for the tool call `call`, which shows the terminal from there on; gives the terminal's id. A terminal that the
    /// editor makes after the request was given up is released.
    fn create<'a>(
        &'a self,
        session: &'a str,
        call: &'a str,
        command: TerminalCommand,
    ) -> EditorAnswer<'a, String>;

    /// Waits for the end of the command.
    fn exit<'a>(&'a self, session: &'a str, terminal: &'a str) -> EditorAnswer<'a, TerminalExit>;

    /// The output so far.
    fn output<'a>(&'a self, session: &'a str, terminal: &'a str) -> EditorAnswer<'a, TerminalOutput>;

    /// Kills the command. The terminal stays.
    fn kill<'a>(&'a self, session: &'a str, terminal: &'a str) -> EditorAnswer<'a, ()>;

    /// Gives the terminal up, which kills a command that still runs. Does not wait for the editor.
    fn release(&self, session: &str, terminal: &str);
}

/// A command for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables besides those of the editor.
    pub env: Vec<(String, String)>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The most bytes of output to keep: the last ones.
    pub output_limit: u64,
}

/// How a command in a terminal ended. Editors give a code or a signal, some both or neither.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalExit {
    /// The exit code.
    pub code: Option<u32>,
    /// The name or number of the signal that ended it, such as `SIGKILL`.
    pub signal: Option<String>,
}

/// What a terminal shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalOutput {
    /// The end of the output.
    pub text: String,
    /// Whether its beginning is missing.
    pub is_cut: bool,
}

/// Runs commands in an editor's terminal, where the editor offers one.
///
/// Commands on a terminal of ours, outside of a sandbox, or in a client's own environment run in the shell of this machine all the same.
pub struct EditorShell {
    local: LocalShell,
    editor: Arc<dyn EditorTerminals>,
    session: Arc<str>,
}

impl EditorShell {
    /// The terminals of an editor for a session. `local` must confine nothing: the editor's terminal does not, either.
    #[must_use]
    pub fn new(local: LocalShell, editor: Arc<dyn EditorTerminals>, session: &str) -> Self {
        Self { local, editor, session: session.into() }
    }

    /// The tool call that a job is for, if the editor's terminal can take it.
    fn call<'a>(&self, job: &'a ShellJob) -> Option<&'a str> {
        let is_plain = job.streams == CommandStreams::Output && job.base.is_none() && !job.outside_sandbox;
        job.work.id.as_ref()?.as_str().filter(|_| is_plain && self.editor.offers_terminals())
    }

    async fn run(&self, job: ShellJob) -> Result<Box<dyn RunningCommand>, ShellError> {
        let Some(call) = self.call(&job).map(str::to_owned) else { return self.local.start(job).await };
        let ShellJob { command, cwd, env, timeout, cancel, .. } = job;
        if !tokio::fs::metadata(&cwd).await.is_ok_and(|about| about.is_dir()) {
            return Err(ShellError::WorkingDirectoryMissing(cwd));
        }
        let shell = resolve_shell(self.local.path.as_deref(), &self.local.env).await?;
        let command = TerminalCommand {
            program: text(shell.as_os_str().to_owned()),
            args: vec!["-c".to_owned(), command],
            env: env.into_iter().map(|(name, value)| (text(name), text(value))).collect(),
            cwd,
            output_limit: MAX_OUTPUT,
        };
        let started = Instant::now();
        let created = self.editor.create(&self.session, &call, command).await;
        let id = created.map_err(|reason| {
            let hint = "The user can turn the setting acp.clientTerminal off";
            ShellError::Unreachable(format!(
                "The command was not run: the editor gave no terminal: {reason}. {hint}."
            ))
        })?;
        let terminal =
            OpenTerminal { editor: Arc::clone(&self.editor), session: Arc::clone(&self.session), id };
        let deadline = timeout.and_then(|timeout| started.checked_add(timeout));
        let attending = Box::pin(async move {
            let stop = async {
                select! {
                    biased;
                    () = cancel.cancelled() => StopCause::Aborted,
                    () = until(deadline) => StopCause::TimedOut,
                }
            };
            terminal.attend(stop).await
        });
        Ok(Box::new(EditorRun {
            attending: Some(attending),
            end: TerminalEnd::default(),
            started,
            ended: started,
        }))
    }
}

impl Shell for EditorShell {
    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>> {
        Box::pin(self.run(job))
    }
}

/// JSON has no other texts.
fn text(value: OsString) -> String {
    value.into_string().unwrap_or_else(|value| value.to_string_lossy().into_owned())
}

/// Waits until then, for ever without a time. Cancel safe.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// A terminal that is released when this is dropped.
struct OpenTerminal {
    editor: Arc<dyn EditorTerminals>,
    session: Arc<str>,
    id: String,
}

impl Drop for OpenTerminal {
    fn drop(&mut self) {
        self.editor.release(&self.session, &self.id);
    }
}

impl OpenTerminal {
    /// Waits for the end of the command, or kills it when `stop` says so, and gets its output. Then the terminal is released.
    async fn attend(self, stop: impl Future<Output = StopCause>) -> TerminalEnd {
        let (editor, session, id) = (&self.editor, &*self.session, &*self.id);
        let (exit, stopped) = select! {
            biased;
            stopped = stop => (Ok(None), Some(stopped)),
            exit = editor.exit(session, id) => (exit.map(Some), None),
        };
        let closing = async {
            if stopped.is_some()
                && let Err(reason) = editor.kill(session, id).await
            {
                tracing::debug!(%reason, "the editor did not kill a command; releasing its terminal does");
            }
            editor.output(session, id).await
        };
        let output = match stopped {
            Some(_) => {
                timeout(STOP_WAIT, closing).await.unwrap_or_else(|_| Err("it does not answer".to_owned()))
            }
            None => closing.await,
        };
        TerminalEnd { exit, stopped, output }
    }
}

/// The end of a command in a terminal.
struct TerminalEnd {
    /// How it ended; `None` for a command that was stopped, an error where the editor does not say.
    exit: Result<Option<TerminalExit>, String>,
    stopped: Option<StopCause>,
    output: Result<TerminalOutput, String>,
}

impl Default for TerminalEnd {
    fn default() -> Self {
        Self { exit: Ok(None), stopped: None, output: Ok(TerminalOutput::default()) }
    }
}

/// A command in a terminal. Its output comes at its end, in one piece.
struct EditorRun {
    /// `None` once it has ended.
    attending: Option<Pin<Box<dyn Future<Output = TerminalEnd> + Send>>>,
    end: TerminalEnd,
    started: Instant,
    ended: Instant,
}

impl EditorRun {
    async fn piece(&mut self) -> Option<&[u8]> {
        let attending = self.attending.as_mut()?;
        self.end = attending.await;
        self.attending = None;
        self.ended = Instant::now();
        let output = self.end.output.as_ref().ok()?;
        Some(output.text.as_bytes()).filter(|bytes| !bytes.is_empty())
    }
}

impl RunningCommand for EditorRun {
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>> {
        Box::pin(self.piece())
    }

    fn failure(&self) -> Option<String> {
        let reason = self.end.exit.as_ref().err()?;
        Some(format!(
            "It is not known how the command ended: the editor, in whose terminal it ran, did not say: {reason}."
        ))
    }

    fn missing_output(&self) -> Option<String> {
        match &self.end.output {
            Ok(output) if output.is_cut => Some(format!(
                "The beginning of the output is missing: the editor's terminal keeps the last {} at most.",
                format_size(MAX_OUTPUT)
            )),
            Ok(_) => None,
            Err(reason) => Some(format!("The editor did not give the output of its terminal: {reason}.")),
        }
    }

    fn finish(self: Box<Self>) -> ShellOutcome {
        let exit = self.end.exit.as_ref().ok().and_then(Option::as_ref).and_then(exit_status);
        ShellOutcome {
            exit,
            stopped: self.end.stopped,
            shell_exited_after: None,
            wall_time: self.ended - self.started,
        }
    }
}

/// How the command ended; `None` where the editor gave neither a code nor a signal that is known.
fn exit_status(exit: &TerminalExit) -> Option<ExitStatus> {
    let signal = exit.signal.as_deref().and_then(signal_number).map(ExitStatus::signaled);
    signal.or_else(|| exit.code.and_then(|code| i32::try_from(code).ok()).map(ExitStatus::exited))
}

/// The number of a signal, from its number or its name, with or without `SIG`.
fn signal_number(name: &str) -> Option<i32> {
    /// The signals that end programs, by their names.
    const NAMES: [(&str, Signal); 24] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("ILL", Signal::ILL),
        ("TRAP", Signal::TRAP),
        ("ABRT", Signal::ABORT),
        ("BUS", Signal::BUS),
        ("FPE", Signal::FPE),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("SEGV", Signal::SEGV),
        ("USR2", Signal::USR2),
        ("PIPE", Signal::PIPE),
        ("ALRM", Signal::ALARM),
        ("TERM", Signal::TERM),
        ("STOP", Signal::STOP),
        ("TSTP", Signal::TSTP),
        ("TTIN", Signal::TTIN),
        ("TTOU", Signal::TTOU),
        ("XCPU", Signal::XCPU),
        ("XFSZ", Signal::XFSZ),
        ("VTALRM", Signal::VTALARM),
        ("PROF", Signal::PROF),
        ("SYS", Signal::SYS),
    ];
    let name = name.trim().to_ascii_uppercase();
    let plain = name.strip_prefix("SIG").unwrap_or(&name);
    let named = || NAMES.iter().find(|(known, _)| *known == plain).map(|(_, signal)| signal.as_raw());
    plain.parse().ok().filter(|number| (1..=64).contains(number)).or_else(named)
}

#[cfg(test)]
mod tests;
