//! A supervisor: the parent process of one command and of everything that it starts.

use std::{
    collections::{HashMap, HashSet},
    env,
    ffi::OsString,
    fs,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use agentd_sandbox::{ConfineStep, SandboxPolicy};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, PidfdFlags, Signal, WaitStatus, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper,
    },
};

use super::{
    meter::{Usage, UsageMeter},
    procfs::{self, Stat},
    sys,
};
use crate::{
    command::{CommandSpec, CommandStreams},
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

/// Runs one command and returns when nothing of it is left. Returns false when that could not be achieved.
pub(super) fn run(mut socket: UnixStream, streams: Vec<OwnedFd>, signals: &OwnedFd) -> bool {
    let _ = fs::write("/proc/self/comm", "agentd-scope");
    match start(&mut socket, streams) {
        Ok(StartedCommand { pid, meter }) => {
            let told = Usage::default();
            Supervisor { socket, shell: Some(pid), kill: None, meter, told }.watch(signals)
        }
        Err(Some((stage, errno))) => {
            // If the daemon is gone, nobody waits for the reason, and nothing was started.
            let _ = socket.write_all(&SupervisorReport::Failed(stage, errno).encode());
            true
        }
        Err(None) => true,
    }
}

/// Reads the command and starts it. `Err(None)` means that the daemon is gone or closed the socket.
fn start(
    socket: &mut UnixStream,
    streams: Vec<OwnedFd>,
) -> Result<StartedCommand, Option<(StartStage, i32)>> {
    let gone = |_: io::Error| None;
    let own = getpid();
    set_child_subreaper(Some(own)).map_err(|errno| Some((StartStage::Supervisor, errno.raw_os_error())))?;
    socket.write_all(&SupervisorReport::Ready(own.as_raw_nonzero().get()).encode()).map_err(gone)?;
    let mut length = [0; 8];
    socket.read_exact(&mut length).map_err(gone)?;
    let length = usize::try_from(u64::from_ne_bytes(length))
        .map_err(|_| Some((StartStage::Supervisor, libc::EMSGSIZE)))?;
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes).map_err(gone)?;
    let (spec, terms) = decode_command(&bytes).ok_or(Some((StartStage::Supervisor, libc::EBADMSG)))?;

    // Enter it before forking, to tell a missing directory from a missing program.
    env::set_current_dir(&spec.cwd).map_err(failed(StartStage::WorkingDirectory))?;
    let (program, args) = match &spec.sandbox {
        Some(policy) if policy.bwrap.is_some() => by_bwrap(policy, &spec)?,
        _ => (spec.program, spec.args),
    };
    let mut command = Command::new(&program);
    command.args(&args).env_clear().envs(spec.env);
    connect(&mut command, spec.streams, streams).map_err(failed(StartStage::Supervisor))?;
    let meter = UsageMeter::new(terms.limits);
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
    let child = match spec.sandbox {
        Some(policy) if policy.bwrap.is_none() => spawn_confined(command, &policy, spec.cwd)?,
        // bwrap starts this program again, which confines itself.
        Some(_) | None => command.spawn().map_err(failed(StartStage::Program))?,
    };
    // Staying there would prevent unmounting the command's directory while anything runs.
    let _ = env::set_current_dir("/");
    let pid = i32::try_from(child.id()).map_err(|_| Some((StartStage::Supervisor, libc::ERANGE)))?;
    Ok(StartedCommand { pid, meter })
}

/// The command line by which `bwrap` makes the mounts of a sandbox.
fn by_bwrap(
    policy: &SandboxPolicy,
    spec: &CommandSpec,
) -> Result<(OsString, Vec<OsString>), Option<(StartStage, i32)>> {
    let bwrap = policy.bwrap.as_deref().unwrap_or(Path::new("bwrap"));
    agentd_sandbox::command_line(bwrap, policy, &spec.cwd, &spec.program, &spec.args)
        .map_err(failed(StartStage::Sandbox(ConfineStep::Mounts)))
}

/// Starts a command that confines itself before it executes its program.
fn spawn_confined(
    mut command: Command,
    policy: &Arc<SandboxPolicy>,
    cwd: PathBuf,
) -> Result<Child, Option<(StartStage, i32)>> {
    let (told, tell) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
        .map_err(|errno| Some((StartStage::Supervisor, errno.raw_os_error())))?;
    sys::confine_on_start(&mut command, Arc::clone(policy), cwd, tell);
    command.spawn().map_err(|error| {
        // The step that failed, if it was one of these.
        let mut code = [0];
        let told = rustix::io::read(&told, &mut code).is_ok_and(|count| count == 1);
        let step = ConfineStep::from_code(code[0]).filter(|_| told);
        failed(step.map_or(StartStage::Program, StartStage::Sandbox))(error)
    })
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

fn failed(stage: StartStage) -> impl Fn(io::Error) -> Option<(StartStage, i32)> {
    move |error| Some((stage, error.raw_os_error().unwrap_or(libc::EINVAL)))
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
    fn watch(mut self, signals: &OwnedFd) -> bool {
        if let Some(pid) = self.shell {
            self.report(SupervisorReport::Started(pid));
        }
        loop {
            if let Some(kill) = &mut self.kill {
                kill.rounds += 1;
                if kill.rounds > GENTLE_ROUNDS {
                    freeze_and_kill();
                }
                procfs::kill_children(self.shell, &HashSet::new());
            }
            if !self.reap() {
                self.report(SupervisorReport::Empty);
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

    /// Reaps ended children and reports the end of the command. Returns whether any child is left.
    fn reap(&mut self) -> bool {
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
        left
    }

    fn report(&mut self, report: SupervisorReport) {
        if self.socket.write_all(&report.encode()).is_err() {
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
