//! Locks on files (`flock`) whose last holder may have been killed.
//!
//! Such a lock belongs to the open file, and a forked child has a copy of that file until it becomes another program. If the
//! holder is killed in between, its lock outlives it: by milliseconds, or by seconds on a busy machine. A lock whose noted holder
//! is dead is therefore waited for.

use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::FileExt as _,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};

/// The timeout for the lock of a dead holder. A child becomes another program within milliseconds.
const LAST_HOLD: Duration = Duration::from_secs(2);

/// The time between two attempts: the system has no wait for a file's lock with a timeout.
const PAUSE: Duration = Duration::from_millis(5);

/// The longest note that is read: a process id is shorter.
const MAX_PID_BYTES: usize = 20;

/// Takes the lock of a file in which the holder notes its process id; false when a living process has it. Waits up to two
/// seconds for the lock of a dead one. Blocks.
///
/// # Errors
/// Those of the file system, also when it has no locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    try_lock_with(|| try_once(file), || noted_pid(file))
}

/// The process id in the first line of a file; `None` while its holder has not noted it yet.
#[must_use]
pub fn noted_pid(file: &File) -> Option<u32> {
    let mut text = [0; MAX_PID_BYTES];
    let count = file.read_at(&mut text, 0).ok()?;
    let line = text[..count].split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

/// [`try_lock`] with other ways to take the lock and to find its holder, which is asked for after every failed attempt.
///
/// # Errors
/// Those of `try_once`.
pub fn try_lock_with(
    try_once: impl FnMut() -> io::Result<bool>,
    holder: impl Fn() -> Option<u32>,
) -> io::Result<bool> {
    wait_for(LAST_HOLD, try_once, holder, thread::sleep)
}

fn wait_for(
    last_hold: Duration,
    mut try_once: impl FnMut() -> io::Result<bool>,
    holder: impl Fn() -> Option<u32>,
    mut wait: impl FnMut(Duration),
) -> io::Result<bool> {
    let mut end = None;
    loop {
        if try_once()? {
            return Ok(true);
        }
        let end = *end.get_or_insert_with(|| Instant::now() + last_hold);
        if !holder().is_some_and(is_dead) || Instant::now() > end {
            return Ok(false);
        }
        wait(PAUSE);
    }
}

fn try_once(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Tells whether no process has this id. A process of another user counts as alive.
fn is_dead(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::process::{self, Command};

    use super::*;

    fn dead() -> Option<u32> {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        Some(child.id())
    }

    fn held() -> (tempfile::NamedTempFile, File) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let holder = file.reopen().unwrap();
        holder.lock().unwrap();
        (file, holder)
    }

    #[test]
    fn a_free_lock_is_taken_at_once() {
        let file = tempfile::tempfile().unwrap();
        assert!(try_lock(&file).unwrap());
    }

    #[test]
    fn a_lock_that_outlives_its_holder_for_a_moment_is_waited_for() {
        let (file, holder) = held();
        // A child has the open file, as one that has yet to become another program, and its parent is gone.
        let mut child = Command::new("sleep").arg("1000").stdin(holder).spawn().unwrap();
        let (mut waited, dead) = (0, dead());
        let wait = |_| {
            waited += 1;
            if waited == 3 {
                child.kill().unwrap();
            }
        };
        let taken = wait_for(LAST_HOLD, || try_once(file.as_file()), || dead, wait);
        child.wait().unwrap();
        assert!(taken.unwrap());
        // A child of another test may have it for a moment, too.
        assert!(waited >= 3);
    }

    #[test]
    fn a_lock_of_the_living_or_of_nobody_known_is_not_waited_for() {
        let (file, _holder) = held();
        for holder in [Some(process::id()), None] {
            let wait = |_| panic!("nothing to wait for");
            assert!(!wait_for(LAST_HOLD, || try_once(file.as_file()), || holder, wait).unwrap());
        }
    }

    #[test]
    fn the_wait_has_an_end() {
        let (file, _holder) = held();
        let (dead, mut waited) = (dead(), 0);
        let wait = |_| waited += 1;
        assert!(!wait_for(Duration::ZERO, || try_once(file.as_file()), || dead, wait).unwrap());
        assert!(waited <= 1);
    }
}
