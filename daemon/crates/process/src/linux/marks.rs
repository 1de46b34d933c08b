//! Marks of processes, and the processes that carry them.
//!
//! A process carries its owner's mark twice: in an environment variable, and as its limit of file locks, which Linux
//! inherits and shows, and has not used since version 2.4. The variable is for people and is lost with `env -i`; the
//! limit survives every fork and exec.

use std::{collections::HashSet, fs, io::Read as _, time::Duration};

use rustix::process::{Resource, Signal, getpid, getrlimit};

use uuid::Uuid;

use super::procfs::{self, Stat};

/// The variable in the environment of every command: its daemon's mark, 16 hexadecimal digits.
pub const OWNER_VARIABLE: &str = "AGENTD_OWNER";

/// The least mark; limits that people set are lower.
const SHORTEST: u64 = 1 << 32;

/// The most bytes of an environment that are searched.
const MAX_ENVIRONMENT: u64 = 4 << 20;

/// The mark of one daemon's processes. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnerMark(pub(crate) u64);

impl OwnerMark {
    /// A new, unique mark.
    pub(crate) fn new() -> Self {
        let (random, _) = Uuid::new_v4().as_u64_pair();
        // The mark is also a limit: it must not be a value that means "unlimited", nor above this process's own hard limit.
        let most = largest_mark().min(u64::MAX >> 4);
        let mark = match most.checked_sub(SHORTEST) {
            None | Some(0) => random >> 4,
            Some(room) => SHORTEST + random % room,
        };
        Self(mark.max(SHORTEST))
    }

    /// The mark as it stands in file names and in [`OWNER_VARIABLE`].
    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0)
    }

    /// The mark in a file's name; `None` for other names.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mark = u64::from_str_radix(text, 16).ok().filter(|mark| digits && *mark >= SHORTEST)?;
        Some(Self(mark))
    }
}

/// Identifies the processes that a dead owner left: they have its mark and started after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadOwner {
    pub(crate) mark: OwnerMark,
    /// When the owner started, in clock ticks since boot.
    pub(crate) since: u64,
}

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
pub(crate) fn kill_marked(left: &[DeadOwner]) -> usize {
    const PAUSE: Duration = Duration::from_millis(10);
    const PASSES: u32 = 500;
    let mut killed = HashSet::new();
    // A daemon started by a command of a dead daemon cannot tell itself from the processes to kill.
    let own = getpid().as_raw_nonzero().get();
    let left: Vec<DeadOwner> = left.iter().copied().filter(|left| !has_mark(own, &[left.mark])).collect();
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
fn marked(left: &[DeadOwner]) -> Vec<Stat> {
    let Ok(all) = procfs::everything() else { return Vec::new() };
    let own = getpid().as_raw_nonzero().get();
    let marks: Vec<OwnerMark> = left.iter().map(|left| left.mark).collect();
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
pub(super) fn has_mark(pid: i32, marks: &[OwnerMark]) -> bool {
    let is_one = |mark: Option<u64>| mark.is_some_and(|mark| marks.contains(&OwnerMark(mark)));
    is_one(locks_limit(&limits_of(pid))) || is_one(environment(pid).as_deref().and_then(owner_of))
}

/// Kills every process of a session that has the mark `owner`, and returns when none is left, or after two seconds.
///
/// For commands whose supervisor was killed: only the process session that each command starts in still holds their
/// processes together. The mark excludes a session that reuses the id. Blocks.
pub(crate) fn kill_session(session: i32, owner: OwnerMark) {
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..200 {
        let Ok(all) = procfs::everything() else { return };
        let is_member =
            |stat: &&Stat| stat.session == session && !stat.zombie && has_mark(stat.pid, &[owner]);
        let members: Vec<_> = all.iter().filter(is_member).collect();
        if members.is_empty() {
            return;
        }
        members.iter().for_each(|stat| stat.signal(Signal::KILL));
        std::thread::sleep(PAUSE);
    }
    tracing::warn!(session, "processes of a command survive SIGKILL");
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
        assert_eq!(kill_marked(&[DeadOwner { mark: OwnerMark::new(), since: 0 }]), 0);
    }
}
