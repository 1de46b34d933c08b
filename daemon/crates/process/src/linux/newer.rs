//! The processes that one piece of work of a long-lived command started: those that were not there before.

use std::{collections::HashSet, thread::sleep, time::Duration};

use rustix::process::{Pid, Signal};

use super::procfs::{self, Stat};

/// Passes over the tree, after which it is left to the end of the command.
const MOST_PASSES: u32 = 100;

/// Passes after which new processes are stopped before they are killed: something starts them faster than they end.
const GENTLE_PASSES: u32 = 4;

/// The pause between two passes, in which killed processes end.
const PAUSE: Duration = Duration::from_millis(1);

/// The processes of a command at one moment, by their ids and when they started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TreeMark(HashSet<(i32, u64)>);

impl TreeMark {
    /// What runs below a supervisor now. Blocks.
    pub(crate) fn of(supervisor: i32) -> Self {
        Self(below(supervisor).iter().map(|stat| (stat.pid, stat.started)).collect())
    }

    /// Kills everything below a supervisor that was not there at the mark, but for the command's own process. Returns when nothing of that
    /// is left, or it cannot be ended. Blocks.
    pub(crate) fn kill_newer(&self, supervisor: i32, own: i32) {
        for pass in 0..MOST_PASSES {
            let newer = self.newer(supervisor, own);
            if newer.is_empty() {
                return;
            }
            if pass >= GENTLE_PASSES {
                newer.iter().for_each(|stat| stat.signal(Signal::STOP));
            }
            newer.iter().for_each(|stat| stat.signal(Signal::KILL));
            sleep(PAUSE);
        }
        let left = self.newer(supervisor, own).len();
        tracing::warn!(left, "processes of a cell or command survive SIGKILL");
    }

    /// Sends a signal to the innermost processes of the mark: those that are not the parent of another one in it. A helper that only holds
    /// the command's sandbox is passed over so. Blocks briefly.
    pub(crate) fn signal_innermost(&self, supervisor: i32, signal: Signal) {
        let mut there = below(supervisor);
        there.retain(|stat| self.0.contains(&(stat.pid, stat.started)));
        let parents: HashSet<i32> = there.iter().map(|stat| stat.parent).collect();
        there.iter().filter(|stat| !parents.contains(&stat.pid)).for_each(|stat| stat.signal(signal));
    }

    fn newer(&self, supervisor: i32, own: i32) -> Vec<Stat> {
        let mut newer = below(supervisor);
        newer.retain(|stat| stat.pid != own && !self.0.contains(&(stat.pid, stat.started)));
        newer
    }
}

/// Kills the command's own process, if it still is the supervisor's child. Blocks briefly.
pub(crate) fn kill_own(supervisor: i32, own: i32) {
    if let Some(stat) = Stat::of(own).filter(|stat| stat.parent == supervisor && !stat.zombie) {
        stat.signal(Signal::KILL);
    }
}

/// What runs below a process.
fn below(root: i32) -> Vec<Stat> {
    let Some(pid) = Pid::from_raw(root) else { return Vec::new() };
    let Some(mut waiting) = procfs::children_by_thread(pid) else {
        // The kernel does not list children: go by the parents of all processes.
        let Ok(all) = procfs::everything() else { return Vec::new() };
        let mut found = procfs::with_descendants(HashSet::from([root]), &all);
        found.retain(|stat| stat.pid != root && !stat.zombie);
        return found;
    };
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    while let Some(pid) = waiting.pop() {
        if !seen.insert(pid) {
            continue;
        }
        // One that has ended meanwhile has left its children to the supervisor.
        let Some(stat) = Stat::of(pid) else { continue };
        if !stat.zombie {
            found.push(stat);
            waiting.extend(Pid::from_raw(pid).and_then(procfs::children_by_thread).into_iter().flatten());
        }
    }
    found
}
