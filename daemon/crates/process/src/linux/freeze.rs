//! Ending trees that grow while they are killed: everything is stopped first.

use std::collections::{HashSet, VecDeque};

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::procfs::{self, Stat};

/// Looks at the tree, after which what is there is killed, even if each look found something new.
const MOST_PASSES: u32 = 16;

/// Stops everything below this process, then kills it.
///
/// Each process is stopped before its children are looked at, so that it cannot start another behind our back; what loses
/// its parent meanwhile becomes a child of this process, and is met by the next look.
pub(super) fn freeze_and_kill() {
    let mut frozen = HashSet::new();
    let mut tree = Vec::new();
    for _ in 0..MOST_PASSES {
        let before = tree.len();
        freeze(&mut frozen, &mut tree);
        if tree.len() == before {
            break;
        }
    }
    tree.iter().for_each(|stat| stat.signal(Signal::KILL));
}

/// Goes through the tree once, and stops what is new.
fn freeze(frozen: &mut HashSet<(i32, u64)>, tree: &mut Vec<Stat>) {
    let own = getpid();
    let Some(children) = procfs::children_by_thread(own) else {
        // A kernel that does not list children.
        let new = procfs::descendants().into_iter().filter(|stat| frozen.insert((stat.pid, stat.started)));
        for stat in new.collect::<Vec<_>>() {
            stat.signal(Signal::STOP);
            tree.push(stat);
        }
        return;
    };
    let own = own.as_raw_nonzero().get();
    let mut waiting: VecDeque<(i32, i32)> = children.into_iter().map(|pid| (pid, own)).collect();
    let mut met = HashSet::new();
    while let Some((pid, parent)) = waiting.pop_front() {
        if !met.insert(pid) {
            continue;
        }
        let Some(id) = Pid::from_raw(pid) else { continue };
        let Ok(descriptor) = pidfd_open(id, PidfdFlags::empty()) else { continue };
        // A child of one of ours is ours, whatever its number was before.
        let Some(stat) = Stat::of(pid).filter(|stat| !stat.zombie && [parent, own].contains(&stat.parent))
        else {
            continue;
        };
        if frozen.insert((pid, stat.started)) {
            // Another user's cannot be stopped by us, nor killed.
            let _ = pidfd_send_signal(descriptor, Signal::STOP);
            tree.push(stat);
        }
        waiting.extend(procfs::children_by_thread(id).into_iter().flatten().map(|child| (child, pid)));
    }
}
