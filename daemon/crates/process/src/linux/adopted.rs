//! What the daemon inherits when the guard is killed.
//!
//! The daemon is a subreaper as well: scopes whose guard was killed become its children, and so do the processes of a
//! scope that was killed together with the guard.

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

/// Guards and scopes of this whole process, whichever launcher they belong to: a process has one set of children. With each
/// goes when it started: together with its number that is its identity.
static KNOWN: Mutex<Option<HashMap<i32, u64>>> = Mutex::new(None);

/// The processes that killed helpers left to this one.
pub(crate) struct Adopted;

impl Adopted {
    /// Starts a guard, as something that [`Adopted::sweep`] spares.
    pub(crate) fn start_guard(command: &mut Command) -> io::Result<Child> {
        // Held over the start, so that a sweep cannot meet a guard that is not known yet.
        let mut known = known();
        set_child_subreaper(Some(getpid()))?;
        let child = command.spawn()?;
        if let Some(stat) = i32::try_from(child.id()).ok().and_then(Stat::of) {
            known.get_or_insert_default().insert(stat.pid, stat.started);
        }
        Ok(child)
    }

    /// Has [`Adopted::sweep`] spare this guard or scope.
    pub(crate) fn know(pid: i32) {
        // A scope says that it is there and then waits for its command, so it is there still.
        if let Some(stat) = Stat::of(pid) {
            known().get_or_insert_default().insert(stat.pid, stat.started);
        }
    }

    /// Has a guard or scope that somebody stopped go on. Returns whether it was stopped. Does not block.
    pub(crate) fn wake(pid: i32) -> bool {
        let stopped = stopped(pid);
        stopped.inspect(|stat| stat.signal(Signal::CONT)).is_some()
    }

    /// Kills a guard or scope that is stopped: one that is stopped again whenever it is told to go on ends nothing, and without it
    /// others do. Returns whether it was stopped. Does not block.
    pub(crate) fn kill_stopped(pid: i32) -> bool {
        stopped(pid).inspect(|stat| stat.signal(Signal::KILL)).is_some()
    }

    /// Kills what killed scopes left to a guard that is stopped, and has the guard go on. May block, for two seconds at most.
    ///
    /// Each command runs in a session of its own, and scopes in that of their guard.
    pub(crate) fn relieve_guards() {
        const PAUSE: Duration = Duration::from_millis(20);
        const MOST_PASSES: u32 = 100;
        let own = getpid().as_raw_nonzero().get();
        for _ in 0..MOST_PASSES {
            let pids: Vec<i32> = known().iter().flat_map(|known| known.keys().copied()).collect();
            let guards: Vec<Stat> =
                pids.into_iter().filter_map(Stat::of).filter(|stat| stat.parent == own).collect();
            // A guard that is at work does this itself.
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

    /// Forgets a guard that has ended and was reaped.
    pub(crate) fn forget(pid: i32) {
        known().get_or_insert_default().remove(&pid);
    }

    /// Forgets a scope that has ended or is about to. Returns whether it is a child of this process, which then must
    /// [`Adopted::reap`] it: usually it is the guard's. Does not block.
    pub(crate) fn release(pid: i32) -> bool {
        let Some(started) = known().get_or_insert_default().remove(&pid) else { return false };
        // Its number may have been given to another child of this process, which somebody else waits for.
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

    /// Kills and reaps every process that was left to this one by a scope. May block, for a tenth of a second at least:
    /// the guard that would have taken them may be about to die as well.
    ///
    /// Every command runs in a session of its own, and what this process starts by other means does not: those are told
    /// apart by their session.
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

/// A guard or scope that is known and stopped.
fn stopped(pid: i32) -> Option<Stat> {
    let started = known().as_ref().and_then(|known| known.get(&pid).copied())?;
    Stat::of(pid).filter(|stat| stat.started == started && stat.stopped)
}

/// Kills what is there now. Returns whether anything was.
fn pass() -> bool {
    let known = known();
    let (Ok(children), Some(own)) = (procfs::children_of(getpid()), procfs::own()) else { return false };
    let spared = |pid: &i32| known.as_ref().is_some_and(|known| known.contains_key(pid));
    let strays: Vec<_> =
        children.iter().filter(|stat| stat.session != own.session && !spared(&stat.pid)).collect();
    strays.iter().for_each(|stat| stat.signal(Signal::KILL));
    for stat in &strays {
        // What has not ended yet is met again by the next pass.
        try_reap(stat.pid);
    }
    !strays.is_empty()
}

/// Reaps `pid` if it is a child of this process that has ended. Returns whether it is no such child any more, or never
/// was: the guard is the usual parent.
fn try_reap(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return true };
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None) | Err(Errno::INTR))
}

fn known() -> MutexGuard<'static, Option<HashMap<i32, u64>>> {
    // A map of numbers is never half changed.
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
