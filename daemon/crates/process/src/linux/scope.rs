//! A supervisor: the parent process of one command and of everything that it starts.

use std::{
    collections::HashSet,
    env, fs,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{WaitStatus, getpid, set_child_subreaper},
};

use super::{
    freeze,
    meter::{Meter, Usage},
    procfs, sys,
};
use crate::{
    limits::LimitedResource,
    streams::CommandStreams,
    wire::{self, Order, Report, Stage},
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
struct Started {
    pid: i32,
    meter: Option<Meter>,
}

/// Runs one command and returns when nothing of it is left. Returns false when that could not be achieved.
pub(super) fn run(mut socket: UnixStream, streams: Vec<OwnedFd>, signals: &OwnedFd) -> bool {
    let _ = fs::write("/proc/self/comm", "agentd-scope");
    match start(&mut socket, streams) {
        Ok(Started { pid, meter }) => {
            let told = Usage::default();
            Scope { socket, shell: Some(pid), kill: None, meter, told }.watch(signals)
        }
        Err(Some((stage, errno))) => {
            // If the daemon is gone, nobody waits for the reason, and nothing was started.
            let _ = socket.write_all(&Report::Failed(stage, errno).encode());
            true
        }
        Err(None) => true,
    }
}

/// Reads the command and starts it. `Err(None)` means that the daemon is gone or closed the socket.
fn start(socket: &mut UnixStream, streams: Vec<OwnedFd>) -> Result<Started, Option<(Stage, i32)>> {
    let gone = |_: io::Error| None;
    let own = getpid();
    set_child_subreaper(Some(own)).map_err(|errno| Some((Stage::Scope, errno.raw_os_error())))?;
    socket.write_all(&Report::Ready(own.as_raw_nonzero().get()).encode()).map_err(gone)?;
    let mut length = [0; 8];
    socket.read_exact(&mut length).map_err(gone)?;
    let length =
        usize::try_from(u64::from_ne_bytes(length)).map_err(|_| Some((Stage::Scope, libc::EMSGSIZE)))?;
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes).map_err(gone)?;
    let (spec, terms) = wire::decode_command(&bytes).ok_or(Some((Stage::Scope, libc::EBADMSG)))?;

    // Enter it before forking, to tell a missing directory from a missing program.
    env::set_current_dir(&spec.cwd).map_err(failed(Stage::WorkingDirectory))?;
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().envs(spec.env);
    connect(&mut command, spec.streams, streams).map_err(failed(Stage::Scope))?;
    let meter = Meter::new(terms.limits);
    let nice = if meter.is_some() { sys::raise_priority() } else { None };
    sys::prepare_on_start(
        &mut command,
        sys::OnStart {
            terminal: matches!(spec.streams, CommandStreams::Terminal(_)),
            owner: terms.owner.0,
            cpu_seconds: terms
                .limits
                .of(LimitedResource::Cpu)
                .map(|seconds| seconds.saturating_add(CPU_MARGIN)),
            nice,
        },
    );
    let child = command.spawn().map_err(failed(Stage::Program))?;
    // Staying there would prevent unmounting the command's directory while anything runs.
    let _ = env::set_current_dir("/");
    let pid = i32::try_from(child.id()).map_err(|_| Some((Stage::Scope, libc::ERANGE)))?;
    Ok(Started { pid, meter })
}

/// Connects the command to its streams; see [`CommandStreams::open`] for their order.
fn connect(command: &mut Command, streams: CommandStreams, fds: Vec<OwnedFd>) -> io::Result<()> {
    let mut fds = fds.into_iter();
    let mut next = || fds.next().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADMSG));
    let stdin = match streams {
        CommandStreams::Output => Stdio::null(),
        CommandStreams::InputOutput | CommandStreams::Separate => Stdio::from(next()?),
        CommandStreams::Terminal(_) => {
            let terminal = next()?;
            command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
            return Ok(());
        }
    };
    let stdout = next()?;
    let stderr = if streams == CommandStreams::Separate { next()? } else { stdout.try_clone()? };
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    Ok(())
}

fn failed(stage: Stage) -> impl Fn(io::Error) -> Option<(Stage, i32)> {
    move |error| Some((stage, error.raw_os_error().unwrap_or(libc::EINVAL)))
}

struct Scope {
    socket: UnixStream,
    /// The command's own process, until it is reaped.
    shell: Option<i32>,
    kill: Option<Kill>,
    /// Present while there are limits.
    meter: Option<Meter>,
    /// The usage that was last reported.
    told: Usage,
}

/// An ongoing kill.
struct Kill {
    pause: Duration,
    rounds: u32,
    /// When to give up, once the daemon is gone.
    deadline: Option<Instant>,
}

impl Scope {
    fn watch(mut self, signals: &OwnedFd) -> bool {
        if let Some(pid) = self.shell {
            self.report(Report::Started(pid));
        }
        loop {
            if let Some(kill) = &mut self.kill {
                kill.rounds += 1;
                if kill.rounds > GENTLE_ROUNDS {
                    freeze::freeze_and_kill();
                }
                procfs::kill_children(self.shell, &HashSet::new());
            }
            if self.reap() == Left::Nothing {
                self.report(Report::Empty);
                return true;
            }
            if self
                .kill
                .as_ref()
                .and_then(|kill| kill.deadline)
                .is_some_and(|deadline| Instant::now() > deadline)
            {
                return false;
            }
            let Ok((ordered, ended)) = self.wait(signals) else { return false };
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
        let lone = self.kill.as_ref().is_some_and(|kill| kill.deadline.is_some());
        let pause = match &mut self.kill {
            Some(kill) => {
                let pause = kill.pause;
                kill.pause = (pause * 2).min(KILL_PAUSES.1);
                Some(pause)
            }
            None => self.meter.as_ref().map(Meter::wait),
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
                for order in orders[..count].iter().filter_map(|byte| Order::decode(*byte)) {
                    match order {
                        Order::Kill => self.start_killing(),
                        Order::Terminate => procfs::terminate_descendants(),
                        Order::TooManyProcesses => self.on_limit(LimitedResource::Processes, true),
                        Order::TooMuchMemory => self.on_limit(LimitedResource::Memory, true),
                        Order::TooMuchOutput => self.on_limit(LimitedResource::Output, false),
                        Order::Signal(signal) => procfs::signal_descendants(signal),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.on_daemon_gone(),
        }
    }

    fn start_killing(&mut self) {
        self.kill.get_or_insert(Kill { pause: KILL_PAUSES.0, rounds: 0, deadline: None });
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
            self.report(Report::Processes(i32::try_from(usage.processes).unwrap_or(i32::MAX)));
        }
        if usage.memory_bytes != told.memory_bytes {
            self.report(Report::MemoryKib(i32::try_from(usage.memory_bytes / 1024).unwrap_or(i32::MAX)));
        }
        if let Some(resource) = exceeded {
            self.on_limit(resource, false);
        }
    }

    /// Reports an exceeded limit and kills everything, unless it is being killed already.
    fn on_limit(&mut self, resource: LimitedResource, together: bool) {
        if self.kill.is_none() {
            // Report before anything ends because of it.
            self.report(Report::Limit(resource, together));
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

    fn reap(&mut self) -> Left {
        let mut ended = None;
        let shell = self.shell;
        let left = procfs::reap(|pid, status| {
            if Some(pid.as_raw_nonzero().get()) == shell {
                ended = Some(status);
            }
        });
        if let Some(status) = ended {
            self.shell = None;
            self.report(exit_report(status));
        }
        if left { Left::Something } else { Left::Nothing }
    }

    fn report(&mut self, report: Report) {
        if self.socket.write_all(&report.encode()).is_err() {
            self.on_daemon_gone();
        }
    }
}

#[derive(PartialEq, Eq)]
enum Left {
    Something,
    Nothing,
}

fn exit_report(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited(code),
        (None, Some(signal)) => Report::Signaled(signal),
        (None, None) => Report::Signaled(libc::SIGKILL),
    }
}

/// Empties the descriptor that signals ended children; waiting finds out which ended.
pub(super) fn drain(signals: impl AsFd) {
    let mut buffer = [0; 512];
    while rustix::io::read(&signals, &mut buffer).is_ok_and(|count| count > 0) {}
}
