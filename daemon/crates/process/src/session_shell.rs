//! A shell that stays: the directory, variables, functions and aliases of a command are there for the next one.
//!
//! The commands are given to one bash by a pipe, and it says by another how each of them ended and where it is now. What they print goes to a
//! third, as that of any command. An idle shell costs a process; it ends after a while, and before that with its group.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    select,
    sync::{Mutex, OwnedMutexGuard},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    command::{CommandSpec, CommandStreams, ExitStatus},
    process::{KILL_WAIT, Process, ProcessMark},
    shell::{LocalShell, RunningCommand, Shell, ShellFuture, ShellJob},
    shell_run::{ShellCommand, ShellError, ShellOutcome, StopCause},
    shell_snapshot::{ShellSnapshot, SnapshotState},
    streams::{InputPipe, OutputPipe},
};

/// Idle time after which the shell ends: 15 minutes.
const IDLE: Duration = Duration::from_secs(15 * 60);

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// The most that is read after a command's end: what is in the pipe by then, even if something that it left goes on writing.
const MOST_AFTER_END: usize = 1 << 20;

/// Gives the descriptors of the standard streams other numbers, and puts the program in the place of the shell. A constant: nothing is ever put
/// into it.
const MOVE_DESCRIPTORS: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// The first line of the shell's script: error messages name the shell, and aliases count.
const BEGIN: &str = "BASH_ARGV0=bash; shopt -s expand_aliases\n";

/// Takes a command, which follows up to a NUL. The script is the pipe itself: so no command is inside of a loop or function of ours.
const TAKE: &str = "{ IFS= read -r -d '' __agentd_command <&3; } 2>/dev/null\n";

/// Runs it, and says how it ended and where the shell is.
const RUN: &str =
    "eval \"$__agentd_command\" 3<&- 4>&-\n{ printf '%d\\0%s\\0' \"$?\" \"$PWD\" >&4; } 2>/dev/null\n";

/// The script, which bash reads from the pipe byte by byte.
const SCRIPT: &str = "/dev/fd/3";

/// The shell of one session that stays, whether it runs or not. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub struct ShellSession {
    state: Arc<Mutex<State>>,
    directory: Directory,
    snapshot: SnapshotState,
}

/// Where the shell was after its last command; `None` before the first.
#[derive(Debug, Clone, Default)]
struct Directory(Arc<StdMutex<Option<PathBuf>>>);

impl Directory {
    fn get(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, directory: Option<PathBuf>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = directory;
    }
}

impl ShellSession {
    /// The directory that the next command runs in, where that is not the session's own: what its relative paths mean.
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        self.directory.get()
    }

    /// The snapshot of the user's shell, of which a session has one, with its file in `folder`: commands in the sandbox can read that and not
    /// write it.
    #[must_use]
    pub fn snapshot(&self, folder: PathBuf) -> ShellSnapshot {
        ShellSnapshot::new(self.snapshot.clone(), folder)
    }

    /// Why commands run without that snapshot, where it was tried.
    #[must_use]
    pub fn snapshot_problem(&self) -> Option<&str> {
        self.snapshot.problem()
    }
}

#[derive(Debug, Default)]
struct State {
    shell: Option<IdleShell>,
    /// Why it is gone, until the next command says so.
    lost: Option<String>,
}

/// A shell without a command.
#[derive(Debug)]
struct IdleShell {
    process: Process,
    control: OutputPipe,
    /// The variables that were exported for commands.
    exported: Vec<(OsString, OsString)>,
    wake: CancellationToken,
    /// Reads what is left running meanwhile. Its result: the shell's input and output, unless it was idle for too long.
    idle: JoinHandle<Option<(InputPipe, OutputPipe)>>,
}

/// Runs commands in a [`ShellSession`], and in shells of their own those that it cannot take: while another one runs, on a terminal, outside of
/// the sandbox, and where the shell is no bash.
#[derive(Debug, Clone)]
pub struct SessionShell {
    /// Starts the shell, and the others.
    pub local: LocalShell,
    /// The shell that stays.
    pub session: ShellSession,
}

impl SessionShell {
    async fn run(&self, job: ShellJob) -> Result<Box<dyn RunningCommand>, ShellError> {
        let is_plain = job.streams == CommandStreams::Output && !job.outside_sandbox;
        if !is_plain || job.command.contains('\0') {
            return self.local.start(job).await;
        }
        // The command was judged with this as what its relative paths mean.
        let known = self.session.directory();
        let Ok(mut state) = Arc::clone(&self.session.state).try_lock_owned() else {
            let cwd = known.unwrap_or_else(|| job.cwd.clone());
            return self.local.start(ShellJob { cwd, ..job }).await;
        };
        let (work, cancel, limit) = (job.work.clone(), job.cancel.clone(), job.timeout);
        let added = job.env.clone();
        let start_directory = job.cwd.clone();
        let written = job.command.clone();
        let (command, snapshot) = self.local.prepared(job.clone()).await?;
        if command.shell.file_name().is_none_or(|name| name != "bash") {
            drop(state);
            return self.local.start(job).await;
        }
        let mut notice = None;
        let woken = match state.shell.take() {
            Some(idle) => idle.woken(&mut state).await,
            None => None,
        };
        let is_new = woken.is_none();
        let (process, control, exported, input, output) = match woken {
            Some(shell) => shell,
            None => {
                if let Some(gone) = known.as_ref().filter(|known| !known.is_dir()) {
                    // In another one, its paths would mean something else. The next command is in the session's own.
                    self.session.directory.set(None);
                    return Err(ShellError::WorkingDirectoryMissing(gone.clone()));
                }
                let directory = known.unwrap_or(start_directory);
                if let Some(why) = state.lost.take() {
                    notice = Some(format!(
                        "The shell of earlier commands is gone: {why}. A new one was started in {}; variables and functions of before are not \
                         there.",
                        directory.display()
                    ));
                }
                self.start_shell(command, &directory, work).await?
            }
        };
        let mut exported = exported;
        let (begin, snapshot) = if is_new { (BEGIN, snapshot.as_str()) } else { ("", "") };
        let text = format!("{begin}{snapshot}{TAKE}{}{written}\0{RUN}", exports(&mut exported, &added));
        let mark = process.mark().await;
        let mut run = SessionRun {
            state,
            directory: self.session.directory.clone(),
            parts: Some(Parts { process, control, exported, input, output }),
            mark,
            cancel,
            deadline: None,
            started: Instant::now(),
            buffer: vec![0; CHUNK],
            said: Vec::new(),
            phase: Phase::Running,
            drained: 0,
            outcome: None,
            stopped: None,
            is_gone: false,
            notice,
        };
        run.deadline = limit.and_then(|limit| run.started.checked_add(limit));
        if let Some(parts) = &mut run.parts {
            // An error means that the shell is gone, which reading notices.
            let _ = parts.input.write_all(text.as_bytes()).await;
        }
        Ok(Box::new(run))
    }

    async fn start_shell(
        &self,
        command: ShellCommand,
        directory: &Path,
        work: agentd_protocol::command::Work,
    ) -> Result<WokenShell, ShellError> {
        let ShellCommand { shell, env, sandbox, .. } = command;
        let args = ["-c", MOVE_DESCRIPTORS, "agentd-shell"].map(OsString::from);
        let mut args = args.to_vec();
        args.extend([shell.into_os_string(), SCRIPT.into()]);
        let spec = CommandSpec {
            program: "/bin/sh".into(),
            args,
            cwd: directory.to_owned(),
            env: env.clone(),
            streams: CommandStreams::Separate,
            sandbox,
        };
        let mut process = self.local.group.working_for(work).spawn(spec).await?;
        match (process.take_output(), process.take_input(), process.errors.take()) {
            (Some(control), Some(input), Some(output)) => Ok((process, control, env, input, output)),
            _ => Err(ShellError::Unreachable("The shell's streams are not there.".to_owned())),
        }
    }
}

impl Shell for SessionShell {
    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>> {
        Box::pin(self.run(job))
    }
}

type WokenShell = (Process, OutputPipe, Vec<(OsString, OsString)>, InputPipe, OutputPipe);

impl IdleShell {
    /// Takes it for a command; `None` where it is gone, which the state then says.
    async fn woken(self, state: &mut State) -> Option<WokenShell> {
        let Self { process, control, exported, wake, idle } = self;
        wake.cancel();
        let pipes = idle.await.ok().flatten();
        let why = match (process.exit(), pipes) {
            (None, Some((input, output))) => return Some((process, control, exported, input, output)),
            (_, None) => format!("it had nothing to do for {} minutes", IDLE.as_secs() / 60),
            (Some(status), Some((_, output))) => {
                process.group().drain(output);
                exit_text(status)
            }
        };
        state.lost = Some(why);
        None
    }
}

/// Lines that export what differs from what the shell has. The values are the session's own, in quotes.
fn exports(known: &mut Vec<(OsString, OsString)>, wanted: &[(OsString, OsString)]) -> String {
    let mut lines = String::new();
    for (name, value) in wanted {
        let last = known.iter().rev().find(|(other, _)| other == name);
        if last.is_some_and(|(_, last)| last == value) {
            continue;
        }
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            lines.push_str(&format!("export {name}='{}'\n", value.replace('\'', r"'\''")));
        }
        known.retain(|(other, _)| other != name);
        known.push((name.clone(), value.clone()));
    }
    lines
}

fn exit_text(status: ExitStatus) -> String {
    match status.signal {
        Some(signal) => format!("signal {signal} ended it"),
        None => format!("it exited with code {}", status.code),
    }
}

/// A command in the shell that stays. Dropping it before its end kills it, and the shell.
struct SessionRun {
    state: OwnedMutexGuard<State>,
    directory: Directory,
    /// `None` once the shell is idle or gone.
    parts: Option<Parts>,
    /// What ran before it.
    mark: ProcessMark,
    cancel: CancellationToken,
    deadline: Option<Instant>,
    started: Instant,
    buffer: Vec<u8>,
    /// What the shell has said of the end so far.
    said: Vec<u8>,
    phase: Phase,
    /// Bytes read since the end.
    drained: usize,
    outcome: Option<ExitStatus>,
    stopped: Option<StopCause>,
    /// Whether the shell is gone.
    is_gone: bool,
    notice: Option<String>,
}

struct Parts {
    process: Process,
    control: OutputPipe,
    exported: Vec<(OsString, OsString)>,
    input: InputPipe,
    output: OutputPipe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// It has ended; what it wrote is read.
    Draining,
    Over,
}

enum News {
    Stop(StopCause),
    Said(usize),
    Exited(ExitStatus),
    Printed(usize),
}

impl SessionRun {
    async fn read(&mut self) -> Option<&[u8]> {
        loop {
            let Some(parts) = &mut self.parts else { return None };
            match self.phase {
                Phase::Over => return None,
                Phase::Draining => match parts.output.try_read(&mut self.buffer) {
                    Ok(count @ 1..) if self.drained < MOST_AFTER_END => {
                        self.drained += count;
                        return Some(&self.buffer[..count]);
                    }
                    Ok(_) | Err(_) => {
                        self.settle();
                        return None;
                    }
                },
                Phase::Running => {}
            }
            let mut said = [0; 4096];
            let news = {
                let deadline = self.deadline.unwrap_or(self.started);
                select! {
                    biased;
                    () = self.cancel.cancelled() => News::Stop(StopCause::Aborted),
                    () = sleep_until(deadline), if self.deadline.is_some() => News::Stop(StopCause::TimedOut),
                    // A pipe that cannot be read is at its end, as is that of a shell that has ended.
                    count = parts.control.read(&mut said) => match count {
                        Ok(count @ 1..) => News::Said(count),
                        Ok(0) | Err(_) => News::Exited(parts.process.wait().await),
                    },
                    status = parts.process.wait() => News::Exited(status),
                    count = parts.output.read(&mut self.buffer) => News::Printed(count.unwrap_or(0)),
                }
            };
            match news {
                News::Printed(0) => {
                    // Nobody is left who could write: the shell is ending.
                    let status = parts.process.wait().await;
                    self.exited(status);
                }
                News::Printed(count) => return Some(&self.buffer[..count]),
                News::Said(count) => {
                    self.said.extend_from_slice(&said[..count]);
                    self.heard();
                }
                News::Exited(status) => self.exited(status),
                News::Stop(why) => {
                    // The shell first: it would go on with the rest of the command.
                    parts.process.kill_own().await;
                    // One that cannot be killed now is left to its supervisor.
                    let status = timeout(KILL_WAIT, parts.process.wait()).await.ok();
                    parts.process.kill_newer(&self.mark).await;
                    self.stopped = Some(why);
                    self.outcome = status;
                    self.is_gone = true;
                    self.phase = Phase::Draining;
                }
            }
        }
    }

    /// The command has ended once the shell has said its code and its directory.
    fn heard(&mut self) {
        let mut fields = self.said.split(|byte| *byte == 0);
        let (Some(code), Some(directory), Some(_)) = (fields.next(), fields.next(), fields.next()) else {
            return;
        };
        let code = std::str::from_utf8(code).ok().and_then(|code| code.parse().ok()).unwrap_or(-1);
        self.outcome = Some(ExitStatus::exited(code));
        self.directory.set(Some(PathBuf::from(os_string(directory))));
        self.phase = Phase::Draining;
    }

    fn exited(&mut self, status: ExitStatus) {
        self.outcome = Some(status);
        self.stopped =
            self.parts.as_ref().and_then(|parts| parts.process.limit_reached()).map(StopCause::Limit);
        self.is_gone = true;
        self.phase = Phase::Draining;
    }

    /// Gives the shell back, or says why it is gone.
    fn settle(&mut self) {
        self.phase = Phase::Over;
        let Some(Parts { process, control, exported, input, output }) = self.parts.take() else { return };
        if self.is_gone {
            self.state.lost = Some(match self.stopped {
                Some(StopCause::Aborted) => "its command was aborted".to_owned(),
                Some(StopCause::TimedOut) => "its command timed out".to_owned(),
                Some(StopCause::Limit(limit)) => limit.to_string().replace("Command killed: ", ""),
                None => self.outcome.map_or_else(|| "it ended".to_owned(), exit_text),
            });
            // What its commands left running goes on, as that of other commands does.
            process.group().drain(output);
            return;
        }
        let wake = CancellationToken::new();
        let idle = tokio::spawn(stay_idle(input, output, wake.clone()));
        self.state.shell = Some(IdleShell { process, control, exported, wake, idle });
    }
}

impl Drop for SessionRun {
    fn drop(&mut self) {
        if self.parts.take().is_some() {
            // The process kills all of it.
            self.state.lost = Some("its command was given up".to_owned());
        }
    }
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(bytes).to_owned()
}

/// Discards what commands that were left running write, until the shell is needed. One that is not needed for long gets the end of its input,
/// by which it ends.
async fn stay_idle(
    input: InputPipe,
    mut output: OutputPipe,
    wake: CancellationToken,
) -> Option<(InputPipe, OutputPipe)> {
    let mut buffer = vec![0; 4096];
    let until = Instant::now() + IDLE;
    let mut is_open = true;
    loop {
        select! {
            biased;
            () = wake.cancelled() => return Some((input, output)),
            () = sleep_until(until) => break,
            count = output.read(&mut buffer), if is_open => is_open = matches!(count, Ok(1..)),
        }
    }
    drop(input);
    while let Ok(1..) = output.read(&mut buffer).await {}
    None
}

impl RunningCommand for SessionRun {
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>> {
        Box::pin(self.read())
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }

    fn finish(self: Box<Self>) -> ShellOutcome {
        ShellOutcome {
            exit: self.outcome,
            stopped: self.stopped,
            shell_exited_after: None,
            wall_time: self.started.elapsed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_changed_is_exported_and_quotes_stay_quotes() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let mut known = vec![pair("A", "1"), pair("B", "2")];
        assert_eq!(exports(&mut known, &[pair("A", "1")]), "");
        assert_eq!(
            exports(&mut known, &[pair("B", "it's"), pair("C", "$x")]),
            "export B='it'\\''s'\nexport C='$x'\n"
        );
        assert_eq!(exports(&mut known, &[pair("B", "it's"), pair("C", "$x")]), "");
    }
}
