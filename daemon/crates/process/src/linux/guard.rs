//! The guard: forks a supervisor when the daemon has none for a command.

use std::{
    collections::HashSet,
    env, fs,
    io::{self, Write as _},
    os::fd::OwnedFd,
    process::ExitCode,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::RecvFlags,
    process::{Pid, getpid, set_child_subreaper},
};

use super::{
    procfs,
    requests::{CommandEnds, Request, receive_request},
    supervisor,
    sys::{self, Fork},
};
use crate::frames::{StartStage, SupervisorReport};

/// Runs the guard until the daemon closes its end of the control socket, which is the standard input.
///
/// The daemon's `main` calls this, before it starts any thread, when its first argument says so; see
/// [`crate::GuardCommand`]. The guard is in a process session of its own, so that a Ctrl-C in the daemon's terminal
/// does not reach it, and blocks every signal. Its memory does not grow, and it reads no commands: a request is one
/// byte and a few descriptors, and the fork that gets them, a supervisor, does the rest.
pub fn run_guard() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If even this fails, the daemon still sees the closed socket.
            let _ = writeln!(
                io::stderr(),
                "agentd guard: {error}. The daemon starts this program by itself; there is no need to run it by hand."
            );
            ExitCode::FAILURE
        }
    }
}

struct Guard {
    control: OwnedFd,
    signals: OwnedFd,
    supervisors: HashSet<i32>,
}

fn serve() -> io::Result<()> {
    let mut guard = Guard::prepare()?;
    loop {
        let (asked, ended) = guard.wait()?;
        if ended {
            guard.on_children_ended();
        }
        if asked && !guard.on_request()? {
            return Ok(());
        }
    }
}

impl Guard {
    fn prepare() -> io::Result<Self> {
        if fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
            return Err(io::Error::other("started too late: the process has threads already"));
        }
        let stdin = io::stdin();
        rustix::net::sockopt::socket_type(&stdin)
            .map_err(|_| io::Error::other("the standard input is no control socket"))?;
        // Without a list of descriptors they stay open; commands still get none that agentd opened.
        let _ = sys::close_inherited();
        sys::block_signals()?;
        sys::reset_dispositions();
        // Fails only for a process that already leads a group, which the terminal does not reach either.
        let _ = rustix::process::setsid();
        let control = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
        sys::replace_stdin(fs::File::open("/dev/null")?)?;
        env::set_current_dir("/")?;
        // The name in lists of processes.
        let _ = fs::write("/proc/self/comm", "agentd-guard");
        // Adopts what a killed supervisor leaves behind.
        set_child_subreaper(Some(getpid()))?;
        // If this fails, the guard is only larger.
        let _ = sys::release_mirrors();
        Ok(Self { control, signals: sys::child_signals()?, supervisors: HashSet::new() })
    }

    /// Waits for a request or the end of a child.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut fds = [PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => Ok((!fds[0].revents().is_empty(), !fds[1].revents().is_empty())),
            Err(Errno::INTR) => Ok((false, false)),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaps ended children. A child that is no supervisor was left by a killed one, so it is killed with all below it.
    fn on_children_ended(&mut self) {
        supervisor::drain(&self.signals);
        // Until they are reaped, ended strays show which process group to kill.
        procfs::kill_children(None, &self.supervisors);
        let mut orphaned = false;
        procfs::reap(|pid, status| {
            let known = self.supervisors.remove(&pid.as_raw_nonzero().get());
            orphaned |= !known || status.signaled();
        });
        if orphaned {
            procfs::kill_children(None, &self.supervisors);
        }
    }

    /// Handles one request. Returns false when the daemon is gone.
    fn on_request(&mut self) -> io::Result<bool> {
        let mut fds = match receive_request(&self.control, RecvFlags::DONTWAIT) {
            Ok(Request::Fds(fds)) => fds.into_iter(),
            Ok(Request::End) => return Ok(false),
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if let Some(control) = fds.next()
            && let Some(command) = CommandEnds::of(fds)
        {
            self.start_supervisor(control, command);
        }
        Ok(true)
    }

    fn start_supervisor(&mut self, control: OwnedFd, mut command: CommandEnds) {
        let own = getpid();
        match sys::fork() {
            Ok(Fork::Parent(pid)) => {
                self.supervisors.insert(Pid::as_raw_nonzero(pid).get());
            }
            Ok(Fork::Child) => {
                // If supervisors held the guard's control socket, the daemon would not see the guard's end.
                self.control = control;
                let ok = supervisor::run(&self.control, command, own, &self.signals);
                std::process::exit(i32::from(!ok));
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                // The daemon may be gone; then nobody waits for this.
                let _ = command
                    .socket
                    .write_all(&SupervisorReport::Failed(StartStage::Supervisor, errno).encode());
            }
        }
    }
}
