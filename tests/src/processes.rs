//! Watching processes that are not our children.

use std::time::{Duration, Instant};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

/// Processes, held in a way that survives the reuse of their numbers.
pub struct Watched(Vec<(i32, OwnedFd)>);

/// Watches the processes with these ids. All of them must be alive.
#[must_use]
pub fn watch(ids: &[i32]) -> Watched {
    let open = |id: &i32| {
        let pid = Pid::from_raw(*id).expect("a process id");
        let fd = pidfd_open(pid, PidfdFlags::empty());
        (*id, fd.unwrap_or_else(|error| panic!("process {id} is not alive: {error}")))
    };
    Watched(ids.iter().map(open).collect())
}

impl Watched {
    /// Waits until all have ended. Those that have not within `deadline` make it panic.
    pub fn assert_gone_within(&self, deadline: Duration) {
        let end = Instant::now() + deadline;
        let left: Vec<i32> = self.0.iter().filter(|(_, fd)| !ended(fd, end)).map(|(id, _)| *id).collect();
        assert!(left.is_empty(), "still alive after {deadline:?}: {}", describe(&left));
    }

    /// Whether all are alive.
    #[must_use]
    pub fn all_alive(&self) -> bool {
        self.0.iter().all(|(_, fd)| !ended(fd, Instant::now()))
    }
}

/// Whether the process has ended by then: its descriptor is readable from that moment on.
fn ended(fd: &OwnedFd, by: Instant) -> bool {
    loop {
        let left = by.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(count) => return count > 0,
            Err(Errno::INTR) => {}
            Err(error) => panic!("cannot wait for a process: {error}"),
        }
    }
}

fn describe(ids: &[i32]) -> String {
    let line = |id: &i32| {
        let command = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        format!("{id} ({})", command.replace('\0', " ").trim_end())
    };
    ids.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// Sends a signal to a process.
pub fn signal(id: u32, signal: Signal) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).unwrap_or_else(|error| panic!("cannot signal process {id}: {error}"));
}

/// The children of a process.
#[must_use]
pub fn children(id: u32) -> Vec<i32> {
    let parent = |stat: &str| {
        // The name stands in brackets and may hold anything; state and parent follow it.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let processes = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A process that ended meanwhile has no file any more.
    ids.filter(|child| {
        std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| parent(&stat) == Some(id))
    })
    .collect()
}
