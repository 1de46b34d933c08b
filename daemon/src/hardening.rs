//! What the process asks of the system before it does anything, so that others learn nothing of it by accident.

use agentd_config::Environment;
use rustix::{fs::Mode, process::umask};

/// Set to anything but nothing, lets debuggers and `/proc` look into the daemon as into other programs of the user.
const DUMPABLE: &str = "AGENTD_DUMPABLE";

/// For the beginning of `main`, while there is one thread.
///
/// * No other program of the user can read the daemon's memory or the environment that it was started with, and no core dump is written: both hold
///   keys. The programs that it starts are as all others. Linux only; the variable `AGENTD_DUMPABLE` leaves it out.
/// * A umask that takes away the user's own rights does not: files that cannot be read again are of no use. Everything else of it stays,
///   for the files that tools write.
pub fn apply(environment: &Environment) {
    keep_own_rights();
    if environment.non_empty(DUMPABLE).is_none() {
        be_opaque();
    }
}

fn keep_own_rights() {
    let own = Mode::RWXU;
    let given = umask(Mode::RWXG | Mode::RWXO);
    umask(given - own);
}

#[cfg(target_os = "linux")]
fn be_opaque() {
    // Where a sandbox forbids it, the daemon works as well.
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::debug!(%error, "other programs can read this process");
    }
}

#[cfg(not(target_os = "linux"))]
fn be_opaque() {}
