//! Reads `/proc` about processes, and signals the processes below this one.
//!
//! A process id can be reused once its process was reaped, so this module kills in two ways only: its own children,
//! whose ids cannot be reused before this process reaps them; and others through a descriptor that is opened first and
//! checked after.

use std::{collections::HashSet, fs, io, str::FromStr};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpid, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
    },
};

/// The fields of `/proc/<pid>/stat` that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    /// It has ended and waits to be reaped.
    pub(super) zombie: bool,
    /// It is stopped until a signal continues it.
    pub(super) stopped: bool,
    pub(super) parent: i32,
    group: i32,
    /// 0 when the session's leader is outside this process id namespace, as in a container whose first process was
    /// started by another one's shell.
    pub(super) session: i32,
    /// When the process started, in clock ticks since boot: together with the id, the process's identity.
    pub(super) started: u64,
    /// Its processor time in clock ticks, without ended children.
    pub(super) cpu: u64,
    /// Processor time in clock ticks of its children that have ended and that it has waited for, and of theirs.
    pub(super) children_cpu: u64,
    /// Resident memory in pages.
    pub(super) resident: u64,
}

impl FromStr for Stat {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        // The name, in parentheses, may contain spaces and parentheses; the fields after it do not.
        let (head, fields) = line.rsplit_once(')').ok_or(())?;
        let pid = head.split_once(' ').ok_or(())?.0;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |index: usize| fields.get(index).copied().ok_or(());
        let number = |text: &str| text.parse::<i32>().map_err(drop);
        let big = |index: usize| field(index)?.parse::<u64>().map_err(drop);
        Ok(Self {
            pid: number(pid)?,
            zombie: matches!(field(0)?, "Z" | "X"),
            stopped: matches!(field(0)?, "T" | "t"),
            parent: number(field(1)?)?,
            group: number(field(2)?)?,
            session: number(field(3)?)?,
            started: big(19)?,
            cpu: big(11)?.saturating_add(big(12)?),
            // Signed in the kernel's format, but never negative.
            children_cpu: big(13)?.saturating_add(big(14)?),
            resident: big(21)?,
        })
    }
}

impl Stat {
    pub(super) fn of(pid: i32) -> Option<Self> {
        fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.parse().ok()
    }

    /// Sends `signal` to this process, never to another one that reuses its id.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Self::of(self.pid).is_some_and(|now| now.started == self.started) {
            // The process may have ended, or belong to another user: nothing more can be done.
            let _ = pidfd_send_signal(descriptor, signal);
        }
    }
}

/// This process. Its session is read from `/proc`, because the system call's wrapper considers session 0 impossible.
pub(super) fn own() -> Option<Stat> {
    Stat::of(getpid().as_raw_nonzero().get())
}

/// This process's id and start time in clock ticks since boot.
pub(crate) fn own_life() -> Option<(i32, u64)> {
    own().map(|own| (own.pid, own.started))
}

/// When a running process started, in clock ticks since boot; `None` when there is none.
pub(crate) fn life_of(pid: i32) -> Option<u64> {
    Stat::of(pid).filter(|stat| !stat.zombie).map(|stat| stat.started)
}

/// Every process that this one may see.
pub(super) fn everything() -> io::Result<Vec<Stat>> {
    let numbers = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.filter_map(Stat::of).collect())
}

/// The ids of this process's own children, including ended ones that are not reaped yet.
///
/// # Errors
/// When `/proc` is missing.
pub(super) fn children() -> io::Result<Vec<i32>> {
    // Cheap, but only available when the kernel was built with it.
    if let Ok(list) = fs::read_to_string("/proc/thread-self/children") {
        return Ok(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect());
    }
    Ok(children_of(getpid())?.iter().map(|stat| stat.pid).collect())
}

/// The children of all threads of a process.
pub(super) fn children_of(parent: Pid) -> io::Result<Vec<Stat>> {
    let parent = parent.as_raw_nonzero().get();
    Ok(everything()?.into_iter().filter(|stat| stat.parent == parent).collect())
}

/// The children of a process, read from each of its threads; `None` when the kernel does not list them.
pub(super) fn children_by_thread(parent: Pid) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    let parent = parent.as_raw_nonzero();
    for thread in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => {
                children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()))
            }
            // The thread has ended since.
            Err(_) if !thread.path().exists() => {}
            Err(_) => return None,
        }
    }
    Some(children)
}

/// Whether the kernel lists the children of a process.
pub(crate) fn lists_children() -> bool {
    children_by_thread(getpid()).is_some()
}

/// Those of `all` that have one of these ids, and everything below them.
pub(super) fn with_descendants(mut ids: HashSet<i32>, all: &[Stat]) -> Vec<Stat> {
    // Parents may be listed after their children, so repeat until a pass finds no new process.
    loop {
        let before = ids.len();
        ids.extend(
            all.iter().filter(|stat| ids.contains(&stat.parent)).map(|stat| stat.pid).collect::<Vec<_>>(),
        );
        if ids.len() == before {
            break;
        }
    }
    all.iter().filter(|stat| ids.contains(&stat.pid)).copied().collect()
}

/// Everything running below this process.
pub(super) fn descendants() -> Vec<Stat> {
    let Ok(all) = everything() else { return Vec::new() };
    let own = getpid().as_raw_nonzero().get();
    let mut below = with_descendants(HashSet::from([own]), &all);
    below.retain(|stat| stat.pid != own && !stat.zombie);
    below
}

/// Kills the own children that are not in `spared`, and the process groups of those that have ended.
///
/// Their children become ours when they are dead, so repeating this until no child is left ends the whole tree from the
/// top down. Call it before reaping ended children: until then the group of such a child can neither change nor be
/// reused. Killing a whole group at once leaves no gap for a process that forks without end.
pub(super) fn kill_children(fallback: Option<i32>, spared: &HashSet<i32>) {
    let own_group = own().map(|own| own.group);
    let list = children().unwrap_or_else(|_| fallback.into_iter().collect());
    for pid in list.into_iter().filter(|pid| !spared.contains(pid)).filter_map(Pid::from_raw) {
        // "No such process" means that it has ended. Another user's process cannot be killed at all.
        let _ = kill_process(pid, Signal::KILL);
        // Group 0 has its leader outside this process id namespace, and so no id here.
        if let Some(stat) = Stat::of(pid.as_raw_nonzero().get()).filter(|stat| stat.zombie)
            && Some(stat.group) != own_group
            && let Some(group) = Pid::from_raw(stat.group)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Kills an own child that was started as the leader of a process session, with its process group, and so most of what it started at once. It
/// cannot leave that group, whose number is its own and is not given away before it is reaped.
pub(super) fn kill_session_leader(child: i32) {
    if let Some(group) = Pid::from_raw(child) {
        // An error means that only processes of another user are left in it.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Asks everything below this process to end, and continues what is stopped so that it can.
pub(super) fn terminate_descendants() {
    for stat in descendants() {
        stat.signal(Signal::TERM);
        stat.signal(Signal::CONT);
    }
}

/// Sends a signal to everything below this process. A number without a signal does nothing.
pub(super) fn signal_descendants(signal: u8) {
    if let Some(signal) = Signal::from_named_raw(signal.into()) {
        descendants().iter().for_each(|stat| stat.signal(signal));
    }
}

/// Reaps every child that has ended, and calls `ended` for each. Returns whether any child is left.
pub(super) fn reap(mut ended: impl FnMut(Pid, rustix::process::WaitStatus)) -> bool {
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Processor time in clock ticks of the children that this process has waited for, and of theirs.
pub(super) fn children_ticks() -> u64 {
    own().map_or(0, |own| own.children_cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let line = "42 (a) R 9 (b c) S 7 5 4 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 12345 99 8\n";
        let expected = Stat {
            pid: 42,
            zombie: false,
            stopped: false,
            parent: 7,
            group: 5,
            session: 4,
            started: 12345,
            cpu: 11,
            children_cpu: 15,
            resident: 8,
        };
        assert_eq!(line.parse(), Ok(expected));
    }

    #[test]
    fn a_torn_line_is_refused() {
        assert_eq!("42 (sh) S 7 5".parse::<Stat>(), Err(()));
    }

    #[test]
    fn this_process_is_found() {
        let own = getpid().as_raw_nonzero().get();
        assert!(everything().expect("/proc").iter().any(|stat| stat.pid == own && !stat.zombie));
    }
}
