//! The daemon's view of one scope: what it reported, and how to tell it things.

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
    limits::{LimitReached, LimitedResource, ProcessLimits},
    linux,
    owner::Mark,
    wire::{Order, Report, Stage, Terms},
};

/// What is known of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The scope exists, as this process; from here on the command may have run.
    pub(crate) scope: Option<i32>,
    /// The command's own process.
    pub(crate) started: Option<i32>,
    /// Why the command could not start: where, and the system's error code.
    pub(crate) failure: Option<(Stage, i32)>,
    /// How the command's own process ended.
    pub(crate) exit: Option<ExitStatus>,
    /// Why everything is being killed, or was, if a limit is the reason; the flag: the limit of all commands together.
    pub(crate) limit: Option<(LimitedResource, bool)>,
    /// How many processes there are, and the memory that they use, in KiB; both 0 until it was measured.
    pub(crate) usage: (u64, u64),
    /// Nothing of the command is left.
    pub(crate) gone: bool,
}

/// One scope. When it is dropped, its end of the socket closes, which has the scope kill everything in it.
#[derive(Debug)]
pub(crate) struct Scope {
    socket: OwnedWriteHalf,
    /// Whether the scope has its whole command; orders would be read as a part of it before.
    complete: AtomicBool,
    state: watch::Receiver<State>,
    /// What the command works for.
    work: Option<Arc<Work>>,
    limits: ProcessLimits,
    /// Whether the command has written too much, known here before the scope tells.
    wrote_too_much: AtomicBool,
    /// Becomes true when everything is to be killed.
    doomed: watch::Sender<bool>,
}

/// Reads a scope's reports until it ends.
pub(crate) struct Monitor {
    socket: OwnedReadHalf,
    state: watch::Sender<State>,
    owner: Mark,
    doomed: watch::Receiver<bool>,
}

/// How long a scope that is to kill everything may be stopped before it is told to go on, and twice that before the next time.
const STOPPED_WAIT: Duration = Duration::from_millis(50);

/// The longest such wait.
const MOST_WAIT: Duration = Duration::from_millis(800);

/// How often it is told.
const WAKE_UPS: u32 = 4;

impl Scope {
    pub(crate) fn new(socket: UnixStream, work: Option<Arc<Work>>, terms: Terms) -> (Self, Monitor) {
        let (read, write) = socket.into_split();
        let (sender, receiver) = watch::channel(State::default());
        let (doomed, doom) = watch::channel(false);
        (
            Self {
                socket: write,
                complete: AtomicBool::new(false),
                state: receiver,
                work,
                limits: terms.limits,
                wrote_too_much: AtomicBool::new(false),
                doomed,
            },
            Monitor { socket: read, state: sender, owner: terms.owner, doomed: doom },
        )
    }

    /// Sends the scope its command. Cancel safety: none; a scope with half a command is to be dropped.
    pub(crate) async fn send(&self, mut command: &[u8]) -> std::io::Result<()> {
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

    /// Tells the scope what to do with its processes; never waits.
    pub(crate) fn order(&self, order: Order) {
        let socket = self.socket.as_ref().as_fd();
        if self.complete.load(Ordering::Acquire) {
            // An error says that the scope has ended: there is nothing left to do.
            let _ = rustix::net::send(socket, &[order.encode()], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        } else {
            // A scope without its command has started nothing, and ends when the socket does.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        if order.is_deadly() {
            self.doomed.send_replace(true);
        }
        self.wake();
    }

    /// Has a scope go on that its command stopped: that must not keep anybody from ending the command. Does not block.
    pub(crate) fn wake(&self) {
        if let Some(scope) = self.now().scope {
            linux::Adopted::wake(scope);
        }
    }

    /// Has the command killed, since it has written more than it may.
    pub(crate) fn stop_writing(&self) {
        self.wrote_too_much.store(true, Ordering::Release);
        self.order(Order::TooMuchOutput);
    }

    /// The limit that the command was killed for.
    pub(crate) fn limit_reached(&self) -> Option<LimitReached> {
        let wrote_too_much =
            || self.wrote_too_much.load(Ordering::Acquire).then_some((LimitedResource::Output, false));
        let (resource, together) = self.now().limit.or_else(wrote_too_much)?;
        Some(LimitReached { resource, limit: self.limits.of(resource)?, together })
    }

    /// What the command works for.
    pub(crate) fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }

    /// What is known now, and later.
    pub(crate) fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    pub(crate) fn now(&self) -> State {
        *self.state.borrow()
    }

    /// Waits until nothing of the command is left.
    pub(crate) async fn gone(&self) {
        // The monitor sets `gone` before it ends; if it was dropped with its runtime there is nobody left to wait.
        let _ = self.state.clone().wait_for(|state| state.gone).await;
    }
}

impl Monitor {
    /// Follows the scope to its end. `used_more` is called when it has told what it uses.
    pub(crate) async fn run(mut self, used_more: impl Fn()) {
        let (state, doomed) = (self.state.subscribe(), self.doomed.clone());
        let empty = tokio::select! {
            empty = self.read(used_more) => empty,
            () = see_to_the_end(state, doomed) => false,
        };
        let state = *self.state.borrow();
        if let Some(scope) = state.scope
            && linux::Adopted::release(scope)
        {
            off_thread(move || linux::Adopted::reap(scope)).await;
        }
        if !empty {
            self.on_lost(state).await;
        }
        self.state.send_modify(|state| state.gone = true);
    }

    /// Reads reports until the scope ends. Whether it said that nothing is left.
    async fn read(&mut self, used_more: impl Fn()) -> bool {
        let mut bytes = [0; Report::SIZE];
        let mut empty = false;
        while self.socket.read_exact(&mut bytes).await.is_ok() {
            let Some(report) = Report::decode(bytes) else { break };
            if let Report::Ready(pid) = report {
                linux::Adopted::know(pid);
            }
            empty |= report == Report::Empty;
            self.state.send_modify(|state| state.apply(report));
            match report {
                Report::Processes(_) | Report::MemoryKib(_) => used_more(),
                Report::Limit(resource, _) => tracing::warn!(?resource, "a command is killed for a limit"),
                _ => {}
            }
        }
        empty
    }

    /// The scope was killed. The guard ends what that leaves; when the guard is gone too, this does.
    async fn on_lost(&self, state: State) {
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

/// Once everything is to be killed: has the scope go on as long as something stops it, and kills it if that is of no use. Its end is
/// seen by whoever reads its reports; until then this does not return.
async fn see_to_the_end(state: watch::Receiver<State>, mut doomed: watch::Receiver<bool>) {
    // An error means that nobody has an interest in the command any more, which ends it as well.
    let _ = doomed.wait_for(|doomed| *doomed).await;
    let (mut pause, mut told) = (STOPPED_WAIT, 0);
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_WAIT);
        let Some(scope) = state.borrow().scope else { continue };
        if told >= WAKE_UPS {
            if linux::Adopted::kill_stopped(scope) {
                tracing::warn!(
                    scope,
                    "the process that watches a command was stopped again and again; it was killed"
                );
            }
        } else if linux::Adopted::wake(scope) {
            told += 1;
        }
    }
}

/// Does what may block where that is allowed.
async fn off_thread(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = tokio::task::spawn_blocking(work).await {
        tracing::warn!(%error, "cannot clean up after the process that watches a command");
    }
}

impl State {
    /// Whether the command, or something that it started, may be there.
    pub(crate) fn is_running(&self) -> bool {
        !self.gone && self.failure.is_none()
    }

    fn apply(&mut self, report: Report) {
        match report {
            Report::Ready(pid) => self.scope = Some(pid),
            Report::Started(pid) => self.started = Some(pid),
            Report::Failed(stage, errno) => self.failure = Some((stage, errno)),
            Report::Exited(code) => self.exit = Some(ExitStatus::exited(code)),
            Report::Signaled(signal) => self.exit = Some(ExitStatus::signaled(signal)),
            Report::Processes(count) => self.usage.0 = u64::try_from(count).unwrap_or(0),
            Report::MemoryKib(kib) => self.usage.1 = u64::try_from(kib).unwrap_or(0),
            Report::Limit(resource, together) => self.limit = Some((resource, together)),
            Report::Empty => self.gone = true,
        }
    }
}
