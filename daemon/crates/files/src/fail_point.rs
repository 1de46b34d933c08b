//! Places where a test can kill this process or make its disk fail.
//!
//! `AGENTD_FAIL_POINTS` names them, separated by commas: `NAME[@N[+]][:ACTION]`. The action is taken when the point is passed for
//! the `N`th time (from 1, the default); with `+`, at every later time too. Without the variable a point costs one look at a
//! static. The variable is for tests: anyone who can set it can kill the process anyway.
//!
//! | action | effect |
//! | --- | --- |
//! | `kill` (the default) | the process ends as by `kill -9` |
//! | `torn` | half of the bytes are written, then the process ends as by `kill -9` |
//! | `short` | half of the bytes are written, and the call returns that count |
//! | `enospc`, `eio`, `erofs`, `eacces`, `emfile` | the call fails with that error |
//! | `panic` | the task or thread that passes panics, as by a bug |
//!
//! A point without a call that could fail takes `kill` and `panic` alone; the other actions do nothing there.

mod point;

use std::{
    io,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

pub use point::Point;

/// The variable that arms fail points.
pub const VARIABLE: &str = "AGENTD_FAIL_POINTS";

/// The armed points, each with the number of times that it was passed.
static ARMED: OnceLock<Vec<(Armed, AtomicU64)>> = OnceLock::new();

/// An action at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Armed {
    point: Point,
    /// The passing at which the action is taken, from 1.
    from: u64,
    /// The action is taken at every later passing, too.
    and_later: bool,
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill,
    Torn,
    Short,
    Panic,
    /// The number of the error.
    Fail(i32),
}

/// The errors that calls can fail with. The numbers are those of Linux and of every Unix that agentd is built for.
const ERRORS: &[(&str, i32)] = &[("enospc", 28), ("eio", 5), ("erofs", 30), ("eacces", 13), ("emfile", 24)];

/// Arms the points that the variable names. Call it once, before work begins; without a call no action is ever taken.
///
/// # Errors
/// A sentence for the user, when the variable names a point or an action that does not exist.
pub fn arm() -> Result<(), String> {
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let armed = parse(&text.to_string_lossy())?;
    // A second call changes nothing: the armed points stay for the life of the process.
    ARMED.get_or_init(|| armed.into_iter().map(|it| (it, AtomicU64::new(0))).collect());
    Ok(())
}

/// Passes a point where nothing can fail; the process may end here.
///
/// # Panics
/// When a test asked for a panic here, as in every function of this module.
#[inline]
pub fn hit(point: Point) {
    match ARMED.get().and_then(|armed| action(armed, point)) {
        Some(Action::Kill) => die(),
        Some(Action::Panic) => panic_at(point),
        _ => {}
    }
}

/// Passes a point before a system call that writes nothing.
///
/// # Errors
/// The one that a test asked for.
#[inline]
pub fn call(point: Point) -> io::Result<()> {
    match ARMED.get().and_then(|armed| action(armed, point)) {
        None | Some(Action::Torn | Action::Short) => Ok(()),
        Some(Action::Kill) => die(),
        Some(Action::Panic) => panic_at(point),
        Some(Action::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Passes a point at a system call that writes `bytes` by `write`, which returns how many it wrote.
///
/// # Errors
/// That of `write`, or the one that a test asked for.
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
            // The process ends here, whether the write worked or not.
            let _ = write(&bytes[..bytes.len() / 2]);
            die()
        }
        Some(Action::Kill) => die(),
        Some(Action::Panic) => panic_at(point),
        Some(Action::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Counts one passing of a point, and returns the action to take.
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

#[cold]
fn panic_at(point: Point) -> ! {
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

/// Reads the value of [`VARIABLE`].
fn parse(text: &str) -> Result<Vec<Armed>, String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(parse_item).collect()
}

fn parse_item(text: &str) -> Result<Armed, String> {
    let wrong = |what: String| format!("{VARIABLE}: {what} in \"{text}\": expected NAME[@N[+]][:ACTION]");
    let (place, action) = text.split_once(':').unwrap_or((text, "kill"));
    let (name, time) = place.split_once('@').unwrap_or((place, "1"));
    let (time, and_later) = time.strip_suffix('+').map_or((time, false), |time| (time, true));
    let point = Point::ALL.iter().copied().find(|point| point.name() == name);
    let point = point.ok_or_else(|| {
        let all: Vec<&str> = Point::ALL.iter().map(|point| point.name()).collect();
        format!("{VARIABLE}: no fail point is called \"{name}\"; there are: {}", all.join(", "))
    })?;
    let from = time.parse().ok().filter(|from| *from > 0);
    let from = from.ok_or_else(|| wrong(format!("\"{time}\" is no number from 1")))?;
    let action = match action {
        "kill" => Action::Kill,
        "torn" => Action::Torn,
        "short" => Action::Short,
        "panic" => Action::Panic,
        other => {
            let error = ERRORS.iter().find(|(name, _)| *name == other);
            Action::Fail(error.ok_or_else(|| wrong(format!("no action is called \"{other}\"")))?.1)
        }
    };
    Ok(Armed { point, from, and_later, action })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let armed = |from, and_later, action| Armed { point: Point::StoreAppend, from, and_later, action };
        for (text, expected) in [
            ("store.append", armed(1, false, Action::Kill)),
            ("store.append@3", armed(3, false, Action::Kill)),
            ("store.append@2+:enospc", armed(2, true, Action::Fail(28))),
            (" store.append:torn ,", armed(1, false, Action::Torn)),
            ("store.append@7:short", armed(7, false, Action::Short)),
            ("store.append:panic", armed(1, false, Action::Panic)),
        ] {
            assert_eq!(parse(text), Ok(vec![expected]), "{text}");
        }
        assert_eq!(parse("store.append,store.sync:eio").map(|all| all.len()), Ok(2));
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (text, named) in [
            ("store.apend", "\"store.apend\""),
            ("store.append@0", "\"0\""),
            ("store.append@x", "\"x\""),
            ("store.append:explode", "\"explode\""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named) && error.contains(VARIABLE), "{error}");
        }
    }
}
