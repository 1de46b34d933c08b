//! Processes that are not our children: waiting for their end, signals, and what they use.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

/// Watched processes, by descriptors that survive the reuse of their ids.
pub struct Watched(Vec<(i32, OwnedFd)>);

/// Watches the processes with these ids, which must be alive.
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
    /// Waits until all have ended, and panics after `deadline`.
    pub fn assert_gone_within(&self, deadline: Duration) {
        let end = Instant::now() + deadline;
        let left: Vec<i32> = self.0.iter().filter(|(_, fd)| !ended(fd, end)).map(|(id, _)| *id).collect();
        assert!(left.is_empty(), "still alive after {deadline:?}: {}", describe(&left));
    }

    /// Returns `true` if all are alive.
    #[must_use]
    pub fn all_alive(&self) -> bool {
        self.0.iter().all(|(_, fd)| !ended(fd, Instant::now()))
    }
}

/// Returns `true` if the process has ended by then: its descriptor is readable from that moment on.
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
        // The name stands in brackets and may hold any character; state and parent follow it.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let processes = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A process that ended meanwhile has no file.
    ids.filter(|child| {
        std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| parent(&stat) == Some(id))
    })
    .collect()
}

/// Resource use of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Memory in RAM, shared pages included, in bytes.
    pub resident: u64,
    /// The peak of `resident`, in bytes.
    pub peak: u64,
    /// Memory in RAM, each shared page divided by the number of its users, in bytes.
    pub proportional: u64,
    /// Memory in RAM that no other process shares, in bytes: what its end would free.
    pub private: u64,
    /// Processor time of all threads so far, in the program and the system.
    pub cpu: Duration,
}

/// Reads the resource use of a process, which must be alive and ours.
#[must_use]
pub fn usage(id: u32) -> Usage {
    let read = |name: &str| {
        let path = format!("/proc/{id}/{name}");
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let (status, rollup) = (read("status"), read("smaps_rollup"));
    Usage {
        resident: kib(&status, "VmRSS:"),
        peak: kib(&status, "VmHWM:"),
        proportional: kib(&rollup, "Pss:"),
        private: kib(&rollup, "Private_Clean:") + kib(&rollup, "Private_Dirty:"),
        cpu: cpu(&read("stat")),
    }
}

/// A field in KiB, in bytes.
fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_else(|| panic!("no {name} in {text}")) << 10
}

/// The times of program and system in `stat`, in ticks.
fn cpu(stat: &str) -> Duration {
    // The name stands in brackets and may hold any character; state and parent follow it.
    let fields = stat.rsplit_once(") ").expect("a name in brackets").1;
    let ticks: u64 =
        fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().expect("a time")).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_taken_shows() {
        let before = usage(std::process::id());
        assert!(
            before.private <= before.proportional && before.proportional <= before.resident,
            "{before:?}"
        );
        // Each page has to be written to, or the system gives none.
        let taken = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = usage(std::process::id());
        drop(taken);
        assert!(after.private >= before.private + (60 << 20), "{before:?} {after:?}");
        let freed = usage(std::process::id());
        assert!(freed.resident < after.resident, "{after:?} {freed:?}");
        // The system counts the peak a little late.
        assert!(freed.peak + (1 << 20) >= after.resident, "{after:?} {freed:?}");
    }

    #[test]
    fn processor_time_is_read_past_a_strange_name() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 200 100 0 0";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(cpu(stat), Duration::from_millis(300 * 1000 / ticks));
    }
}
