//! Ends process trees that grow while they are killed: stops everything first.

use std::collections::HashMap;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::procfs::{self, Stat};

/// Passes over the tree, after which everything is killed, even if each pass found something new.
const MOST_PASSES: u32 = 64;

/// Stops everything below this process, then kills it.
pub(super) fn freeze_and_kill() {
    let mut frozen = Frozen::default();
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
struct Frozen(HashMap<i32, Stat>);

impl Frozen {
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
