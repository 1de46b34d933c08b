//! The daemon's handle to one supervisor: its reports, and orders to it.

use std::{
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agentd_protocol::command::Work;
use rustix::net::SendFlags;
use tokio::{
    io::AsyncReadExt as _,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use crate::{
    command::ExitStatus,
    frames::{CommandTerms, StartStage, SupervisorOrder, SupervisorReport},
    idle_supervisors::{IdleSupervisors, SupervisorLink},
    limits::{LimitReached, LimitedResource, ProcessLimits},
    linux::{self, OwnerMark},
};

/// What is known of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CommandState {
    /// The supervisor's process id, once it exists; from then on the command may have run.
    pub(crate) supervisor: Option<i32>,
    /// The process id of the command's own process.
    pub(crate) started: Option<i32>,
    /// Why the command could not start: the stage, and the system's error code.
    pub(crate) failure: Option<(StartStage, i32)>,
    /// How the command's own process ended.
    pub(crate) exit: Option<ExitStatus>,
    /// The limit that everything is killed for, if one is the reason; the flag: the limit of all commands together.
    pub(crate) limit: Option<(LimitedResource, bool)>,
    /// The number of processes, and their memory in KiB; both 0 before the first measurement.
    pub(crate) usage: (u64, u64),
    /// Nothing of the command is left.
    pub(crate) gone: bool,
    /// The supervisor was killed before it had read the command, which therefore has not run.
    pub(crate) unread: bool,
}

/// The supervisor of one command. Dropping this closes the socket, whereupon the supervisor kills all of the command's processes.
#[derive(Debug)]
pub(crate) struct SupervisorHandle {
    socket: OwnedWriteHalf,
    /// Whether the whole command was sent. Before that, an order would be read as part of the command.
    complete: AtomicBool,
    state: watch::Receiver<CommandState>,
    /// The work that the command belongs to.
    work: Option<Arc<Work>>,
    limits: ProcessLimits,
    /// Whether the command has written too much; set here before the supervisor reports it.
    wrote_too_much: AtomicBool,
    /// Becomes true when everything is to be killed.
    doomed: watch::Sender<bool>,
}

/// Reads a supervisor's reports about one command until nothing of that is left.
pub(crate) struct SupervisorMonitor {
    socket: OwnedReadHalf,
    link: SupervisorLink,
    state: watch::Sender<CommandState>,
    owner: OwnerMark,
    doomed: watch::Receiver<bool>,
}

/// The end of a supervisor's reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportsEnd {
    /// Nothing is left of the command, and the supervisor waits for another one.
    Waits,
    /// Nothing is left of the command, and the supervisor has ended.
    Ended,
    /// The supervisor has ended before that.
    Lost,
}

/// How long a supervisor that must kill everything may be stopped before it is continued; doubles each time.
const STOPPED_WAIT: Duration = Duration::from_millis(50);

/// The longest such pause.
const MOST_WAIT: Duration = Duration::from_millis(800);

/// How often a stopped supervisor is continued before it is killed.
const WAKE_UPS: u32 = 4;

impl SupervisorHandle {
    /// `is_complete`: the whole command was sent already.
    pub(crate) fn new(
        socket: UnixStream,
        (link, is_complete): (SupervisorLink, bool),
        work: Option<Arc<Work>>,
        terms: CommandTerms,
    ) -> (Self, SupervisorMonitor) {
        let (read, write) = socket.into_split();
        let state = CommandState { supervisor: link.pid(), ..CommandState::default() };
        let (sender, receiver) = watch::channel(state);
        let (doomed, doom) = watch::channel(false);
        (
            Self {
                socket: write,
                complete: AtomicBool::new(is_complete),
                state: receiver,
                work,
                limits: terms.limits,
                wrote_too_much: AtomicBool::new(false),
                doomed,
            },
            SupervisorMonitor { socket: read, link, state: sender, owner: terms.owner, doomed: doom },
        )
    }

    /// Sends the supervisor the rest of its command. Cancel safety: none; after a partial command, drop this.
    pub(crate) async fn send_rest(&self, mut command: &[u8]) -> std::io::Result<()> {
        while !command.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(command) {
                Ok(count) => command = &command[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        self.complete.store(true, Ordering::Release);
        Ok(())
    }

    /// Sends an order to the supervisor; never waits.
    pub(crate) fn order(&self, order: SupervisorOrder) {
        let socket = self.socket.as_ref().as_fd();
        if self.complete.load(Ordering::Acquire) {
            // An error means that the supervisor has ended: nothing is left to do.
            let _ = rustix::net::send(socket, &[order.encode()], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        } else {
            // A supervisor without its command has started nothing, and ends when the socket does.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        if order.is_deadly() {
            self.doomed.send_replace(true);
        }
        self.wake();
    }

    /// Continues a supervisor that its command stopped, so that the command can still be ended. Does not block.
    pub(crate) fn wake(&self) {
        if let Some(supervisor) = self.now().supervisor {
            linux::Adopted::wake(supervisor);
        }
    }

    /// Kills the command because it has written more than allowed.
    pub(crate) fn stop_writing(&self) {
        self.wrote_too_much.store(true, Ordering::Release);
        self.order(SupervisorOrder::TooMuchOutput);
    }

    /// The limit that the command was killed for.
    pub(crate) fn limit_reached(&self) -> Option<LimitReached> {
        let wrote_too_much =
            || self.wrote_too_much.load(Ordering::Acquire).then_some((LimitedResource::Output, false));
        let (resource, together) = self.now().limit.or_else(wrote_too_much)?;
        Some(LimitReached { resource, limit: self.limits.of(resource)?, together })
    }

    pub(crate) fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }

    /// The state now and later.
    pub(crate) fn state(&self) -> watch::Receiver<CommandState> {
        self.state.clone()
    }

    pub(crate) fn now(&self) -> CommandState {
        *self.state.borrow()
    }

    /// Waits until nothing of the command is left.
    pub(crate) async fn gone(&self) {
        // The monitor sets `gone` before it ends. If it was dropped with its runtime, waiting is over, too.
        let _ = self.state.clone().wait_for(|state| state.gone).await;
    }
}

impl SupervisorMonitor {
    /// Follows the command to its end. Calls `used_more` after each report of its usage, and `ended` when nothing of it is left; a supervisor
    /// that waits for another command goes to `idle` after that.
    pub(crate) async fn run(mut self, used_more: impl Fn(), ended: impl FnOnce(), idle: &IdleSupervisors) {
        let (state, doomed) = (self.state.subscribe(), self.doomed.clone());
        let end = tokio::select! {
            end = self.read(used_more) => end,
            () = end_when_doomed(state, doomed) => ReportsEnd::Lost,
        };
        if end == ReportsEnd::Waits {
            ended();
            idle.keep(self.link);
            return;
        }
        let state = *self.state.borrow();
        if let Some(supervisor) = state.supervisor
            && linux::Adopted::release(supervisor)
        {
            off_thread(move || linux::Adopted::reap(supervisor)).await;
        }
        if end == ReportsEnd::Lost {
            self.on_lost(state).await;
        }
        self.state.send_modify(|state| state.gone = true);
        ended();
    }

    /// Reads reports until the last one about the command, or until the supervisor ends.
    async fn read(&mut self, used_more: impl Fn()) -> ReportsEnd {
        /// Reports that are read at once.
        const AT_ONCE: usize = 8;
        let mut buffer = [0; AT_ONCE * SupervisorReport::SIZE];
        let mut filled = 0;
        let mut end = ReportsEnd::Lost;
        loop {
            match self.socket.read(&mut buffer[filled..]).await {
                Ok(count @ 1..) => filled += count,
                Ok(0) => return end,
                Err(error) => {
                    // The system says so when what was sent is thrown away unread.
                    let unread = error.kind() == std::io::ErrorKind::ConnectionReset;
                    self.state.send_modify(|state| state.unread = unread && state.started.is_none());
                    return end;
                }
            }
            let (reports, _) = buffer[..filled].as_chunks::<{ SupervisorReport::SIZE }>();
            let Some(reports) =
                reports.iter().map(|bytes| SupervisorReport::decode(*bytes)).collect::<Option<Vec<_>>>()
            else {
                return end;
            };
            let taken = reports.len() * SupervisorReport::SIZE;
            buffer.copy_within(taken..filled, 0);
            filled -= taken;
            for report in &reports {
                self.note(*report, &mut end);
            }
            // All at once: who waits for one of them is woken once.
            self.state.send_modify(|state| reports.iter().for_each(|report| state.apply(*report)));
            let is_usage = |report: &SupervisorReport| {
                matches!(report, SupervisorReport::Processes(_) | SupervisorReport::MemoryKib(_))
            };
            if reports.iter().any(is_usage) {
                used_more();
            }
            if end == ReportsEnd::Waits {
                return end;
            }
        }
    }

    fn note(&mut self, report: SupervisorReport, end: &mut ReportsEnd) {
        match report {
            SupervisorReport::Ready(pid) => {
                linux::Adopted::know(pid);
                self.link.is_process(pid);
            }
            SupervisorReport::Empty(true) => *end = ReportsEnd::Waits,
            SupervisorReport::Empty(false) => *end = ReportsEnd::Ended,
            SupervisorReport::Limit(resource, _) => {
                tracing::warn!(?resource, "a command is killed for a limit")
            }
            _ => {}
        }
    }

    /// The supervisor was killed. The guard ends its processes; when the guard is gone, too, this does.
    async fn on_lost(&self, state: CommandState) {
        let Some(session) = state.started else { return };
        tracing::warn!(session, "the process that watches a command was killed; killing what it watched");
        let running = state.exit.is_none();
        let owner = self.owner;
        off_thread(move || {
            linux::kill_session(session, owner);
            linux::Adopted::relieve_guards();
            linux::Adopted::sweep();
        })
        .await;
        if running {
            self.state.send_modify(|state| state.exit = Some(ExitStatus::signaled(libc::SIGKILL)));
        }
    }
}

/// Once everything is to be killed: continues the supervisor whenever it is stopped, and kills it if that does not
/// help. Does not return; the reader of its reports sees its end.
async fn end_when_doomed(state: watch::Receiver<CommandState>, mut doomed: watch::Receiver<bool>) {
    // An error means that the handle was dropped, which ends the command as well.
    let _ = doomed.wait_for(|doomed| *doomed).await;
    let (mut pause, mut told) = (STOPPED_WAIT, 0);
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_WAIT);
        let Some(supervisor) = state.borrow().supervisor else { continue };
        if told >= WAKE_UPS {
            if linux::Adopted::kill_stopped(supervisor) {
                tracing::warn!(
                    supervisor,
                    "the process that watches a command was stopped again and again; it was killed"
                );
            }
        } else if linux::Adopted::wake(supervisor) {
            told += 1;
        }
    }
}

/// Runs blocking work off the runtime's threads.
async fn off_thread(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = tokio::task::spawn_blocking(work).await {
        tracing::warn!(%error, "cannot clean up after the process that watches a command");
    }
}

impl CommandState {
    /// Whether the command, or something that it started, may still run.
    pub(crate) fn is_running(&self) -> bool {
        !self.gone && self.failure.is_none()
    }

    fn apply(&mut self, report: SupervisorReport) {
        match report {
            SupervisorReport::Ready(pid) => self.supervisor = Some(pid),
            SupervisorReport::Started(pid) => self.started = Some(pid),
            SupervisorReport::Failed(stage, errno) => self.failure = Some((stage, errno)),
            SupervisorReport::Exited(code) => self.exit = Some(ExitStatus::exited(code)),
            SupervisorReport::Signaled(signal) => self.exit = Some(ExitStatus::signaled(signal)),
            SupervisorReport::Processes(count) => self.usage.0 = u64::try_from(count).unwrap_or(0),
            SupervisorReport::MemoryKib(kib) => self.usage.1 = u64::try_from(kib).unwrap_or(0),
            SupervisorReport::Limit(resource, together) => self.limit = Some((resource, together)),
            SupervisorReport::Empty(_) => self.gone = true,
        }
    }
}
