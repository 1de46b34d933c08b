//! Handles the processes that the daemon inherits when the guard is killed.
//!
//! The daemon is a subreaper, too: supervisors whose guard was killed become its children, and so do the processes of a
//! supervisor that was killed together with the guard.

use std::{
    collections::HashMap,
    io,
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid},
};

use super::procfs::{self, Stat};

/// Guards and supervisors of this whole process, of all launchers, since a process has one set of children. Each has
/// its start time, which together with its process id is its identity.
static KNOWN: Mutex<Option<HashMap<i32, u64>>> = Mutex::new(None);

/// The processes that killed guards and supervisors leave to this process.
pub(crate) struct Adopted;

impl Adopted {
    /// Starts a guard, which [`Adopted::sweep`] then spares.
    pub(crate) fn start_guard(command: &mut Command) -> io::Result<Child> {
        // Hold the lock over the start, so that a sweep cannot meet an unknown guard.
        let mut known = known();
        set_child_subreaper(Some(getpid()))?;
        let child = command.spawn()?;
        if let Some(stat) = i32::try_from(child.id()).ok().and_then(Stat::of) {
            known.get_or_insert_default().insert(stat.pid, stat.started);
        }
        Ok(child)
    }

    /// Makes [`Adopted::sweep`] spare this guard or supervisor.
    pub(crate) fn know(pid: i32) {
        // A supervisor reports itself and then waits for its command, so it still runs.
        if let Some(stat) = Stat::of(pid) {
            known().get_or_insert_default().insert(stat.pid, stat.started);
        }
    }

    /// Continues a guard or supervisor that was stopped. Returns whether it was stopped. Does not block.
    pub(crate) fn wake(pid: i32) -> bool {
        let stopped = stopped(pid);
        stopped.inspect(|stat| stat.signal(Signal::CONT)).is_some()
    }

    /// Kills a guard or supervisor that is stopped: one that is stopped whenever it continues ends nothing, and without
    /// it others do. Returns whether it was stopped. Does not block.
    pub(crate) fn kill_stopped(pid: i32) -> bool {
        stopped(pid).inspect(|stat| stat.signal(Signal::KILL)).is_some()
    }

    /// Kills the processes that killed supervisors left to a stopped guard, and continues the guard. May block, for two
    /// seconds at most.
    ///
    /// Each command runs in a process session of its own, and supervisors run in their guard's.
    pub(crate) fn relieve_guards() {
        const PAUSE: Duration = Duration::from_millis(20);
        const MOST_PASSES: u32 = 100;
        let own = getpid().as_raw_nonzero().get();
        for _ in 0..MOST_PASSES {
            let pids: Vec<i32> = known().iter().flat_map(|known| known.keys().copied()).collect();
            let guards: Vec<Stat> =
                pids.into_iter().filter_map(Stat::of).filter(|stat| stat.parent == own).collect();
            // A running guard does this itself.
            let stopped: Vec<&Stat> = guards.iter().filter(|stat| stat.stopped).collect();
            if stopped.is_empty() {
                return;
            }
            let Ok(all) = procfs::everything() else { return };
            let is_left = |stat: &&Stat| {
                stopped.iter().any(|guard| stat.parent == guard.pid && stat.session != guard.session)
            };
            let left =
                procfs::with_descendants(all.iter().filter(is_left).map(|stat| stat.pid).collect(), &all);
            left.iter().for_each(|stat| stat.signal(Signal::STOP));
            left.iter().for_each(|stat| stat.signal(Signal::KILL));
            stopped.iter().for_each(|guard| guard.signal(Signal::CONT));
            std::thread::sleep(PAUSE);
        }
        tracing::warn!("the process guard is stopped again and again");
    }

    /// Removes a guard that has ended and was reaped.
    pub(crate) fn forget(pid: i32) {
        known().get_or_insert_default().remove(&pid);
    }

    /// Removes a supervisor that has ended or is about to. Returns whether it is a child of this process, which then
    /// must [`Adopted::reap`] it; usually it is the guard's. Does not block.
    pub(crate) fn release(pid: i32) -> bool {
        let Some(started) = known().get_or_insert_default().remove(&pid) else { return false };
        // Its process id may now belong to another child of this process, which other code waits for.
        let own = getpid().as_raw_nonzero().get();
        let is_same = Stat::of(pid).is_some_and(|stat| stat.started == started && stat.parent == own);
        is_same && !try_reap(pid)
    }

    /// Reaps a child that is about to end. May block, for a second at most.
    pub(crate) fn reap(pid: i32) {
        const PAUSE: Duration = Duration::from_millis(5);
        for _ in 0..200 {
            if try_reap(pid) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        tracing::warn!(pid, "a process that watches a command does not end");
    }

    /// Kills and reaps every process that a supervisor left to this one. Blocks for at least a tenth of a second: the
    /// guard that would have taken them may be about to die, too.
    ///
    /// Every command runs in a process session of its own, and processes that the daemon starts by other means do not:
    /// the session tells them apart.
    pub(crate) fn sweep() {
        const PAUSE: Duration = Duration::from_millis(20);
        const QUIET_PASSES: u32 = 5;
        const MOST_PASSES: u32 = 100;
        let mut quiet = 0;
        for _ in 0..MOST_PASSES {
            quiet = if pass() { 0 } else { quiet + 1 };
            if quiet == QUIET_PASSES {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        tracing::warn!("processes that were left by a killed guard survive SIGKILL");
    }
}

/// A known guard or supervisor that is stopped.
fn stopped(pid: i32) -> Option<Stat> {
    let started = known().as_ref().and_then(|known| known.get(&pid).copied())?;
    Stat::of(pid).filter(|stat| stat.started == started && stat.stopped)
}

/// Kills the current strays. Returns whether there were any.
fn pass() -> bool {
    let known = known();
    let (Ok(children), Some(own)) = (procfs::children_of(getpid()), procfs::own()) else { return false };
    let spared = |pid: &i32| known.as_ref().is_some_and(|known| known.contains_key(pid));
    let strays: Vec<_> =
        children.iter().filter(|stat| stat.session != own.session && !spared(&stat.pid)).collect();
    strays.iter().for_each(|stat| stat.signal(Signal::KILL));
    for stat in &strays {
        // The next pass meets again what has not ended yet.
        try_reap(stat.pid);
    }
    !strays.is_empty()
}

/// Reaps `pid` if it is a child of this process that has ended. Returns whether it is no such child any more, or never
/// was: usually the guard is the parent.
fn try_reap(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return true };
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None) | Err(Errno::INTR))
}

fn known() -> MutexGuard<'static, Option<HashMap<i32, u64>>> {
    // A map of numbers is never half changed, even by a panic.
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
