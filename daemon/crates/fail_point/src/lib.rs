//! Places where a test can kill this process or make its disk fail.
//!
//! `AGENTD_FAIL_POINTS` names them, separated by commas: `NAME[@N[+]][:ACTION]`. What is to happen happens when the place is
//! passed for the `N`th time (from 1, which is the default), with `+` from then on. Without the variable a place costs one
//! look at a static. The variable is for tests: whoever can set it can kill the process anyway.
//!
//! | action | what happens |
//! | --- | --- |
//! | `kill` (the default) | the process ends as by `kill -9` |
//! | `torn` | half of what was to be written is, then the process ends so |
//! | `short` | half of what was to be written is, and the call says so |
//! | `enospc`, `eio`, `erofs`, `eacces`, `emfile` | the call fails with that error |
//! | `panic` | the task or thread that passes panics, as by a bug |
//!
//! A place without a call that could fail takes `kill` and `panic` alone; the other actions do nothing there.

mod point;
mod spec;

use std::{
    io,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

pub use point::Point;

use spec::{Action, Armed};

/// The variable that arms fail points.
pub const VARIABLE: &str = "AGENTD_FAIL_POINTS";

static ARMED: OnceLock<Vec<(Armed, AtomicU64)>> = OnceLock::new();

/// Arms the points that the variable names. To be called once, before work begins; without a call nothing ever happens.
///
/// # Errors
/// A sentence for whoever set the variable, when it names a point or an action that does not exist.
pub fn arm() -> Result<(), String> {
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let armed = spec::parse(&text.to_string_lossy())?;
    // A second call changes nothing: what is armed stays so for the life of the process.
    ARMED.get_or_init(|| armed.into_iter().map(|it| (it, AtomicU64::new(0))).collect());
    Ok(())
}

/// Passes a place where nothing can fail; the process may end here.
///
/// # Panics
/// When a test asked for that, as every function here.
#[inline]
pub fn hit(point: Point) {
    match ARMED.get().and_then(|armed| action(armed, point)) {
        Some(Action::Kill) => die(),
        Some(Action::Panic) => break_down(point),
        _ => {}
    }
}

/// Passes a call to the system that writes nothing.
///
/// # Errors
/// The one that the test asked for.
#[inline]
pub fn call(point: Point) -> io::Result<()> {
    match ARMED.get().and_then(|armed| action(armed, point)) {
        None | Some(Action::Torn | Action::Short) => Ok(()),
        Some(Action::Kill) => die(),
        Some(Action::Panic) => break_down(point),
        Some(Action::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Passes a call to the system that writes `bytes` by `write`, which gives how many it wrote.
///
/// # Errors
/// That of `write`, or the one that the test asked for.
#[inline]
pub fn write(
    point: Point,
    bytes: &[u8],
    write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    match ARMED.get().and_then(|armed| action(armed, point)) {
        None => write(bytes),
        Some(Action::Short) => write(&bytes[..bytes.len().div_ceil(2)]),
        Some(Action::Torn) => {
            // Written or not: this is the end.
            let _ = write(&bytes[..bytes.len() / 2]);
            die()
        }
        Some(Action::Kill) => die(),
        Some(Action::Panic) => break_down(point),
        Some(Action::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// What is to happen at a point that is passed once more.
#[cold]
fn action(armed: &[(Armed, AtomicU64)], point: Point) -> Option<Action> {
    let mut found = None;
    for (of, passed) in armed.iter().filter(|(of, _)| of.point == point) {
        let time = passed.fetch_add(1, Ordering::Relaxed) + 1;
        if time == of.from || (of.and_later && time > of.from) {
            found = found.or(Some(of.action));
        }
    }
    found
}

/// Does what a bug would do.
#[cold]
fn break_down(point: Point) -> ! {
    panic!("{VARIABLE} asked for this at {}", point.name());
}

/// Ends the process at once: nothing is flushed, nothing is dropped.
fn die() -> ! {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // The signal may take a moment to arrive.
    #[cfg(unix)]
    loop {
        std::thread::park();
    }
    #[cfg(not(unix))]
    std::process::abort()
}
