//! One background process, as its users see it.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt as _,
    select,
    sync::{Mutex as AsyncMutex, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    log::{OutputExcerpt, OutputLog},
    terms::{DeliveryState, JobFacts, JobTerms},
};
use crate::{
    command::ExitStatus,
    limits::LimitReached,
    output_storage::{LogFileFacts, OutputStorage},
    process::{CommandWatch, KILL_WAIT},
    shell::ShellJob,
    streams::InputPipe,
};

/// How long output must be silent before waiting for it ends: it mostly comes in several pieces.
const SILENCE: Duration = Duration::from_millis(100);

/// How long to wait for output that does not become silent.
const LONGEST_BURST: Duration = Duration::from_secs(1);

/// A command to run in the background.
pub struct BackgroundJob {
    /// The command as the caller wrote it: for lists.
    pub label: String,
    /// The command to run. It gets a pipe as input, unless it gets a terminal. Its cancellation token and its work are
    /// ignored.
    pub job: ShellJob,
    /// Where output goes that is too long for memory.
    pub outputs: OutputStorage,
    /// What it is to its session.
    pub terms: JobTerms,
}

/// A command in the background. It ends when nothing that it started is left.
#[derive(Debug)]
pub struct BackgroundProcess {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) pid: Option<i32>,
    pub(super) on_terminal: bool,
    pub(super) started: Instant,
    pub(super) log: Mutex<OutputLog>,
    pub(super) news: watch::Sender<OutputProgress>,
    pub(super) watch: CommandWatch,
    pub(super) input: AsyncMutex<Option<InputPipe>>,
    /// Who had it ended, for its end to report.
    pub(super) ended_by: Mutex<Option<EndedBy>>,
    pub(super) facts: JobFacts,
    pub(super) delivery: DeliveryState,
}

/// The state that changes while a process runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OutputProgress {
    /// Bytes written, before any decoding.
    pub(super) written: u64,
    pub(super) end: Option<BackgroundEnd>,
}

/// How a background process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundEnd {
    /// How its shell ended.
    pub exit: ExitStatus,
    /// Who had it ended; `None` when it ended by itself.
    pub by: Option<EndedBy>,
    /// From its start until everything that it started has ended.
    pub wall_time: Duration,
}

/// Who had a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Its time limit.
    Timeout,
    /// A caller.
    Request,
    /// The user, by a client.
    User,
    /// Another service of its name, which takes its place.
    Restart,
    /// A limit of its session's processes.
    Limit(LimitReached),
}

/// The state of a background process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundState {
    /// It runs.
    Running,
    /// Its shell has ended so; something that it started still runs.
    ShellEnded(ExitStatus),
    /// It has ended.
    Ended(BackgroundEnd),
}

impl BackgroundProcess {
    /// Its name in the list: `bg-1`, …
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The command as the caller wrote it.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The process id of its shell.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Whether it runs on a terminal.
    #[must_use]
    pub fn is_on_terminal(&self) -> bool {
        self.on_terminal
    }

    /// What its starter said of it.
    #[must_use]
    pub fn facts(&self) -> &JobFacts {
        &self.facts
    }

    /// Whether its session's model is told of its end, and by whom.
    #[must_use]
    pub fn delivery(&self) -> &DeliveryState {
        &self.delivery
    }

    /// How long it has run, or ran.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.end().map_or_else(|| self.started.elapsed(), |end| end.wall_time)
    }

    /// How long ago it started.
    #[must_use]
    pub fn since_start(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether it runs or has ended.
    #[must_use]
    pub fn state(&self) -> BackgroundState {
        match (self.end(), self.watch.exit()) {
            (Some(end), _) => BackgroundState::Ended(end),
            (None, Some(exit)) => BackgroundState::ShellEnded(exit),
            (None, None) => BackgroundState::Running,
        }
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<BackgroundEnd> {
        self.news.borrow().end
    }

    /// Bytes of text written. On a terminal, the cursor's line does not count yet.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.log().total()
    }

    /// Lines of text written.
    #[must_use]
    pub fn total_lines(&self) -> u64 {
        self.log().lines()
    }

    /// The file with the output, if that was too long for memory.
    #[must_use]
    pub fn file(&self) -> LogFileFacts {
        self.log().file.clone()
    }

    /// The output from a position on, as far as it is in memory.
    #[must_use]
    pub fn since(&self, from: u64) -> OutputExcerpt {
        self.log().since(from)
    }

    /// The last lines, as far as they are in memory.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> OutputExcerpt {
        self.log().last_lines(count)
    }

    /// The position up to which the output has been shown; see [`Self::set_shown`].
    #[must_use]
    pub fn shown(&self) -> u64 {
        self.log().shown()
    }

    /// Notes that everything before a position has been shown. The position never goes back.
    pub fn set_shown(&self, to: u64) {
        self.log().set_shown(to);
    }

    /// A counter of the bytes written, for [`Self::written_since`].
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.news.borrow().written
    }

    /// Waits until something was written after `mark` and a pause came, or until the process has ended; for `limit`
    /// at most. Cancel safe.
    pub async fn written_since(&self, mark: u64, limit: Duration) {
        let mut news = self.news.subscribe();
        let deadline = Instant::now().checked_add(limit);
        let far = |news: &OutputProgress| news.end.is_some() || news.written != mark;
        // The sender lives as long as this value, so waiting cannot fail.
        let first = async { drop(news.wait_for(far).await) };
        match deadline {
            Some(deadline) => {
                select! {
                    () = first => {}
                    () = sleep_until(deadline) => return,
                }
            }
            None => first.await,
        }
        let burst_ends = Instant::now() + LONGEST_BURST;
        let last = deadline.map_or(burst_ends, |deadline| deadline.min(burst_ends));
        while self.end().is_none() {
            let silent = Instant::now() + SILENCE;
            select! {
                changed = news.changed() => if changed.is_err() { return },
                () = sleep_until(silent.min(last)) => return,
            }
            if Instant::now() >= last {
                return;
            }
        }
    }

    /// Waits for the end, for `limit` at most. Cancel safe.
    pub async fn ended(&self, limit: Duration) -> Option<BackgroundEnd> {
        let mut news = self.news.subscribe();
        let wait = async { news.wait_for(|news| news.end.is_some()).await.ok().and_then(|news| news.end) };
        timeout(limit, wait).await.ok().flatten()
    }

    /// Writes to the process's input. Waits while it does not read. Cancel safety: dropped early, a part is written.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] when the process has closed its input or has ended, or [`Self::end_input`] ended
    /// its input.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match &mut *self.input.lock().await {
            Some(input) => input.write_all(bytes).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the process's input. On a terminal this is the end that a user types: a program may read on.
    ///
    /// # Errors
    /// As [`Self::write`]. Ending the input again is no error.
    pub async fn end_input(&self) -> io::Result<()> {
        let mut input = self.input.lock().await;
        if self.on_terminal {
            return match &mut *input {
                Some(input) => input.write_all(&[END_OF_INPUT]).await,
                None => Err(io::ErrorKind::BrokenPipe.into()),
            };
        }
        match input.take() {
            Some(mut input) => input.shutdown().await,
            None => Ok(()),
        }
    }

    /// Asks all its processes to end (SIGTERM), and kills what is left after `grace`. Returns how it ended; `None` when
    /// something survives SIGKILL for 5 seconds. Cancel safety: dropped early, it was asked but may not be killed.
    pub async fn terminate(&self, grace: Duration, by: EndedBy) -> Option<BackgroundEnd> {
        self.note_ending(by);
        self.watch.terminate();
        if let Some(end) = self.ended(grace).await {
            // One that was adopted has ended before what it left; all others are gone by now.
            if timeout(grace, self.watch.gone()).await.is_err() {
                self.watch.start_kill();
                // Its group logs what survives.
                let _ = timeout(KILL_WAIT, self.watch.gone()).await;
            }
            return Some(end);
        }
        self.kill(by).await
    }

    /// Kills all its processes: [`Self::terminate`] without asking first.
    pub async fn kill(&self, by: EndedBy) -> Option<BackgroundEnd> {
        self.note_ending(by);
        self.watch.start_kill();
        self.ended(KILL_WAIT).await
    }

    /// Sends a signal to all its processes.
    pub fn signal(&self, signal: u8) {
        self.watch.signal(signal);
    }

    fn note_ending(&self, by: EndedBy) {
        // The first request counts.
        self.ended_by.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(by);
    }

    /// Who had it ended so far.
    pub(super) fn requested_end(&self) -> Option<EndedBy> {
        *self.ended_by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, OutputLog> {
        // No holder of this lock can panic with a half-made change.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The character that ends a program's input on a terminal: Ctrl-D.
const END_OF_INPUT: u8 = 4;
