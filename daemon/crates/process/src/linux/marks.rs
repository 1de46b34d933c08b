//! Marks of processes, and the processes that carry them.
//!
//! A process carries its owner's mark twice: in an environment variable, and as its limit of file locks, which Linux
//! inherits and shows, and has not used since version 2.4. The variable is for people and is lost with `env -i`; the
//! limit survives every fork and exec.

use std::{collections::HashSet, fs, io::Read as _, time::Duration};

use rustix::process::{Resource, Signal, getpid, getrlimit};

use super::procfs::{self, Stat};
use crate::owner::{Left, Mark, OWNER_VARIABLE};

/// The most bytes of an environment that are searched.
const MAX_ENVIRONMENT: u64 = 4 << 20;

/// The largest mark that processes started here can be given as a limit: inside a command of another agentd, limits can
/// only be lowered.
pub(crate) fn largest_mark() -> u64 {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX)
}

/// Whether the limit can hold marks here: it is shown, and is not so low that marks would no longer differ.
pub(crate) fn has_lasting_marks() -> bool {
    largest_mark() >> 32 != 0
        && procfs::own().is_some_and(|own| limits_of(own.pid).contains("Max file locks"))
}

/// Whether a process was started by a command of some agentd that did not start this process: its mark, as a limit, is
/// lower than this process's own limit, and without privileges it can only be lowered further. Where limits hold no
/// marks, the variable decides, if it can be read. `None` where the system does not say. Blocks.
pub(super) fn is_of_a_command(pid: i32) -> Option<bool> {
    if !has_lasting_marks() {
        let own = procfs::own().and_then(|own| environment(own.pid)).as_deref().and_then(owner_of);
        let mark = environment(pid).as_deref().and_then(owner_of);
        return Some(mark.is_some_and(|mark| Some(mark) != own));
    }
    let limits = limits_of(pid);
    if limits.is_empty() {
        return None;
    }
    Some(locks_limit(&limits).is_some_and(|mark| mark < largest_mark()))
}

fn limits_of(pid: i32) -> String {
    // A process that has ended, or is not readable, counts as unmarked.
    fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default()
}

/// Kills every process with one of the marks, and everything below it. Returns how many there were. Blocks, for 5
/// seconds at most.
///
/// A process that started before the owner of its mark is a stranger with the same limit.
pub(crate) fn kill_marked(left: &[Left]) -> usize {
    const PAUSE: Duration = Duration::from_millis(10);
    const PASSES: u32 = 500;
    let mut killed = HashSet::new();
    // A daemon started by a command of a dead daemon cannot tell itself from the processes to kill.
    let own = getpid().as_raw_nonzero().get();
    let left: Vec<Left> = left.iter().copied().filter(|left| !has_mark(own, &[left.mark])).collect();
    if left.is_empty() {
        return 0;
    }
    for _ in 0..PASSES {
        let found = marked(&left);
        if found.is_empty() {
            return killed.len();
        }
        // Stop them first: a running process could start another that this pass did not see.
        found.iter().for_each(|stat| stat.signal(Signal::STOP));
        found.iter().for_each(|stat| stat.signal(Signal::KILL));
        killed.extend(found.iter().map(|stat| (stat.pid, stat.started)));
        std::thread::sleep(PAUSE);
    }
    tracing::warn!("processes that a killed daemon left survive SIGKILL");
    killed.len()
}

/// The running processes that dead owners left, and those below them.
fn marked(left: &[Left]) -> Vec<Stat> {
    let Ok(all) = procfs::everything() else { return Vec::new() };
    let own = getpid().as_raw_nonzero().get();
    let marks: Vec<Mark> = left.iter().map(|left| left.mark).collect();
    let is_left = |stat: &&Stat| {
        // Nearly all processes have none of the marks, so test for any first.
        stat.pid != own
            && !stat.zombie
            && has_mark(stat.pid, &marks)
            && left.iter().any(|left| stat.started >= left.since && has_mark(stat.pid, &[left.mark]))
    };
    let roots = all.iter().filter(is_left);
    let mut found = procfs::with_descendants(roots.map(|stat| stat.pid).collect(), &all);
    found.retain(|stat| stat.pid != own && !stat.zombie);
    found
}

/// Whether a process has one of `marks`.
pub(super) fn has_mark(pid: i32, marks: &[Mark]) -> bool {
    let is_one = |mark: Option<u64>| mark.is_some_and(|mark| marks.contains(&Mark(mark)));
    is_one(locks_limit(&limits_of(pid))) || is_one(environment(pid).as_deref().and_then(owner_of))
}

/// The hard limit of file locks in the text of `/proc/<pid>/limits`.
fn locks_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn environment(pid: i32) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(format!("/proc/{pid}/environ"))
        .ok()?
        .take(MAX_ENVIRONMENT)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// The mark in an environment.
fn owner_of(environment: &[u8]) -> Option<u64> {
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(OWNER_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    u64::from_str_radix(str::from_utf8(value).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_from_limits_and_environment() {
        let limits = "\
Limit                     Soft Limit           Hard Limit           Units
Max pending signals       95766                95766                signals
Max file locks            1234567890123        1234567890123        locks
";
        assert_eq!(locks_limit(limits), Some(1_234_567_890_123));
        assert_eq!(locks_limit(&limits.replace("1234567890123", "unlimited")), None);
        assert_eq!(owner_of(b"A=1\0AGENTD_OWNER=00000000000000ff\0B=2\0"), Some(255));
        assert_eq!(owner_of(b"XAGENTD_OWNER=ff\0AGENTD_OWNERS=ff\0"), None);
    }

    #[test]
    fn nobody_has_a_new_mark() {
        assert_eq!(kill_marked(&[Left { mark: Mark::new(), since: 0 }]), 0);
    }
}
