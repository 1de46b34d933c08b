//! Runs a command on the other machine.

use std::{sync::Arc, time::Duration};

use agentd_process::{
    ExitStatus, InputPipe, OutputPipe, Process, ProcessGroup, RunningCommand, ShellError, ShellFuture,
    ShellJob, ShellOutcome, StopCause,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    select,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::Connection,
    problem,
    request::{MARK, RUN, Request},
};

/// How long the output must be silent after the shell has exited before the command counts as ended.
const SILENCE: Duration = Duration::from_millis(100);

/// How long the script has to kill its command before the connection is cut, which makes it do the same.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// The most bytes kept of what the script and ssh write beside the output.
const MAX_SAID: usize = 8 * 1024;

/// The most bytes before the mark: output of the user's start-up files.
const MAX_PREFACE: usize = 64 * 1024;

/// A command on the other machine. Its script kills it, with its whole process session, when the script's input ends:
/// when the command is stopped, when `ssh` is killed, and when the connection is lost.
pub(super) struct SshRun {
    connection: Arc<Connection>,
    /// `None` only once it was left in the background.
    process: Option<Process>,
    /// Sends the request, then returns the input, which stays open.
    writing: JoinSet<Option<InputPipe>>,
    input: Option<InputPipe>,
    errors: Option<OutputPipe>,
    folder: String,
    cancel: CancellationToken,
    started: Instant,
    deadline: Option<Instant>,
    buffer: Vec<u8>,
    /// The output before the mark, until the mark has come.
    preface: Option<Vec<u8>>,
    said: Vec<u8>,
    output_open: bool,
    /// How the command's shell ended, and when that was reported.
    exited: Option<(i32, Instant)>,
    ssh_exit: Option<i32>,
    last_news: Instant,
    stopped: Option<(StopCause, Instant)>,
    ended: Option<Instant>,
}

enum RunEvent {
    Stop(StopCause),
    Written(Option<InputPipe>),
    Said(usize),
    Read(usize),
    CutOff,
    Silence,
}

impl SshRun {
    pub(super) async fn start(
        connection: Arc<Connection>,
        group: &ProcessGroup,
        job: ShellJob,
    ) -> Result<Self, ShellError> {
        let ShellJob { command, cwd, env, timeout, cancel, .. } = job;
        let mut request = Request::new(RUN).text(&cwd).text(&command).line(env.len());
        for (name, value) in &env {
            let mut variable = name.clone();
            variable.push("=");
            variable.push(value);
            request = request.text(variable);
        }
        let spawned = cancel.run_until_cancelled(connection.spawn(group, RUN)).await;
        let started = Instant::now();
        let mut process = match spawned {
            Some(process) => Some(process.map_err(|error| ShellError::Unreachable(error.0))?),
            None => None,
        };
        let mut writing = JoinSet::new();
        if let Some(mut input) = process.as_mut().and_then(Process::take_input) {
            let bytes = request.into_bytes();
            // The input stays open: its end stops the command.
            writing.spawn(async move { input.write_all(&bytes).await.is_ok().then_some(input) });
        }
        let errors = process.as_mut().and_then(|process| process.errors.take());
        Ok(Self {
            connection,
            output_open: process.is_some(),
            stopped: process.is_none().then_some((StopCause::Aborted, started)),
            process,
            writing,
            input: None,
            errors,
            folder: cwd.display().to_string(),
            cancel,
            started,
            deadline: timeout.and_then(|timeout| started.checked_add(timeout)),
            buffer: vec![0; CHUNK],
            preface: Some(Vec::new()),
            said: Vec::new(),
            exited: None,
            ssh_exit: None,
            last_news: started,
            ended: None,
        })
    }

    async fn next_piece(&mut self) -> Option<&[u8]> {
        let count = loop {
            let Some(news) = self.news().await else {
                self.end().await;
                return None;
            };
            match news {
                RunEvent::Stop(why) => self.stop(why),
                RunEvent::Written(input) => self.input = input.filter(|_| self.stopped.is_none()),
                RunEvent::Said(0) => self.errors = None,
                RunEvent::Said(_) => self.hear(),
                RunEvent::Read(0) => self.output_open = false,
                RunEvent::Read(count) => {
                    self.last_news = Instant::now();
                    if let count @ 1.. = self.strip_preface(count) {
                        break count;
                    }
                }
                RunEvent::CutOff => (self.output_open, self.errors) = (false, None),
                RunEvent::Silence => self.leave(),
            }
        };
        Some(&self.buffer[..count])
    }

    /// Waits for the next event; `None` when none can come. The order of the branches matters: a flood of output must
    /// not delay the others.
    async fn news(&mut self) -> Option<RunEvent> {
        let process = self.process.as_mut()?;
        let (has_output, has_errors) = (self.output_open, self.errors.is_some());
        let (exited, stopping) = (self.exited.is_some(), self.stopped.is_some());
        if !has_output && (exited || !has_errors) {
            return None;
        }
        let deadline = self.deadline.unwrap_or(self.started);
        let kill_deadline = self.stopped.map_or(self.started, |(_, at)| at) + KILL_WAIT;
        let silence = self.last_news + SILENCE;
        let (errors, said) = (&mut self.errors, &mut self.said);
        let hear = async {
            let Some(pipe) = errors else { return 0 };
            // A pipe that cannot be read is at its end.
            pipe.read_buf(said).await.unwrap_or(0)
        };
        let (output, buffer) = (&mut process.output, &mut self.buffer);
        Some(select! {
            biased;
            () = self.cancel.cancelled(), if !stopping => RunEvent::Stop(StopCause::Aborted),
            () = sleep_until(deadline), if !stopping && self.deadline.is_some() => RunEvent::Stop(StopCause::TimedOut),
            () = sleep_until(kill_deadline), if stopping => RunEvent::CutOff,
            Some(written) = self.writing.join_next() => RunEvent::Written(written.ok().flatten()),
            count = hear, if has_errors => RunEvent::Said(count),
            read = output.read(buffer), if has_output => RunEvent::Read(read.unwrap_or(0)),
            () = sleep_until(silence), if exited && !stopping => RunEvent::Silence,
        })
    }

    fn stop(&mut self, why: StopCause) {
        self.stopped = Some((why, Instant::now()));
        // The end of the input makes the script kill everything.
        self.input = None;
        self.writing.abort_all();
    }

    /// Evaluates the errors so far.
    fn hear(&mut self) {
        let surplus = self.said.len().saturating_sub(MAX_SAID);
        self.said.drain(..surplus);
        if self.exited.is_none()
            && let Some(code) = exit_code(&self.said)
        {
            self.last_news = Instant::now();
            self.exited = Some((code, self.last_news));
        }
    }

    /// Removes what precedes the mark from the first `count` bytes of the buffer; returns how many are left.
    fn strip_preface(&mut self, count: usize) -> usize {
        let Some(preface) = &mut self.preface else { return count };
        preface.extend_from_slice(&self.buffer[..count]);
        let Some(found) = memchr::memmem::find(preface, MARK) else {
            // This is far more than a greeting: the command's end will report the failure.
            let surplus = preface.len().saturating_sub(MAX_PREFACE);
            preface.drain(..surplus);
            return 0;
        };
        let left = preface.split_off(found + MARK.len());
        self.preface = None;
        self.buffer[..left.len()].copy_from_slice(&left);
        left.len()
    }

    /// Ends the run: leaves background processes running, or finds out why the script did not finish.
    async fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        if self.exited.is_some() && self.stopped.is_none() {
            self.leave();
        } else if let Some(process) = &self.process
            && self.stopped.is_none()
        {
            self.ssh_exit = Some(process.wait().await.code);
        }
        self.ended = Some(Instant::now());
    }

    /// Leaves the command's background processes to the session, whose end kills them.
    fn leave(&mut self) {
        self.output_open = false;
        let (Some(mut process), input, errors) = (self.process.take(), self.input.take(), self.errors.take())
        else {
            return;
        };
        self.connection.background().spawn(async move {
            let mut buffer = vec![0; CHUNK];
            while let Ok(1..) = process.output.read(&mut buffer).await {}
            process.wait().await;
            drop((input, errors));
        });
    }
}

impl RunningCommand for SshRun {
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>> {
        Box::pin(self.next_piece())
    }

    fn failure(&self) -> Option<String> {
        if self.stopped.is_some() || self.exited.is_some() {
            return None;
        }
        let said = String::from_utf8_lossy(&self.said);
        if said.lines().any(|line| line == "agentd folder") {
            return Some(ShellError::WorkingDirectoryMissing(self.folder.clone().into()).to_string());
        }
        Some(problem::of_ssh(&self.connection.target().host, &said, self.ssh_exit).0)
    }

    fn finish(self: Box<Self>) -> ShellOutcome {
        ShellOutcome {
            exit: self.exited.map(|(code, _)| ExitStatus::exited(code)),
            stopped: self.stopped.map(|(why, _)| why),
            shell_exited_after: self
                .exited
                .filter(|(_, at)| self.stopped.is_some_and(|(_, stopped)| *at <= stopped))
                .map(|(_, at)| at - self.started),
            wall_time: self.ended.unwrap_or_else(Instant::now) - self.started,
        }
    }
}

/// The exit code that the script reports at the end of the command.
fn exit_code(said: &[u8]) -> Option<i32> {
    let said = String::from_utf8_lossy(said);
    let (whole, _) = said.rsplit_once('\n')?;
    whole.lines().find_map(|line| line.strip_prefix("agentd exit ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_tells_the_end() {
        assert_eq!(exit_code(b"warning\nagentd exit 130\n"), Some(130));
        assert_eq!(exit_code(b"agentd exit 1"), None);
        assert_eq!(exit_code(b"agentd exit x\n"), None);
        assert_eq!(exit_code(b""), None);
    }
}
