//! The list of a session's background processes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_protocol::command::{Work, WorkKind};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, watch},
    time::{Instant, timeout},
};

use super::{
    log::{LogFile, OutputLog},
    process::{BackgroundJob, BackgroundProcess, EndedBy, OutputProgress},
    terms::{DeliveryState, JobTerms},
    worker::Worker,
};
use crate::{
    command::{CommandSpec, CommandStreams},
    group::ProcessGroup,
    plain_text::Utf8Stream,
    shell::LocalShell,
    shell_run::ShellError,
    terminal_text::TerminalText,
};

/// Ended processes that stay in the list, with the end of their output.
const REMEMBERED: usize = 16;

/// The time between SIGTERM and SIGKILL for a service that another one replaces.
const GRACE: Duration = Duration::from_secs(2);

/// The background processes of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BackgroundProcesses(Arc<ListInner>);

#[derive(Debug)]
struct ListInner {
    group: ProcessGroup,
    state: Mutex<ListState>,
    /// Fires when a process has ended.
    ended: Notify,
    /// Held while a service takes the place of another.
    replacing: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct ListState {
    last: u64,
    /// Processes that are about to be in the list.
    starting: usize,
    /// Processes in the list whose end is not among the untold yet.
    working: usize,
    /// Oldest first.
    processes: Vec<Arc<BackgroundProcess>>,
    /// Processes whose end nobody has taken: never more than there are processes.
    untold: VecDeque<Arc<BackgroundProcess>>,
}

/// Limits for background processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundLimits {
    /// How many may run at a time.
    pub running: usize,
    /// Bytes of output kept in memory for each: at least this many, at most twice as many.
    pub keep_bytes: usize,
    /// The most bytes of output that go to the file of each.
    pub file_bytes: u64,
}

/// Why a command could not be started in the background.
#[derive(Debug, thiserror::Error)]
pub enum BackgroundError {
    /// As many run as are allowed.
    #[error("{} background processes run already, and no more may: {}. End one first.", .0.len(), .0.join(", "))]
    TooMany(Vec<String>),
    /// The service of that name survives SIGKILL.
    #[error(
        "The service {0} runs already and cannot be ended: it waits for the system, or belongs to another user."
    )]
    StillRuns(String),
    /// The shell could not be started.
    #[error(transparent)]
    Shell(#[from] ShellError),
}

impl BackgroundProcesses {
    /// An empty list, for processes of `group`. Their numbers continue from `last`.
    #[must_use]
    pub fn new(group: ProcessGroup, last: u64) -> Self {
        let state = Mutex::new(ListState { last, ..ListState::default() });
        Self(Arc::new(ListInner { group, state, ended: Notify::new(), replacing: AsyncMutex::default() }))
    }

    /// Starts a command. A service first ends the one of its name, with everything that it started.
    ///
    /// # Errors
    /// [`BackgroundError`]. Cancel safety: if dropped, whatever was started is killed; a service that was to be replaced may have ended.
    pub async fn start(
        &self,
        shell: &LocalShell,
        job: BackgroundJob,
        limits: BackgroundLimits,
    ) -> Result<Arc<BackgroundProcess>, BackgroundError> {
        let BackgroundJob { label, job, outputs, terms } = job;
        let JobTerms { facts, keeps_file, delivery, listener } = terms;
        let _replacing = match &facts.name {
            Some(name) => {
                let replacing = self.0.replacing.lock().await;
                self.end_service(name).await?;
                Some(replacing)
            }
            None => None,
        };
        let starting = self.reserve(limits.running)?;
        let id = starting.id.clone();
        let work =
            Work { kind: WorkKind::Background, id: Some(id.clone().into()), name: Some(label.clone()) };
        let group = self.0.group.working_for(work);
        let command = shell.command(job).await?;
        let streams = match command.streams {
            CommandStreams::Terminal(size) => CommandStreams::Terminal(size),
            // The process_input tool may write to it.
            _ => CommandStreams::InputOutput,
        };
        let spec = CommandSpec {
            program: command.shell.into(),
            args: vec!["-c".into(), command.command.into()],
            cwd: command.cwd,
            env: command.env,
            streams,
            sandbox: command.sandbox,
        };
        let mut process = group.spawn(spec).await.map_err(ShellError::from)?;
        let started = Instant::now();
        let mut file = LogFile::new(outputs, limits.file_bytes);
        if keeps_file {
            file.begin().await;
        }
        let mut log = OutputLog::new(limits.keep_bytes);
        log.file = file.facts();
        let on_terminal = matches!(streams, CommandStreams::Terminal(_));
        let shown = Arc::new(BackgroundProcess {
            id,
            label,
            pid: process.pid(),
            on_terminal,
            started,
            log: Mutex::new(log),
            news: watch::Sender::new(OutputProgress::default()),
            watch: process.watch().clone(),
            input: AsyncMutex::new(process.take_input()),
            ended_by: Mutex::new(None),
            facts,
            delivery: DeliveryState::new(delivery),
        });
        let worker = Worker {
            process,
            shown: Arc::clone(&shown),
            decoder: Utf8Stream::new(),
            terminal: on_terminal.then(TerminalText::new),
            keep_bytes: limits.keep_bytes,
            file,
            deadline: command.timeout.and_then(|timeout| started.checked_add(timeout)),
            listener,
        };
        starting.done(Arc::clone(&shown));
        let (list, ended) = (self.clone(), Arc::clone(&shown));
        self.0.group.spawn_task(async move {
            worker.run().await;
            list.note_end(ended);
        });
        Ok(shown)
    }

    /// Ends the service of that name, if it runs.
    async fn end_service(&self, name: &str) -> Result<(), BackgroundError> {
        let is_it = |process: &&Arc<BackgroundProcess>| process.facts.name.as_deref() == Some(name);
        for process in self.list().iter().filter(is_it).filter(|process| process.end().is_none()) {
            process.delivery.hold();
            if process.terminate(GRACE, EndedBy::Restart).await.is_none() {
                return Err(BackgroundError::StillRuns(name.to_owned()));
            }
            // The call that starts its successor says so.
            process.delivery.told();
        }
        Ok(())
    }

    /// Runs a task for as long as the session's processes may need it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.group.spawn_task(task);
    }

    pub(super) fn leave_out(&self, process: &Arc<BackgroundProcess>) {
        let mut state = self.state();
        state.working -= 1;
        state.processes.retain(|other| !Arc::ptr_eq(other, process));
    }

    /// The processes, oldest first: those that run, and the last that have ended.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<BackgroundProcess>> {
        self.state().processes.clone()
    }

    /// The process of that id, or the newest service of that name, unless it ended long ago.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<BackgroundProcess>> {
        let state = self.state();
        let by_id = state.processes.iter().find(|process| process.id == id);
        let by_name = || state.processes.iter().rev().find(|it| it.facts.name.as_deref() == Some(id));
        by_id.or_else(by_name).cloned()
    }

    /// How many were started so far: the number in the last name.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.state().last
    }

    /// Waits for the next end of a process; each end is returned once. Cancel safe.
    pub async fn next_end(&self) -> Arc<BackgroundProcess> {
        loop {
            // Created before looking at the list, so that no end is missed.
            let ended = self.0.ended.notified();
            if let Some(process) = self.take_end() {
                return process;
            }
            ended.await;
        }
    }

    /// The next end of a process that was not taken yet, if there is one.
    #[must_use]
    pub fn take_end(&self) -> Option<Arc<BackgroundProcess>> {
        self.state().untold.pop_front()
    }

    /// Whether no process runs or starts, and every end was taken, by [`Self::next_end`] or [`Self::take_end`]. A
    /// process counts until its last output is read and its end recorded, a moment longer than in its group.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        state.starting == 0 && state.working == 0 && state.untold.is_empty()
    }

    /// Waits until no process runs, for `limit` at most. Call it when all have been killed: then their ends are
    /// recorded.
    pub async fn settled(&self, limit: Duration) {
        let wait = async {
            for process in self.list() {
                process.ended(Duration::MAX).await;
            }
        };
        // The killer logs processes that cannot be killed.
        let _ = timeout(limit, wait).await;
    }

    /// Reserves one of the places for running processes, and a name.
    pub(super) fn reserve(&self, most: usize) -> Result<StartReservation, BackgroundError> {
        let mut state = self.state();
        let running = || state.processes.iter().filter(|process| process.end().is_none());
        if running().count() + state.starting >= most {
            return Err(BackgroundError::TooMany(running().map(|process| process.id.clone()).collect()));
        }
        state.starting += 1;
        state.last += 1;
        Ok(StartReservation { id: format!("bg-{}", state.last), list: self.clone() })
    }

    pub(super) fn note_end(&self, process: Arc<BackgroundProcess>) {
        let mut state = self.state();
        state.working -= 1;
        state.untold.push_back(process);
        let ended = state.processes.iter().filter(|process| process.end().is_some()).count();
        let mut surplus = ended.saturating_sub(REMEMBERED);
        state.processes.retain(|process| {
            let goes = surplus > 0 && process.end().is_some();
            surplus -= usize::from(goes);
            !goes
        });
        while state.untold.len() > REMEMBERED {
            state.untold.pop_front();
        }
        drop(state);
        self.0.ended.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, ListState> {
        // No holder of this lock can panic with a half-made change.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place reserved for a process that is about to start.
pub(super) struct StartReservation {
    pub(super) id: String,
    list: BackgroundProcesses,
}

impl StartReservation {
    pub(super) fn done(self, process: Arc<BackgroundProcess>) {
        let mut state = self.list.state();
        state.working += 1;
        let at = state.processes.partition_point(|other| number(&other.id) < number(&process.id));
        state.processes.insert(at, process);
    }
}

impl Drop for StartReservation {
    fn drop(&mut self) {
        self.list.state().starting -= 1;
    }
}

fn number(id: &str) -> u64 {
    id.strip_prefix("bg-").and_then(|number| number.parse().ok()).unwrap_or(0)
}
