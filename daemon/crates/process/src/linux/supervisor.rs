//! A supervisor: the parent process of one command and of everything that it starts.

use std::{
    collections::{HashMap, HashSet},
    env, fs,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::RecvFlags,
    process::{
        Pid, PidfdFlags, Signal, WaitStatus, getpid, getppid, pidfd_open, pidfd_send_signal,
        set_child_subreaper,
    },
};

use super::{
    launch::{StartFailure, failed, launch},
    meter::{Usage, UsageMeter},
    procfs::{self, Stat},
    requests::{CommandEnds, Request, receive_request},
    sys,
};
use crate::{
    command::CommandStreams,
    frames::{StartStage, SupervisorOrder, SupervisorReport, decode_command},
    limits::LimitedResource,
};

/// The shortest and the longest pause between two rounds of killing: short at first, for new-born processes; longer for
/// processes that cannot die now (in an uninterruptible wait) or belong to another user.
const KILL_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// How long a supervisor without a daemon keeps trying to kill before it gives up.
const LONE_KILL_TIME: Duration = Duration::from_secs(10);

/// By how many seconds one process may exceed the limit of processor time before the system itself ends it: usage is
/// only measured from time to time, and is lost when the process ends.
const CPU_MARGIN: u64 = 2;

/// Rounds of killing after which the remaining processes are stopped before they are killed.
const GENTLE_ROUNDS: u32 = 4;

/// A running command.
struct StartedCommand {
    pid: i32,
    meter: Option<UsageMeter>,
}

/// What a supervisor keeps from command to command.
#[derive(Default)]
struct SupervisorState {
    /// The nice value of commands, once the supervisor has taken precedence over them.
    commands_nice: Option<i32>,
    /// Whether it has tried to.
    is_raised: bool,
}

/// Runs one command after the other, each until nothing of it is left, until the daemon or the guard is gone or the daemon needs this process
/// no longer. Returns false when processes of a command are left that could not be ended.
///
/// `control` brings further commands, `command` is the first, and `guard` is the process that forked this one.
pub(super) fn run(control: &OwnedFd, command: CommandEnds, guard: Pid, signals: &OwnedFd) -> bool {
    let _ = fs::write("/proc/self/comm", "agentd-scope");
    let own = getpid();
    let mut socket = &command.socket;
    // An error means that the daemon is gone or has given the command up; reading the command says so, too.
    let ready = match set_child_subreaper(Some(own)) {
        Ok(()) => SupervisorReport::Ready(own.as_raw_nonzero().get()),
        Err(errno) => SupervisorReport::Failed(StartStage::Supervisor, errno.raw_os_error()),
    };
    let is_told = socket.write_all(&ready.encode());
    if is_told.is_err() || !matches!(ready, SupervisorReport::Ready(_)) {
        return true;
    }
    let mut state = SupervisorState::default();
    let mut next = Some(command);
    while let Some(command) = next {
        match serve(command, guard, &mut state, signals) {
            CommandEnd::Stays => {}
            CommandEnd::Leaves => return true,
            CommandEnd::Failed => return false,
        }
        next = match rustix::io::retry_on_intr(|| receive_request(control, RecvFlags::empty())) {
            Ok(Request::Fds(fds)) => CommandEnds::of(fds),
            // With an error no command will come either.
            Ok(Request::End) | Err(_) => None,
        };
    }
    true
}

/// What a supervisor does after a command.
enum CommandEnd {
    /// It waits for another command.
    Stays,
    /// It ends.
    Leaves,
    /// It ends, and leaves processes that it could not end.
    Failed,
}

/// Runs one command until nothing of it is left.
fn serve(command: CommandEnds, guard: Pid, state: &mut SupervisorState, signals: &OwnedFd) -> CommandEnd {
    let CommandEnds { mut socket, streams } = command;
    let started = match start(&mut socket, streams, state) {
        Ok(started) => started,
        Err(Some((stage, errno))) => {
            let failed = SupervisorReport::Failed(stage, errno).encode();
            return leave_or_stay(&mut socket, Some(guard), &failed);
        }
        // The daemon is gone, or has given the command up.
        Err(None) => return CommandEnd::Leaves,
    };
    let StartedCommand { pid, meter } = started;
    let told = Usage::default();
    let mut supervisor = Supervisor { socket, shell: Some(pid), kill: None, meter, told };
    let Some(last) = supervisor.watch(signals) else { return CommandEnd::Failed };
    let guard = Some(guard).filter(|_| !supervisor.is_alone());
    leave_or_stay(&mut supervisor.socket, guard, &last)
}

/// Reports that nothing of a command is left, after the reports `before`; and whether this process waits for another command. Without a
/// `guard` it does not.
fn leave_or_stay(socket: &mut UnixStream, guard: Option<Pid>, before: &[u8]) -> CommandEnd {
    // Without its guard, this process is the daemon's to reap: it ends as soon as it can.
    let stays = guard.is_some() && getppid() == guard;
    let reports = [before, &SupervisorReport::Empty(stays).encode()].concat();
    match socket.write_all(&reports) {
        Ok(()) if stays => CommandEnd::Stays,
        Ok(()) | Err(_) => CommandEnd::Leaves,
    }
}

/// Reads the command and starts it. `Err(None)` means that the daemon is gone or closed the socket.
fn start(
    socket: &mut UnixStream,
    streams: Vec<OwnedFd>,
    state: &mut SupervisorState,
) -> Result<StartedCommand, Option<StartFailure>> {
    let gone = |_: io::Error| None;
    let mut length = [0; 8];
    socket.read_exact(&mut length).map_err(gone)?;
    let length = usize::try_from(u64::from_ne_bytes(length))
        .map_err(|_| Some((StartStage::Supervisor, libc::EMSGSIZE)))?;
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes).map_err(gone)?;
    let (spec, terms) = decode_command(&bytes).ok_or(Some((StartStage::Supervisor, libc::EBADMSG)))?;
    let meter = UsageMeter::new(terms.limits);
    if meter.is_some() && !state.is_raised {
        *state = SupervisorState { commands_nice: sys::raise_priority(), is_raised: true };
    }
    let on_start = sys::OnStart {
        terminal: matches!(spec.streams, CommandStreams::Terminal(_)),
        owner: terms.owner.0,
        cpu_seconds: terms.limits.of(LimitedResource::Cpu).map(|seconds| seconds.saturating_add(CPU_MARGIN)),
        nice: state.commands_nice,
    };
    // Enter it before starting the program, to tell a missing directory from a missing program.
    env::set_current_dir(&spec.cwd).map_err(failed(StartStage::WorkingDirectory))?;
    let started = launch(spec, streams, on_start);
    // Staying there would prevent unmounting the command's directory while anything runs.
    let _ = env::set_current_dir("/");
    Ok(StartedCommand { pid: started?, meter })
}

struct Supervisor {
    socket: UnixStream,
    /// The command's own process, until it is reaped.
    shell: Option<i32>,
    kill: Option<OngoingKill>,
    /// Present while there are limits.
    meter: Option<UsageMeter>,
    /// The usage that was last reported.
    told: Usage,
}

/// An ongoing kill.
struct OngoingKill {
    pause: Duration,
    rounds: u32,
    /// When to give up, once the daemon is gone.
    deadline: Option<Instant>,
}

impl Supervisor {
    /// Watches the command until nothing of it is left. Returns the reports that are left to send; `None` when processes are left that could
    /// not be ended.
    fn watch(&mut self, signals: &OwnedFd) -> Option<Vec<u8>> {
        if let Some(pid) = self.shell {
            self.report(SupervisorReport::Started(pid));
        }
        loop {
            if let Some(kill) = &mut self.kill {
                kill.rounds += 1;
                if kill.rounds == 1
                    && let Some(shell) = self.shell
                {
                    procfs::kill_session_leader(shell);
                }
                if kill.rounds > GENTLE_ROUNDS {
                    freeze_and_kill();
                }
                procfs::kill_children(self.shell, &HashSet::new());
            }
            let (exited, is_left) = self.reap();
            let exited = exited.map(SupervisorReport::encode);
            if !is_left {
                // One message wakes the daemon once.
                return Some(exited.map(Vec::from).unwrap_or_default());
            }
            if let Some(exited) = exited {
                self.send(&exited);
            }
            if self
                .kill
                .as_ref()
                .and_then(|kill| kill.deadline)
                .is_some_and(|deadline| Instant::now() > deadline)
            {
                return None;
            }
            let (ordered, ended) = self.wait(signals).ok()?;
            if ended {
                drain(signals);
            }
            if ordered {
                self.take_orders();
            }
            self.measure();
        }
    }

    fn wait(&mut self, signals: &OwnedFd) -> io::Result<(bool, bool)> {
        let lone = self.is_alone();
        let pause = match &mut self.kill {
            Some(kill) => {
                let pause = kill.pause;
                kill.pause = (pause * 2).min(KILL_PAUSES.1);
                Some(pause)
            }
            None => self.meter.as_ref().map(UsageMeter::wait),
        };
        let timeout = pause.map(|pause| Timespec {
            tv_sec: pause.as_secs().cast_signed(),
            tv_nsec: i64::from(pause.subsec_nanos()),
        });
        // A closed socket is always ready, so do not poll it again.
        let mut both = [PollFd::new(signals, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        let fds = if lone { &mut both[..1] } else { &mut both[..] };
        match poll(fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok((!lone && !both[1].revents().is_empty(), !both[0].revents().is_empty()))
    }

    fn take_orders(&mut self) {
        let mut orders = [0; 16];
        match self.socket.read(&mut orders) {
            Ok(0) => self.on_daemon_gone(),
            Ok(count) => {
                for order in orders[..count].iter().filter_map(|byte| SupervisorOrder::decode(*byte)) {
                    match order {
                        SupervisorOrder::Kill => self.start_killing(),
                        SupervisorOrder::Terminate => procfs::terminate_descendants(),
                        SupervisorOrder::TooManyProcesses => self.on_limit(LimitedResource::Processes, true),
                        SupervisorOrder::TooMuchMemory => self.on_limit(LimitedResource::Memory, true),
                        SupervisorOrder::TooMuchOutput => self.on_limit(LimitedResource::Output, false),
                        SupervisorOrder::Signal(signal) => procfs::signal_descendants(signal),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.on_daemon_gone(),
        }
    }

    fn start_killing(&mut self) {
        self.kill.get_or_insert(OngoingKill { pause: KILL_PAUSES.0, rounds: 0, deadline: None });
    }

    /// Measures the command if it is time, and reports changes.
    fn measure(&mut self) {
        if self.kill.is_some() {
            return;
        }
        let Some(meter) = &mut self.meter else { return };
        let Some(usage) = meter.look() else { return };
        let exceeded = meter.exceeded(&usage);
        let told = std::mem::replace(&mut self.told, usage);
        if usage.processes != told.processes {
            self.report(SupervisorReport::Processes(i32::try_from(usage.processes).unwrap_or(i32::MAX)));
        }
        if usage.memory_bytes != told.memory_bytes {
            self.report(SupervisorReport::MemoryKib(
                i32::try_from(usage.memory_bytes / 1024).unwrap_or(i32::MAX),
            ));
        }
        if let Some(resource) = exceeded {
            self.on_limit(resource, false);
        }
    }

    /// Reports an exceeded limit and kills everything, unless it is being killed already.
    fn on_limit(&mut self, resource: LimitedResource, together: bool) {
        if self.kill.is_none() {
            // Report before anything ends because of it.
            self.report(SupervisorReport::Limit(resource, together));
            self.start_killing();
            if let Some(kill) = self.kill.as_mut().filter(|_| resource == LimitedResource::Processes) {
                // Killing one or two groups may suffice; if not, there is no time to lose.
                kill.rounds = GENTLE_ROUNDS - 2;
            }
        }
    }

    fn on_daemon_gone(&mut self) {
        self.start_killing();
        if let Some(kill) = &mut self.kill {
            kill.deadline.get_or_insert_with(|| Instant::now() + LONE_KILL_TIME);
        }
    }

    /// Whether the daemon is gone, or has given the command up.
    fn is_alone(&self) -> bool {
        self.kill.as_ref().is_some_and(|kill| kill.deadline.is_some())
    }

    /// Reaps ended children. Returns the report of the end of the command's own process, and whether any child is left.
    fn reap(&mut self) -> (Option<SupervisorReport>, bool) {
        let mut ended = None;
        let shell = self.shell;
        let left = procfs::reap(|pid, status| {
            if Some(pid.as_raw_nonzero().get()) == shell {
                ended = Some(status);
            }
        });
        if ended.is_some() {
            self.shell = None;
        }
        (ended.map(exit_report), left)
    }

    fn report(&mut self, report: SupervisorReport) {
        self.send(&report.encode());
    }

    fn send(&mut self, reports: &[u8]) {
        if self.socket.write_all(reports).is_err() {
            self.on_daemon_gone();
        }
    }
}

fn exit_report(status: WaitStatus) -> SupervisorReport {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => SupervisorReport::Exited(code),
        (None, Some(signal)) => SupervisorReport::Signaled(signal),
        (None, None) => SupervisorReport::Signaled(libc::SIGKILL),
    }
}

/// Empties the descriptor that signals ended children; waiting finds out which ended.
pub(super) fn drain(signals: impl AsFd) {
    let mut buffer = [0; 512];
    while rustix::io::read(&signals, &mut buffer).is_ok_and(|count| count > 0) {}
}

/// Passes over the tree, after which everything is killed, even if each pass found something new.
const MOST_PASSES: u32 = 64;

/// Stops everything below this process, then kills it.
fn freeze_and_kill() {
    let mut frozen = FrozenProcesses::default();
    // The last stopped processes may have had time to start another, so each pass looks below them once more. Orphans become
    // children of this process.
    let mut last = Vec::new();
    for _ in 0..MOST_PASSES {
        last = frozen.pass(&last);
        if last.is_empty() {
            break;
        }
    }
    frozen.0.values().for_each(|stat| stat.signal(Signal::KILL));
}

/// The stopped processes, by id: while a process and its parent are stopped, its id cannot be reused.
#[derive(Default)]
struct FrozenProcesses(HashMap<i32, Stat>);

impl FrozenProcesses {
    /// Stops the processes below this one, or below one of `last`, that were not met before. Returns them.
    fn pass(&mut self, last: &[i32]) -> Vec<i32> {
        let own = getpid().as_raw_nonzero().get();
        let mut new = Vec::new();
        let Some(mut waiting) = below(own) else {
            // The kernel does not list children.
            for stat in procfs::descendants() {
                if self.0.insert(stat.pid, stat).is_none() {
                    stat.signal(Signal::STOP);
                    new.push(stat.pid);
                }
            }
            return new;
        };
        waiting.extend(last.iter().filter_map(|pid| below(*pid)).flatten());
        while let Some((pid, parent)) = waiting.pop() {
            if !self.0.contains_key(&pid)
                && let Some(stat) = stop(pid, parent, own)
            {
                self.0.insert(pid, stat);
                new.push(pid);
                // Only now: a stopped process starts no more children.
                waiting.extend(below(pid).into_iter().flatten());
            }
        }
        new
    }
}

/// The children of a process, each with its parent.
fn below(parent: i32) -> Option<Vec<(i32, i32)>> {
    let children = procfs::children_by_thread(Pid::from_raw(parent)?)?;
    Some(children.into_iter().map(|child| (child, parent)).collect())
}

/// Stops a process that is a child of `parent`, or was and is now a child of `own`: a child of one of these processes
/// is meant, even if its id was reused. Another user's process can be neither stopped nor killed.
fn stop(pid: i32, parent: i32, own: i32) -> Option<Stat> {
    let descriptor = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let stat = Stat::of(pid).filter(|stat| !stat.zombie && [parent, own].contains(&stat.parent))?;
    pidfd_send_signal(descriptor, Signal::STOP).ok()?;
    Some(stat)
}
