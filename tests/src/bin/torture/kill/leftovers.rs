//! What a daemon left: processes, locks, temporary files.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, processes};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

/// A process, held so that its number cannot come to mean another one.
pub(crate) struct Held {
    id: i32,
    fd: OwnedFd,
    what: String,
}

/// All processes of a home: the daemon with its guard and scopes, and whatever their commands started. They are known by
/// the home in their environment, or by `token` in their command line.
pub(crate) fn processes_of(home: &Home, token: &str) -> Vec<Held> {
    let root = home.root().as_os_str().as_encoded_bytes();
    let ids = fs::read_dir("/proc").expect("a list of processes").flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter_map(|id| {
        let read = |name: &str| fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        let command = read("cmdline");
        if !holds(&command, token.as_bytes()) && !holds(&read("environ"), root) {
            return None;
        }
        let fd = pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()?;
        let what = String::from_utf8_lossy(&command).replace('\0', " ");
        Some(Held { id, fd, what: format!("{id} ({})", what.trim_end()) })
    })
    .filter(|held| !has_ended(held, Instant::now()))
    .collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn has_ended(held: &Held, by: Instant) -> bool {
    let left = by.saturating_duration_since(Instant::now());
    let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    // A signal to the harness itself is as good as a look that was too early.
    poll(&mut [PollFd::new(&held.fd, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// Those of them that are still there when `limit` is over.
pub(crate) fn still_there(held: &[Held], limit: Duration) -> Vec<String> {
    let end = Instant::now() + limit;
    held.iter().filter(|held| !has_ended(held, end)).map(|held| held.what.clone()).collect()
}

/// Waits until a home has no process any more; gives those that are left when `limit` is over.
pub(crate) fn wait_for_none(home: &Home, token: &str, limit: Duration) -> Vec<String> {
    let end = Instant::now() + limit;
    loop {
        let held = processes_of(home, token);
        let left = still_there(&held, end.saturating_duration_since(Instant::now()));
        // What was there is gone; one that was forked meanwhile is seen at the next look.
        if held.is_empty() || !left.is_empty() {
            return left;
        }
    }
}

/// Kills the daemon, its guard and the scopes, as close to one moment as can be.
pub(crate) fn kill_with_guard(daemon: u32) {
    let mut all = Vec::new();
    for guard in processes::children(daemon) {
        all.extend(processes::children(guard.unsigned_abs()));
        all.push(guard);
    }
    all.push(daemon.cast_signed());
    for signal in [Signal::STOP, Signal::KILL] {
        for id in &all {
            // One that is gone already is as good.
            let _ = Pid::from_raw(*id).map(|pid| kill_process(pid, signal));
        }
    }
}

/// Ends what is left of a life that went wrong, so that it does not disturb the next.
pub(crate) fn clean_up(home: &Home, token: &str) {
    for held in processes_of(home, token) {
        let _ = Pid::from_raw(held.id).map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// Files below a folder that were meant to be there for a moment only.
pub(crate) fn temporary_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            let is_temporary =
                name.starts_with(".tmp") || name.ends_with(".tmp") || name.contains("migrating");
            if is_temporary {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
