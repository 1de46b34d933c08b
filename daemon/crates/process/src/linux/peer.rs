//! Decides whether the process at the other end of a local socket was started by a command of this daemon.
//!
//! Everything that a command starts stays below its supervisor, however it detaches itself, and a supervisor whose
//! guard was killed becomes a child of the daemon, which is a subreaper, too. So a process with the daemon among its
//! ancestors is a command's, and any other is not. The walk goes by process ids, which can be reused once a process was
//! reaped: each step is checked twice, and in the end the connected process must still live, so its id was its own all
//! the time.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, getpid, pidfd_open},
};

use super::{marks, procfs::Stat, sys};

/// Ancestors that are examined. Only a process that wants to hide has nearly as many.
const MOST_PARENTS: usize = 1000;

/// How often the walk starts anew when ancestors end meanwhile.
const MOST_WALKS: usize = 8;

/// The process that connected the other end of a local socket. A process that got that end from it later is taken for
/// it.
#[derive(Debug)]
pub struct Peer {
    pid: i32,
    /// `None` for a process that had already ended.
    descriptor: Option<OwnedFd>,
}

/// Where a peer comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerOrigin {
    /// No command of this daemon, or of another agentd, started it.
    Elsewhere,
    /// It is, or may be, a command or a process that a command started.
    Command(CommandOrigin),
}

/// The supervisor that a command belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOrigin {
    /// The uppermost processes between the peer and this one, each with its start time; one of them is the supervisor.
    /// Empty when unknown.
    uppermost: Vec<(i32, u64)>,
}

impl CommandOrigin {
    /// Whether this is the command's supervisor, and its process id was not reused.
    pub(crate) fn belongs_to(&self, supervisor: i32) -> bool {
        let met = self.uppermost.iter().find(|(pid, _)| *pid == supervisor);
        met.is_some_and(|(_, started)| Stat::of(supervisor).is_some_and(|now| now.started == *started))
    }
}

impl Peer {
    /// Identifies the process at the other end of a socket; `pid` is the process id that the system reports for it
    /// (`SO_PEERCRED`). Does not block.
    #[must_use]
    pub fn of(socket: impl AsFd, pid: Option<i32>) -> Self {
        let pid = pid.unwrap_or_default();
        let descriptor = match sys::peer_descriptor(socket.as_fd()) {
            Ok(descriptor) => Some(descriptor),
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                // Before Linux 6.5. The process id may have been reused, if as many processes were started since it connected as
                // there are ids.
                Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            }
            Err(_) => None,
        };
        Self { pid, descriptor }
    }

    /// Finds out where the process comes from. A process that has ended counts as a command: otherwise a command could
    /// connect, pass the socket on and end. Blocks while it reads a few files of `/proc`.
    #[must_use]
    pub fn origin(&self) -> PeerOrigin {
        let own = getpid().as_raw_nonzero().get();
        // This process itself; or a process without an id here, in a namespace that is not below ours: commands are below ours.
        if self.pid == own || self.pid <= 0 {
            return PeerOrigin::Elsewhere;
        }
        let found = (0..MOST_WALKS)
            .map(|_| walk(self.pid, own, Stat::of))
            .find(|walk| *walk != AncestorWalk::Changed);
        let unknown = PeerOrigin::Command(CommandOrigin::default());
        let origin = match found {
            Some(AncestorWalk::Below(uppermost)) => PeerOrigin::Command(CommandOrigin { uppermost }),
            Some(AncestorWalk::Elsewhere | AncestorWalk::Hidden)
                if marks::is_of_a_command(self.pid) == Some(false) =>
            {
                PeerOrigin::Elsewhere
            }
            _ => unknown.clone(),
        };
        if self.has_ended() { unknown } else { origin }
    }

    fn has_ended(&self) -> bool {
        let Some(descriptor) = &self.descriptor else { return true };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The descriptor is readable once the process has ended; on an error it counts as ended.
        !matches!(poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&now)), Ok(0))
    }
}

/// The result of a walk over a process's ancestors.
#[derive(Debug, PartialEq, Eq)]
enum AncestorWalk {
    /// This process is among them; the uppermost ones below it.
    Below(Vec<(i32, u64)>),
    /// This process is not among them.
    Elsewhere,
    /// The system does not show one of them.
    Hidden,
    /// One of them has ended meanwhile, so its id means nothing.
    Changed,
    /// There are too many.
    Endless,
}

/// Looks for `own` among the ancestors of a process. `look` finds a process by its id.
fn walk(pid: i32, own: i32, look: impl Fn(i32) -> Option<Stat>) -> AncestorWalk {
    let Some(mut below) = look(pid) else { return AncestorWalk::Changed };
    // A supervisor and its guard, or only a supervisor whose guard was killed.
    let mut uppermost = Vec::with_capacity(2);
    for _ in 0..MOST_PARENTS {
        if uppermost.len() == 2 {
            uppermost.remove(0);
        }
        uppermost.push((below.pid, below.started));
        if below.parent == own {
            return AncestorWalk::Below(uppermost);
        }
        if below.parent <= 0 {
            return AncestorWalk::Elsewhere;
        }
        let parent = look(below.parent);
        // The id was the parent's only if the child still has this parent.
        let is_same = |now: Stat| (now.started, now.parent) == (below.started, below.parent);
        if !look(below.pid).is_some_and(is_same) {
            return AncestorWalk::Changed;
        }
        let Some(parent) = parent else { return AncestorWalk::Hidden };
        below = parent;
    }
    AncestorWalk::Endless
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        os::unix::net::UnixStream,
        process::{Command, Stdio},
    };

    use super::*;

    fn stat(pid: i32, parent: i32, started: u64) -> Stat {
        let line = format!("{pid} (x) S {parent} 0 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 {started} 99 8");
        line.parse().unwrap()
    }

    fn of(all: &[(i32, i32, u64)]) -> impl Fn(i32) -> Option<Stat> + use<> {
        let all: Vec<Stat> = all.iter().map(|(pid, parent, started)| stat(*pid, *parent, *started)).collect();
        move |pid| all.iter().find(|stat| stat.pid == pid).copied()
    }

    #[test]
    fn a_descendant_is_found_with_its_supervisor() {
        let all = [(1, 0, 0), (10, 1, 5), (11, 10, 6), (12, 11, 7), (13, 12, 8), (20, 1, 5), (21, 20, 9)];
        assert_eq!(walk(13, 10, of(&all)), AncestorWalk::Below(vec![(12, 7), (11, 6)]));
        assert_eq!(walk(11, 10, of(&all)), AncestorWalk::Below(vec![(11, 6)]));
        assert_eq!(walk(21, 10, of(&all)), AncestorWalk::Elsewhere);
        assert_eq!(walk(20, 10, of(&all[1..])), AncestorWalk::Hidden);
        assert_eq!(walk(99, 10, of(&all)), AncestorWalk::Changed);
        let circle = [(30, 31, 1), (31, 30, 1)];
        assert_eq!(walk(30, 10, of(&circle)), AncestorWalk::Endless);
    }

    #[test]
    fn a_number_that_was_given_again_on_the_way_does_not_count() {
        // The parent ends between the reads of the child and of itself, and a stranger gets its id.
        let looks = Cell::new(0);
        let look = |pid| {
            looks.set(looks.get() + 1);
            match (pid, looks.get()) {
                (13, 1) => Some(stat(13, 12, 8)),
                (13, _) => Some(stat(13, 11, 8)),
                (12, _) => Some(stat(12, 1, 99)),
                _ => Some(stat(1, 0, 0)),
            }
        };
        assert_eq!(walk(13, 10, look), AncestorWalk::Changed);
    }

    fn peer_of(socket: &UnixStream) -> Peer {
        Peer::of(socket, Some(std::process::id().cast_signed()))
    }

    #[test]
    fn this_process_is_no_command() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(peer_of(&one).origin(), PeerOrigin::Elsewhere);
        assert!(!peer_of(&one).has_ended());
    }

    #[test]
    fn a_child_counts_as_a_command_and_so_does_an_ended_process() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id().cast_signed();
        let descriptor = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
        let peer = Peer { pid, descriptor: Some(descriptor) };
        let PeerOrigin::Command(origin) = peer.origin() else { panic!("a child is no command") };
        assert!(origin.belongs_to(pid) && !origin.belongs_to(1));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(peer.origin(), PeerOrigin::Command(CommandOrigin::default()));
        assert!(!origin.belongs_to(pid));
        assert_eq!(Peer { pid, descriptor: None }.origin(), PeerOrigin::Command(CommandOrigin::default()));
    }
}
